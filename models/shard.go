package models

import (
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/kv"
)

// rowShard is some rows of a step on their way through the graph, with the
// buffers of the worker, or of the whole pool, that takes them.
type rowShard struct {
	*lane
	cfg      *Config
	kv       *kv.Cache
	rows     int                // until trim all, then those that want logits
	tokens   []int32            // [rows]
	rowPos   []attention.RowPos // [rows]
	wanted   []bool             // [rows] those that want logits, until trim
	plan     attention.Plan     // of rowPos
	pairs    int
	x        []float32 // [rows][Hidden] residual stream
	qkv      []float32 // [rows][(Heads+2·KVHeads)·HeadDim] queries, keys and values
	cos, sin []float32 // [rows][pairs] angles of the rows' positions
	logits   []float32 // [rows that want them][Outputs], and those of later shards
}

// lane is what one shard at a time needs besides its rows. Buffers grow to the
// largest shard seen and are then reused; nothing in them outlives a stage.
type lane struct {
	acts kernels.Acts
	ops  rowOps
	att  *attention.Pass
	size int // rows the buffers have room for

	h, y, a      []float32 // [rows] × [Hidden] normed, a block's output; [Heads*HeadDim] attended values
	gateUp, gate []float32 // [rows][2·FFN], their product [rows][FFN]
	part         []float32 // outputs of one of several stacked matrices
}

func newLane(w pool.Workers, cfg Config) lane {
	return lane{ops: rowOps{workers: w}, att: attention.New(w, cfg.Heads, cfg.KV())}
}

// reserve makes room for n rows.
func (l *lane) reserve(n int, c *Config) {
	if n <= l.size {
		return
	}
	l.size = n
	for _, buf := range []struct {
		at    *[]float32
		width int
	}{
		{&l.h, c.Hidden}, {&l.y, c.Hidden}, {&l.a, c.Heads * c.HeadDim},
		{&l.gateUp, 2 * c.FFN}, {&l.gate, c.FFN},
	} {
		*buf.at = make([]float32, n*buf.width)
	}
}

// run takes the rows through stages [lo, hi) of g, until none is left.
func (s *rowShard) run(g graph, lo, hi int) {
	s.reserve(s.rows, s.cfg)
	for i := lo; i < hi && s.rows > 0; i++ {
		g.stage(s, i)
	}
}

// attend turns the rows' queries into attended values a.
func (s *rowShard) attend(layer int, mask *attention.Mask) {
	s.att.Run(s.a, s.qkv, &s.plan, s.rowPos, s.kv, layer, mask)
}

// trim drops the rows that want no logits and moves the others up.
func (s *rowShard) trim() {
	n, width := 0, len(s.qkv)/s.rows
	for i, wanted := range s.wanted {
		if !wanted {
			continue
		}
		if n < i {
			s.rowPos[n] = s.rowPos[i]
			moveRow(s.x, n, i, s.cfg.Hidden)
			moveRow(s.qkv, n, i, width)
		}
		n++
	}
	if n < s.rows {
		s.rows, s.rowPos = n, s.rowPos[:n]
		s.att.MakePlan(&s.plan, s.rowPos, s.kv)
	}
}

func moveRow(x []float32, to, from, width int) { copy(span(x, to, width), span(x, from, width)) }

package models

import "github.com/lutra-lm/lutra/kernels"

// share is some rows of a step on their way through the graph, with the
// buffers of the worker, or of the whole pool, that takes them.
type share struct {
	*lane
	cfg      *Config
	kv       *KVCache
	rows     int     // until trim all, then those that want logits
	tokens   []int32 // [rows]
	place    []place // [rows]
	plan     attPlan // of place
	pairs    int
	x, q     []float32 // [rows][Hidden] residual stream, [rows][Heads*HeadDim] queries
	cos, sin []float32 // [rows][pairs] angles of the rows' positions
	logits   []float32 // [rows that want them][Outputs], and those of later shares
}

// lane is what one share at a time needs besides its rows. Buffers grow to the
// largest share seen and are then reused; nothing in them outlives a stage.
type lane struct {
	acts kernels.Acts
	ops  rowOps
	att  *attention
	size int // rows the buffers have room for

	h, y, a  []float32 // [rows] × [Hidden] normed, a block's output; [Heads*HeadDim] attended values
	k, v     []float32 // [rows][KVHeads*HeadDim]
	gate, up []float32 // [rows][FFN]
}

func newLane(c crew, cfg Config) lane { return lane{ops: rowOps{crew: c}, att: newAttention(c, cfg)} }

// crew is who does a lane's work: a pool, or one of its workers alone.
type crew struct {
	pool  *kernels.Pool
	alone bool
}

func (c crew) size() int {
	if c.alone {
		return 1
	}
	return c.pool.Threads()
}

// run executes t; a worker alone has number 0.
func (c crew) run(t kernels.Task, parts int) {
	if !c.alone {
		c.pool.Run(t, parts)
		return
	}
	for i := range parts {
		t.Do(0, i)
	}
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
		{&l.k, c.KVHeads * c.HeadDim}, {&l.v, c.KVHeads * c.HeadDim},
		{&l.gate, c.FFN}, {&l.up, c.FFN},
	} {
		*buf.at = make([]float32, n*buf.width)
	}
}

// run takes the rows through stages [lo, hi) of g, until none is left.
func (s *share) run(g graph, lo, hi int) {
	s.reserve(s.rows, s.cfg)
	for i := lo; i < hi && s.rows > 0; i++ {
		g.stage(s, i)
	}
}

// keep finishes the keys and values of all rows, k and v, and writes them into
// a layer of the cache. The bias may be nil.
func (s *share) keep(layer int, keys *heads, vBias []float32) {
	s.ops.rotate(s.k, s, s.cfg.KVHeads*s.cfg.HeadDim, keys)
	s.ops.addBias(s.v, s.rows, vBias)
	s.ops.store(s, layer)
}

// attend turns the rows' queries q into attended values a.
func (s *share) attend(layer int, l *lens) { s.att.run(s.a, s.q, &s.plan, s.place, s.kv, layer, l) }

// trim drops the rows that want no logits; of them the last layer needs keys
// and values only. It moves up the rows of x, h, cos and sin, and tells
// whether anything changed.
func (s *share) trim() bool {
	n, all := 0, s.rows
	for i, p := range s.place {
		if !p.out {
			continue
		}
		if n < i {
			s.place[n] = p
			moveRow(s.x, n, i, s.cfg.Hidden)
			moveRow(s.h, n, i, s.cfg.Hidden)
			moveRow(s.cos, n, i, s.pairs)
			moveRow(s.sin, n, i, s.pairs)
		}
		n++
	}
	if n == all {
		return false
	}
	s.rows, s.place = n, s.place[:n]
	s.att.makePlan(&s.plan, s.place, s.kv)
	return true
}

func moveRow(x []float32, to, from, width int) { copy(span(x, to, width), span(x, from, width)) }

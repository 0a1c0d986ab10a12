package models

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/kv"
)

// ErrBatch says that a batch cannot be computed as it stands. Nothing has been
// written when Forward returns it.
var ErrBatch = errors.New("models: invalid batch")

// graph is an architecture as a step sees it.
type graph interface {
	// stages is the number of parts that a Forward has. A stage may read the
	// keys and values that stages before it wrote, of any row.
	stages() int
	// stage takes the rows of s through one stage.
	stage(s *rowShard, i int)
}

// step is one Forward: the rows under way, divided into shards.
//
// A model that fits the caches gives each worker a shard of the rows and lets
// it take them through the layers alone: no worker waits for another but at
// the end or, where rows of one sequence are in several shards, at each stage. The
// weights are then read once a shard. Rows of a larger model, and a single row, make one
// shard, whose every operation the whole pool divides.
type step struct {
	cfg   Config
	pool  *pool.Pool
	alone bool // workers take shards alone

	shards []rowShard
	whole  lane   // the pool's
	lanes  []lane // one a worker
	graph  graph
	lo, hi int // stages under way

	rowPos   []attention.RowPos
	wanted   []bool    // [T] the row wants logits
	x, qkv   []float32 // [T][Hidden], [T][(Heads+2·KVHeads)·HeadDim]
	cos, sin []float32 // [T][pairs]
	size     int       // rows these have room for
}

// aloneBytes is the size of weights up to which every worker reads all of them.
const aloneBytes = 8 << 20

// shardRows is the most rows of a shard that a worker takes alone: what it
// keeps for them stays in its own cache. Where the workers take several each,
// shards are of tileRows, as many as lookups take at a time: none has idle lanes
// but the last, and workers of unequal speed end closer together.
const (
	shardRows = 32
	tileRows  = 16
)

// divide says into how many shards n rows are divided among workers, and how
// many rows all but the last have; zero: as equal as can be.
func divide(n, workers int) (count, rows int) {
	if n <= shardRows*workers {
		return min(n, workers), 0
	}
	return pool.Parts(n, tileRows), tileRows
}

// newStep makes room for the steps of a model. local tells that its matrices are the CPU's.
func newStep(p *pool.Pool, cfg Config, local bool) *step {
	s := &step{cfg: cfg, pool: p, alone: local && cfg.Bytes <= aloneBytes, whole: newLane(pool.Workers{Pool: p}, cfg)}
	for range p.Threads() {
		s.lanes = append(s.lanes, newLane(pool.Workers{Pool: p, Alone: true}, cfg))
	}
	return s
}

// forward runs g over b; see Model.
func (s *step) forward(g graph, b *Batch, cache *kv.Cache, r *rope) error {
	if err := s.check(b, cache); err != nil {
		return err
	}
	s.begin(b, cache, r)
	s.graph, s.lo, s.hi = g, 0, g.stages()
	switch {
	case len(s.shards) == 1:
		s.shards[0].lane = &s.whole
		s.shards[0].run(g, s.lo, s.hi)
	case !s.joined():
		s.pool.Run(s, len(s.shards))
	default:
		for i := range g.stages() {
			s.lo, s.hi = i, i+1
			s.pool.Run(s, len(s.shards))
		}
	}
	err := s.whole.ops.err()
	for i := range s.lanes {
		err = errors.Join(err, s.lanes[i].ops.err())
	}
	return err
}

// Do takes a shard through the stages under way.
func (s *step) Do(worker, i int) {
	sh := &s.shards[i]
	sh.lane = &s.lanes[worker]
	sh.acts.Pin(worker)
	sh.run(s.graph, s.lo, s.hi)
}

// joined tells whether shards need one another's keys and values.
func (s *step) joined() bool {
	end := 0
	for i := range s.shards[:len(s.shards)-1] {
		end += s.shards[i].rows
		if s.rowPos[end-1].Seq == s.rowPos[end].Seq {
			return true
		}
	}
	return false
}

// begin lists the rows of a checked batch and divides them.
func (s *step) begin(b *Batch, cache *kv.Cache, r *rope) {
	n, c := len(b.Tokens), &s.cfg
	pairs, heads := len(r.freq), (c.Heads+2*c.KVHeads)*c.HeadDim
	if n > s.size {
		s.size = n
		s.x, s.qkv = make([]float32, n*c.Hidden), make([]float32, n*heads)
		s.cos, s.sin = make([]float32, n*pairs), make([]float32, n*pairs)
	}
	s.rowPos, s.wanted = s.rowPos[:0], s.wanted[:0]
	for i := range b.Spans {
		sp := &b.Spans[i]
		for row := sp.Start; row < sp.End; row++ {
			s.rowPos = append(s.rowPos, attention.RowPos{Seq: sp.KV, Pos: int(b.Positions[row])})
			s.wanted = append(s.wanted, row >= sp.End-sp.Out)
		}
	}
	r.angles(s.cos[:n*pairs], s.sin[:n*pairs], b.Positions)
	outputs := b.Outputs() * c.Outputs
	if cap(b.Logits) < outputs {
		b.Logits = make([]float32, outputs)
	}
	b.Logits = b.Logits[:outputs]

	count, rows, att := 1, 0, s.whole.att
	if s.alone {
		count, rows = divide(n, s.pool.Threads())
	}
	if count > 1 {
		att = s.lanes[0].att
	}
	s.shards = slices.Grow(s.shards[:0], count)[:count]
	out := 0
	for i := range s.shards {
		sh, lo, hi := &s.shards[i], i*n/count, (i+1)*n/count
		if rows > 0 {
			lo, hi = i*rows, min(n, (i+1)*rows)
		}
		*sh = rowShard{
			plan: sh.plan, cfg: c, kv: cache, rows: hi - lo, tokens: b.Tokens[lo:hi], rowPos: s.rowPos[lo:hi], wanted: s.wanted[lo:hi],
			x: part(s.x, lo, hi, c.Hidden), qkv: part(s.qkv, lo, hi, heads),
			cos: part(s.cos, lo, hi, pairs), sin: part(s.sin, lo, hi, pairs), pairs: pairs,
			logits: b.Logits[out*c.Outputs:],
		}
		att.MakePlan(&sh.plan, sh.rowPos, cache)
		for _, wanted := range sh.wanted {
			if wanted {
				out++
			}
		}
	}
}

// part is rows [lo, hi) of x, which has rows of width elements.
func part(x []float32, lo, hi, width int) []float32 { return x[lo*width : hi*width] }

// check verifies that b can be computed.
func (s *step) check(b *Batch, cache *kv.Cache) error {
	if len(b.Positions) != len(b.Tokens) {
		return fmt.Errorf("%w: %d positions for %d tokens", ErrBatch, len(b.Positions), len(b.Tokens))
	}
	if have, want := cache.Shape(), s.cfg.KV(); have != want {
		return fmt.Errorf("%w: KV cache of %d layers of %d heads of %d for a model of %d layers of %d of %d", ErrBatch,
			have.Layers, have.Heads, have.HeadDim, want.Layers, want.Heads, want.HeadDim)
	}
	for i, t := range b.Tokens {
		if t < 0 || int(t) >= s.cfg.Vocab {
			return fmt.Errorf("%w: token %d at %d is outside the vocabulary of %d", ErrBatch, t, i, s.cfg.Vocab)
		}
	}
	end := 0
	for i := range b.Spans {
		sp := &b.Spans[i]
		if sp.Start != end || sp.End <= sp.Start || sp.End > len(b.Tokens) || sp.Out < 0 || sp.Out > sp.End-sp.Start {
			return fmt.Errorf("%w: span %d is [%d, %d) with %d outputs, after %d of %d tokens", ErrBatch, i, sp.Start, sp.End, sp.Out, end, len(b.Tokens))
		}
		end = sp.End
		if err := s.checkPlace(sp, b.Positions[sp.Start:sp.End], cache); err != nil {
			return fmt.Errorf("%w: span %d %w", ErrBatch, i, err)
		}
	}
	if end != len(b.Tokens) {
		return fmt.Errorf("%w: spans cover %d of %d tokens", ErrBatch, end, len(b.Tokens))
	}
	return nil
}

// checkPlace verifies that a span's keys and values have a place of their own.
func (s *step) checkPlace(sp *Span, pos []int32, cache *kv.Cache) error {
	if sp.KV == nil || !sp.KV.Of(cache) {
		return errors.New("is of another KV cache")
	}
	first := int(pos[0])
	for i, p := range pos {
		if p < 0 || int(p) != first+i {
			return fmt.Errorf("has position %d at %d", p, i)
		}
	}
	last := first + len(pos) - 1
	if last >= s.cfg.Context {
		return fmt.Errorf("reaches position %d, beyond the context of %d", last, s.cfg.Context)
	}
	if last >= sp.KV.Len() {
		return fmt.Errorf("reaches position %d of a KV sequence of %d", last, sp.KV.Len())
	}
	if at, shared := sp.KV.FirstShared(first, last); shared {
		return fmt.Errorf("writes to position %d on, in a block that is shared", at)
	}
	return nil
}

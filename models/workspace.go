package models

import (
	"errors"
	"fmt"

	"github.com/lutra-lm/lutra/kernels"
)

// ErrBatch says that a batch cannot be computed as it stands. Nothing has been
// written when Forward returns it.
var ErrBatch = errors.New("models: invalid batch")

// rowRun is a run of rows of the batch that are consecutive tokens of one sequence.
type rowRun struct {
	seq  *KVSeq
	row  int // first row
	rows int
	pos  int // position of the first row
	out  int // rows at its end that want logits
}

// step is the work space of one Forward: the rows under way and their
// buffers, which grow to the largest batch seen and are then reused.
type step struct {
	cfg  Config
	rows int // T until trim, then the rows that want logits
	runs []rowRun
	// runOf[i] is the run that row i belongs to.
	runOf []int32

	acts kernels.Acts
	ops  rowOps
	att  *attention

	x, h, y  []float32 // [T][Hidden] residual stream, normed, a block's output
	q, a     []float32 // [T][Heads*HeadDim] queries, attended values
	k, v     []float32 // [T][KVHeads*HeadDim]
	gate, up []float32 // [T][FFN]
	cos, sin []float32 // [T][pairs] angles of the rows' positions
	size     int       // rows the buffers have room for
}

func newStep(pool *kernels.Pool, cfg Config) *step {
	return &step{cfg: cfg, ops: rowOps{pool: pool}, att: newAttention(pool, cfg)}
}

// begin checks b and makes room for it. Nothing has changed when it fails.
func (s *step) begin(b *Batch, kv *KVCache, r *rope) error {
	if err := s.check(b, kv); err != nil {
		return err
	}
	n := len(b.Tokens)
	s.reserve(n, len(r.freq))
	s.rows, s.runs, s.runOf = n, s.runs[:0], s.runOf[:0]
	for i := range b.Spans {
		sp := &b.Spans[i]
		s.runs = append(s.runs, rowRun{seq: sp.KV, row: sp.Start, rows: sp.End - sp.Start, pos: int(b.Positions[sp.Start]), out: sp.Out})
		for range sp.End - sp.Start {
			s.runOf = append(s.runOf, int32(i))
		}
	}
	r.angles(s.cos, s.sin, b.Positions)
	s.att.plan(s.runs)
	outputs := b.Outputs() * s.cfg.Outputs
	if cap(b.Logits) < outputs {
		b.Logits = make([]float32, outputs)
	}
	b.Logits = b.Logits[:outputs]
	return nil
}

// check verifies that b can be computed.
func (s *step) check(b *Batch, kv *KVCache) error {
	if len(b.Positions) != len(b.Tokens) {
		return fmt.Errorf("%w: %d positions for %d tokens", ErrBatch, len(b.Positions), len(b.Tokens))
	}
	if kv.heads != s.cfg.KVHeads || kv.dim != s.cfg.HeadDim || len(kv.layers) != s.cfg.Layers {
		return fmt.Errorf("%w: KV cache of %d layers of %d heads of %d for a model of %d layers of %d of %d", ErrBatch,
			len(kv.layers), kv.heads, kv.dim, s.cfg.Layers, s.cfg.KVHeads, s.cfg.HeadDim)
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
		if err := s.checkPlace(sp, b.Positions[sp.Start:sp.End], kv); err != nil {
			return fmt.Errorf("%w: span %d %w", ErrBatch, i, err)
		}
	}
	if end != len(b.Tokens) {
		return fmt.Errorf("%w: spans cover %d of %d tokens", ErrBatch, end, len(b.Tokens))
	}
	return nil
}

// checkPlace verifies that a span's keys and values have a place of their own.
func (s *step) checkPlace(sp *Span, pos []int32, kv *KVCache) error {
	if sp.KV == nil || sp.KV.c != kv {
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
	if last >= sp.KV.n {
		return fmt.Errorf("reaches position %d of a KV sequence of %d", last, sp.KV.n)
	}
	for i := first / kv.opt.BlockLen; i <= last/kv.opt.BlockLen; i++ {
		if !kv.writable(sp.KV.blocks[i]) {
			return fmt.Errorf("writes to position %d on, in a block that is shared", i*kv.opt.BlockLen)
		}
	}
	return nil
}

// reserve makes room for n rows.
func (s *step) reserve(n, pairs int) {
	if n > s.size {
		s.size = n
		c := &s.cfg
		for _, buf := range []struct {
			at    *[]float32
			width int
		}{
			{&s.x, c.Hidden}, {&s.h, c.Hidden}, {&s.y, c.Hidden},
			{&s.q, c.Heads * c.HeadDim}, {&s.a, c.Heads * c.HeadDim},
			{&s.k, c.KVHeads * c.HeadDim}, {&s.v, c.KVHeads * c.HeadDim},
			{&s.gate, c.FFN}, {&s.up, c.FFN},
			{&s.cos, pairs}, {&s.sin, pairs},
		} {
			*buf.at = make([]float32, n*buf.width)
		}
	}
	s.cos, s.sin = s.cos[:n*pairs], s.sin[:n*pairs]
}

// keep finishes the keys and values of all rows, k and v, and writes them into
// a layer of the cache. The bias may be nil.
func (s *step) keep(kv *KVCache, layer int, keys *heads, vBias []float32) {
	width := s.cfg.KVHeads * s.cfg.HeadDim
	s.ops.rotate(s.k, s.rows, width, keys, s.cfg.HeadDim, s.cfg.NormEps, s.cos, s.sin)
	s.ops.addBias(s.v, s.rows, vBias)
	s.ops.store(kv, layer, s, s.k, s.v)
}

// attend turns the rows' queries q into attended values a.
func (s *step) attend(kv *KVCache, layer int, queries *heads) {
	s.ops.rotate(s.q, s.rows, s.cfg.Heads*s.cfg.HeadDim, queries, s.cfg.HeadDim, s.cfg.NormEps, s.cos, s.sin)
	s.att.run(s.a, s.q, kv, layer)
}

// trim drops the rows that want no logits; of them the last layer needs keys
// and values only. It moves up the rows of x, h, cos and sin, and tells
// whether anything changed.
func (s *step) trim() bool {
	pairs, n, all := len(s.cos)/s.rows, 0, s.rows
	for i := range s.runs {
		r := &s.runs[i]
		skip := r.rows - r.out
		from := r.row + skip
		r.row, r.rows, r.pos = n, r.out, r.pos+skip
		if from != n {
			moveRows(s.x, n, from, r.out, s.cfg.Hidden)
			moveRows(s.h, n, from, r.out, s.cfg.Hidden)
			moveRows(s.cos, n, from, r.out, pairs)
			moveRows(s.sin, n, from, r.out, pairs)
		}
		n += r.out
	}
	if n == all {
		return false
	}
	s.rows = n
	s.cos, s.sin = s.cos[:n*pairs], s.sin[:n*pairs]
	s.att.plan(s.runs)
	return true
}

func moveRows(x []float32, to, from, n, width int) {
	copy(x[to*width:(to+n)*width], x[from*width:(from+n)*width])
}

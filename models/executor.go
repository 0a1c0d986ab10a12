package models

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/recurrent"
)

// ErrBatch says that a batch cannot be computed as it stands. Nothing has been
// written when Forward returns it.
var ErrBatch = errors.New("models: invalid batch")

// executor runs a decoder over batches on the CPU: it divides the rows into
// shards and has the workers take them through the graph.
//
// For a model that fits the caches, each worker runs its own shard through every
// layer and reads all weights. Workers wait for each other only at the end or,
// where rows of one sequence are in several shards, at each stage. The rows of a
// larger model or of one with recurrent layers, where the rows of a sequence go one
// after the other, or with mixtures of experts, where all rows that chose an expert
// meet, and a single row, are one shard: the whole pool divides each of its operations.
type executor struct {
	cfg    Config
	pool   *pool.Pool
	device *device
	alone  bool // each worker runs shards of its own

	shards []rowShard
	whole  workspace   // the pool's
	own    []workspace // one a worker
	model  *decoder
	lo, hi int // stages under way

	rowPos   []attention.RowPos
	wanted   []bool           // [T] the row wants logits
	spans    []recurrent.Span // of models with recurrent layers
	x, qkv   []float32        // [T][Hidden], [T][rowWidth]
	angles   [2]angles        // of each of the model's ropes
	second   []bool           // [T] the row belongs to the second text of a pair
	size     int              // rows these have room for
	rowWidth int              // the widest mixer's
}

// aloneBytes is the size of weights up to which each worker runs shards of its own.
const aloneBytes = 8 << 20

// shardRows is the most rows of a worker's shard: more would not stay in its own
// cache. Where each worker takes several shards, they have tileRows, as many as
// lookups take at a time: only the last has idle lanes, and workers of unequal
// speed end closer together.
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

// newExecutor makes room for the steps of a model, whose rows are so wide and which
// may have recurrent layers. local: its matrices are the CPU's.
func newExecutor(opt *LoadOptions, cfg Config, local bool, rowWidth int, shape recurrent.Shape) *executor {
	p := opt.Pool
	e := &executor{
		cfg: cfg, pool: p, device: newDevice(opt), rowWidth: rowWidth, alone: local && cfg.Bytes <= aloneBytes && cfg.State == 0 && cfg.Experts == 0,
		whole: newWorkspace(pool.Workers{Pool: p}, cfg, shape),
	}
	if cfg.Experts > 0 {
		e.whole.experts = newExpertPass(p, local)
	}
	for range p.Threads() {
		e.own = append(e.own, newWorkspace(pool.Workers{Pool: p, Alone: true}, cfg, shape))
	}
	return e
}

// forward runs m over b; see Model.
func (e *executor) forward(m *decoder, b *Batch, cache *kv.Cache) error {
	if err := e.check(b, cache); err != nil {
		return err
	}
	e.begin(b, cache, m)
	e.model, e.lo, e.hi = m, 0, stages(m)
	switch {
	case len(e.shards) == 1:
		e.shards[0].workspace = &e.whole
		e.shards[0].run(m, e.lo, e.hi)
	case !e.joined():
		e.pool.Run(e, len(e.shards))
	default:
		for i := range stages(m) {
			e.lo, e.hi = i, i+1
			e.pool.Run(e, len(e.shards))
		}
	}
	err := e.whole.ops.err()
	for i := range e.own {
		err = errors.Join(err, e.own[i].ops.err())
	}
	return errors.Join(err, e.device.err())
}

// Do takes a shard through the stages under way.
func (e *executor) Do(worker, i int) {
	sh := &e.shards[i]
	sh.workspace = &e.own[worker]
	sh.acts.Pin(worker)
	sh.run(e.model, e.lo, e.hi)
}

// joined tells whether shards need one another's keys and values.
func (e *executor) joined() bool {
	end := 0
	for i := range e.shards[:len(e.shards)-1] {
		end += e.shards[i].rows
		if e.rowPos[end-1].Seq == e.rowPos[end].Seq {
			return true
		}
	}
	return false
}

// begin lists the rows of a checked batch and divides them.
func (e *executor) begin(b *Batch, cache *kv.Cache, m *decoder) {
	n, c := len(b.Tokens), &e.cfg
	pairs, width := len(m.ropes[0].freq), e.rowWidth
	if n > e.size {
		e.size = n
		e.x, e.qkv = make([]float32, n*c.Hidden), make([]float32, n*width)
		for i := range m.ropes {
			e.angles[i] = angles{make([]float32, n*pairs), make([]float32, n*pairs)}
		}
	}
	e.rowPos, e.wanted, e.spans = e.rowPos[:0], e.wanted[:0], e.spans[:0]
	for i := range b.Spans {
		sp := &b.Spans[i]
		if c.State > 0 {
			e.spans = append(e.spans, recurrentSpan(sp, int(b.Positions[sp.Start])))
		}
		for row := sp.Start; row < sp.End; row++ {
			at := attention.RowPos{Seq: sp.KV, Pos: int(b.Positions[row])}
			if c.Whole {
				at.All = sp.End - sp.Start
			}
			e.rowPos = append(e.rowPos, at)
			e.wanted = append(e.wanted, row >= sp.End-sp.Out)
		}
	}
	e.device.begin(e.rowPos)
	for i := range m.ropes {
		m.ropes[i].angles(e.angles[i].cos[:n*pairs], e.angles[i].sin[:n*pairs], b.Positions)
	}
	e.second = m.enc.secondTexts(e.second[:0], b)
	outputs := b.Outputs() * c.Outputs
	if cap(b.Logits) < outputs {
		b.Logits = make([]float32, outputs)
	}
	b.Logits = b.Logits[:outputs]

	count, rows, att := 1, 0, e.whole.att
	if e.alone {
		count, rows = divide(n, e.pool.Threads())
	}
	if count > 1 {
		att = e.own[0].att
	}
	e.shards = slices.Grow(e.shards[:0], count)[:count]
	out := 0
	for i := range e.shards {
		sh, lo, hi := &e.shards[i], i*n/count, (i+1)*n/count
		if rows > 0 {
			lo, hi = i*rows, min(n, (i+1)*rows)
		}
		*sh = rowShard{
			plan: sh.plan, cfg: c, device: e.device, kv: cache, spans: e.spans, rows: hi - lo, tokens: b.Tokens[lo:hi], rowPos: e.rowPos[lo:hi], wanted: e.wanted[lo:hi],
			x: rowsOf(e.x, lo, hi, c.Hidden), qkv: rowsOf(e.qkv, lo, hi, width),
			pairs: pairs, logits: b.Logits[out*c.Outputs:],
		}
		for k := range m.ropes {
			sh.angles[k] = angles{rowsOf(e.angles[k].cos, lo, hi, pairs), rowsOf(e.angles[k].sin, lo, hi, pairs)}
		}
		if len(e.second) > 0 {
			sh.second = e.second[lo:hi]
		}
		att.MakePlan(&sh.plan, sh.rowPos, cache)
		for _, wanted := range sh.wanted {
			if wanted {
				out++
			}
		}
	}
}

// recurrentSpan moves the recurrent state of a span's sequence on, whose first row
// has position pos.
func recurrentSpan(sp *Span, pos int) recurrent.Span {
	n := sp.End - sp.Start
	state, mark, at := sp.KV.Advance(pos + n)
	return recurrent.Span{First: sp.Start, N: n, Position: pos, State: state, Copy: mark, CopyAt: at - pos}
}

// rowsOf is rows [lo, hi) of x, which has rows of width elements.
func rowsOf(x []float32, lo, hi, width int) []float32 { return x[lo*width : hi*width] }

// check verifies that b can be computed.
func (e *executor) check(b *Batch, cache *kv.Cache) error {
	if len(b.Positions) != len(b.Tokens) {
		return fmt.Errorf("%w: %d positions for %d tokens", ErrBatch, len(b.Positions), len(b.Tokens))
	}
	if have, want := cache.Shape(), e.cfg.KV(); have != want {
		return fmt.Errorf("%w: KV cache of %d layers of %d heads of %d and states of %d for a model of %d layers of %d of %d and states of %d", ErrBatch,
			have.Layers, have.Heads, have.HeadDim, have.State, want.Layers, want.Heads, want.HeadDim, want.State)
	}
	for i, t := range b.Tokens {
		if t < 0 || int(t) >= e.cfg.Vocab {
			return fmt.Errorf("%w: token %d at %d is outside the vocabulary of %d", ErrBatch, t, i, e.cfg.Vocab)
		}
	}
	end := 0
	for i := range b.Spans {
		sp := &b.Spans[i]
		if sp.Start != end || sp.End <= sp.Start || sp.End > len(b.Tokens) || sp.Out < 0 || sp.Out > sp.End-sp.Start {
			return fmt.Errorf("%w: span %d is [%d, %d) with %d outputs, after %d of %d tokens", ErrBatch, i, sp.Start, sp.End, sp.Out, end, len(b.Tokens))
		}
		end = sp.End
		if err := e.checkPositions(sp, b.Positions[sp.Start:sp.End], cache); err != nil {
			return fmt.Errorf("%w: span %d %w", ErrBatch, i, err)
		}
	}
	if end != len(b.Tokens) {
		return fmt.Errorf("%w: spans cover %d of %d tokens", ErrBatch, end, len(b.Tokens))
	}
	return nil
}

// checkPositions verifies that a span's keys and values have positions of their own.
func (e *executor) checkPositions(sp *Span, pos []int32, cache *kv.Cache) error {
	if sp.KV == nil || !sp.KV.In(cache) {
		return errors.New("is of another KV cache")
	}
	first := int(pos[0])
	for i, p := range pos {
		if p < 0 || int(p) != first+i {
			return fmt.Errorf("has position %d at %d", p, i)
		}
	}
	last := first + len(pos) - 1
	if last >= e.cfg.Context {
		return fmt.Errorf("reaches position %d, beyond the context of %d", last, e.cfg.Context)
	}
	if e.cfg.Whole && (first != 0 || last+1 != sp.KV.Len()) {
		return fmt.Errorf("is [%d, %d] of a sequence of %d, which must be whole", first, last, sp.KV.Len())
	}
	if last >= sp.KV.Len() {
		return fmt.Errorf("reaches position %d of a KV sequence of %d", last, sp.KV.Len())
	}
	if at, shared := sp.KV.FirstShared(first, last); shared {
		return fmt.Errorf("writes to position %d on, in a block that is shared", at)
	}
	if at, own := sp.KV.StateAt(); e.cfg.State > 0 && (at != first || !own) {
		return fmt.Errorf("begins at position %d, where the recurrent state is that of %d tokens, shared: %t", first, at, !own)
	}
	return nil
}

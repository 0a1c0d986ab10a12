package models

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/recurrent"
)

// executor runs a decoder over batches on the CPU: it divides the rows into shards and has the workers take
// them through the graph.
//
// If a model fits a core's caches, or in steps of many rows the cache that all cores share, each worker runs
// its own shard through every layer and reads all weights. Workers wait for each other only at the end or, if
// rows of one sequence are in several shards, at each stage.
//
// All other steps are one shard, and the whole pool divides each of its operations. These are single rows and few rows
// of a larger model. Rows of models with recurrent layers belong to them, where a sequence's rows go one after the
// other, and rows of mixtures, where all rows that chose an expert meet.
type executor struct {
	cfg    *spec
	graph  *decoder
	pool   *pool.Pool
	device *device
	alone  bool // workers may run shards of their own
	cached bool // all weights fit a core's caches

	shards []rowShard
	whole  workspace   // the pool's
	own    []workspace // one a worker
	lo, hi int         // stages under way

	stepRows
	rowWidth int // the widest mixer's

	ahead    *executor // predicts one token further ahead; nil: nothing does
	known    variants
	adapters atomic.Int32 // that were loaded
}

// stepRows is the rows of a step.
type stepRows struct {
	rowPos   []attention.RowPos
	variants []*Variant       // [T] of the rows; empty: all are computed by the model as it is
	wanted   []bool           // [T] the row wants logits
	spans    []recurrent.Span // of models with recurrent layers
	copies   []recurrent.Copy // of the spans' states
	undo     []recurrent.Undo
	x, qkv   []float32 // [T][Hidden], [T][rowWidth]
	inputs   []float32 // [T][Layers·LayerInputs]
	angles   [2]angles // of each of the model's ropes
	second   []bool    // [T] the row belongs to the second text of a pair
	size     int       // rows these have room for
}

// cachedBytes is the size of weights up to which they are taken to fit a core's caches.
const cachedBytes = 8 << 20

// aloneBytes is the size of weights up to which workers run shards of their own: from memory, reading all
// weights for each shard takes longer than what shards save.
func aloneBytes() int64 { return max(cachedBytes, int64(cpu.LastCache())/2) }

// shardRows is the most rows of a worker's shard: more would not stay in its own cache. If each worker takes
// several shards, they have tileRows, as many as lookups take at a time. Then only the last has idle lanes, and
// workers of unequal speed end closer together.
const (
	shardRows = 32
	tileRows  = 16
)

// Of a model that does not fit a core's caches, shards have manyRows or more, which all kernels multiply at
// their best rate. A worker takes manyShards or more, so that shards of unequal work or speed end close
// together.
const (
	manyRows   = 64
	manyShards = 2
)

// divide says into how many shards n rows are divided among workers, and how
// many rows all but the last have; zero: as equal as can be.
func divide(n, workers int, cached bool) (count, rows int) {
	if !cached {
		if each := n / (workers * manyRows); each >= manyShards {
			return each * workers, 0
		}
		return 1, 0
	}
	if n <= shardRows*workers {
		return min(n, workers), 0
	}
	return pool.Parts(n, tileRows), tileRows
}

// newExecutor makes room for the steps of a graph. local: its matrices are the CPU's.
func newExecutor(opt *LoadOptions, graph *decoder, local bool) *executor {
	p, cfg := opt.Pool, graph.spec
	e := &executor{
		cfg: cfg, graph: graph, pool: p, device: newDevice(opt), rowWidth: graph.rowWidth(),
		alone:  local && cfg.Bytes <= aloneBytes() && cfg.State == 0 && cfg.Experts == 0 && opt.Observe == nil,
		cached: cfg.Bytes <= cachedBytes,
		whole:  newWorkspace(pool.Workers{Pool: p}, cfg),
	}
	if graph.predicts != nil {
		e.whole.joinedWidth = 2 * cfg.Hidden
	}
	for range p.Threads() {
		e.own = append(e.own, newWorkspace(pool.Workers{Pool: p, Alone: true}, cfg))
		e.own[len(e.own)-1].joinedWidth = e.whole.joinedWidth
	}
	return e
}

// Config returns the model's shape.
func (e *executor) Config() Config { return e.cfg.Config }

// Forward runs one step; see Model. It fails from when the file, which the
// embedding is read from, was changed: gguf.ErrChanged.
func (e *executor) Forward(b *Batch, cache *kv.Cache) error {
	return e.forward(b, cache, e.cfg.Context)
}

// forward does as Forward, of sequences of context tokens at most.
func (e *executor) forward(b *Batch, cache *kv.Cache, context int) error {
	if err := e.cfg.check(b, cache, e.graph, context); err != nil {
		return err
	}
	if want := len(b.Tokens) * e.cfg.Hidden; e.graph.predicts != nil && len(b.Before) != want {
		return fmt.Errorf("%w: %d numbers of hidden states, want %d", ErrBatch, len(b.Before), want)
	}
	e.begin(b, cache)
	e.run()
	err := e.whole.ops.err()
	for i := range e.own {
		err = errors.Join(err, e.own[i].ops.err())
	}
	if err = errors.Join(err, e.device.err()); err != nil {
		return err
	}
	return e.graph.err()
}

// close gives back the weights.
func (e *executor) close() error { return e.graph.memory.Free() }

// run takes the shards through all stages.
func (e *executor) run() {
	n := e.graph.stages()
	e.lo, e.hi = 0, n
	switch {
	case len(e.shards) == 1:
		e.shards[0].workspace = &e.whole
		e.through(&e.shards[0])
	case !e.exchangesKeys():
		e.pool.Run(e, len(e.shards))
	default:
		for i := range n {
			e.lo, e.hi = i, i+1
			e.pool.Run(e, len(e.shards))
		}
	}
}

// Do takes a shard through the stages under way.
func (e *executor) Do(worker, i int) {
	sh := &e.shards[i]
	sh.workspace = &e.own[worker]
	sh.acts.Pin(worker)
	e.through(sh)
}

// through takes a shard through the stages under way, until it has no rows left.
func (e *executor) through(sh *rowShard) {
	sh.reserve(sh.rows, e.cfg)
	for i := e.lo; i < e.hi && sh.rows > 0; i++ {
		e.graph.stage(sh, i)
	}
}

// exchangesKeys tells whether shards need one another's keys and values.
func (e *executor) exchangesKeys() bool {
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
func (e *executor) begin(b *Batch, cache *kv.Cache) {
	n := len(b.Tokens)
	e.reserve(n)
	e.listRows(b)
	if e.cfg.State > 0 {
		e.whole.rec.Begin(e.spans)
	}
	e.device.begin(e.rowPos)
	e.device.adapted = e.adapters.Load() > 0 || b.Probe != nil || b.KeepStates
	for i := range e.graph.ropes {
		r := &e.graph.ropes[i]
		r.angles(e.angles[i].cos[:n*r.pairs()], e.angles[i].sin[:n*r.pairs()], b.Positions)
	}
	e.second = e.graph.enc.secondTexts(e.second[:0], b)
	outputs := b.Outputs() * e.cfg.Outputs
	if cap(b.Logits) < outputs {
		b.Logits = make([]float32, outputs)
	}
	b.Logits = b.Logits[:outputs]
	readings := b.Outputs() * b.Probe.Width(&e.cfg.Config)
	b.Readings = slices.Grow(b.Readings[:0], readings)[:readings]
	clear(b.Readings)
	if states := n * e.cfg.Hidden; b.KeepStates {
		b.States = slices.Grow(b.States[:0], states)[:states]
	}
	e.divideRows(b, cache)
}

// reserve makes room for n rows.
func (e *executor) reserve(n int) {
	if n <= e.size {
		return
	}
	e.size = n
	e.x, e.qkv = make([]float32, n*e.cfg.Hidden), make([]float32, n*e.rowWidth)
	e.inputs = make([]float32, n*e.cfg.Layers*e.cfg.LayerInputs)
	for i := range e.graph.ropes {
		pairs := e.graph.ropes[i].pairs()
		e.angles[i] = angles{make([]float32, n*pairs), make([]float32, n*pairs), pairs}
	}
}

// listRows lists where the rows of b stand and which want logits, and moves recurrent
// states on.
func (e *executor) listRows(b *Batch) {
	e.rowPos, e.wanted, e.spans, e.copies, e.variants = e.rowPos[:0], e.wanted[:0], e.spans[:0], e.copies[:0], e.variants[:0]
	varied := slices.ContainsFunc(b.Spans, func(sp Span) bool { return sp.Variant != nil })
	for i := range b.Spans {
		sp := &b.Spans[i]
		if e.cfg.State > 0 {
			e.spans = append(e.spans, e.recurrentSpan(sp, int(b.Positions[sp.Start])))
		}
		for row := sp.Start; row < sp.End; row++ {
			at := attention.RowPos{Seq: sp.KV, Pos: int(b.Positions[row])}
			if e.cfg.Bidirectional {
				at.All = sp.End - sp.Start
			}
			e.rowPos = append(e.rowPos, at)
			e.wanted = append(e.wanted, row >= sp.End-sp.Out)
			if varied {
				e.variants = append(e.variants, sp.Variant)
			}
		}
	}
}

// divideRows makes the shards of b's rows.
func (e *executor) divideRows(b *Batch, cache *kv.Cache) {
	n, count, rows, att := len(b.Tokens), 1, 0, &e.whole.att
	if e.alone {
		count, rows = divide(n, e.pool.Threads(), e.cached)
	}
	if count > 1 {
		att = &e.own[0].att
	}
	e.shards = slices.Grow(e.shards[:0], count)[:count]
	out := 0
	for i := range e.shards {
		sh, lo, hi := &e.shards[i], i*n/count, (i+1)*n/count
		if rows > 0 {
			lo, hi = i*rows, min(n, (i+1)*rows)
		}
		*sh = rowShard{
			plans: sh.plans, adapters: sh.adapters, cfg: e.cfg, device: e.device, kv: cache, spans: e.spans, rows: hi - lo,
			tokens: b.Tokens[lo:hi], rowPos: e.rowPos[lo:hi], wanted: e.wanted[lo:hi],
			x: rowsOf(e.x, lo, hi, e.cfg.Hidden), qkv: rowsOf(e.qkv, lo, hi, e.rowWidth), inputs: rowsOf(e.inputs, lo, hi, e.cfg.Layers*e.cfg.LayerInputs), logits: b.Logits[out*e.cfg.Outputs:],
			probing: probing{by: b.Probe, readings: b.Readings[out*b.Probe.Width(&e.cfg.Config):]},
		}
		for k := range e.graph.ropes {
			pairs := e.graph.ropes[k].pairs()
			sh.angles[k] = angles{rowsOf(e.angles[k].cos, lo, hi, pairs), rowsOf(e.angles[k].sin, lo, hi, pairs), pairs}
		}
		if len(e.second) > 0 {
			sh.second = e.second[lo:hi]
		}
		if len(e.variants) > 0 {
			sh.variants = e.variants[lo:hi]
		}
		if e.graph.predicts != nil {
			sh.probing.before = rowsOf(b.Before, lo, hi, e.cfg.Hidden)
		}
		if b.KeepStates {
			sh.probing.made = rowsOf(b.States, lo, hi, e.cfg.Hidden)
		}
		sh.adapters.make(sh.variants)
		att.plan(&sh.plans, sh.rowPos, cache)
		for _, wanted := range sh.wanted {
			if wanted {
				out++
			}
		}
	}
}

// recurrentSpan moves the recurrent state of a span's sequence on, whose first row
// has position pos.
func (e *executor) recurrentSpan(sp *Span, pos int) recurrent.Span {
	n, most := sp.End-sp.Start, math.MaxInt
	if e.device.accelerator != nil {
		most = 1 // it has room for few states
	}
	from, first := sp.KV.StateVersion(), len(e.copies)
	state, marks := sp.KV.Advance(pos+n, most)
	for _, m := range marks {
		e.copies = append(e.copies, recurrent.Copy{After: m.At - pos, State: m.State})
	}
	return recurrent.Span{
		First: sp.Start, N: n, Position: pos, State: state, Copies: e.copies[first:], Guesses: sp.KV.Guesses() > 0, From: from, To: sp.KV.StateVersion(),
	}
}

// TakeBack undoes guesses; see Model.
func (e *executor) TakeBack(b *Batch, keep []int) {
	if e.cfg.State == 0 {
		return
	}
	e.undo = e.undo[:0]
	for i, n := range keep {
		if sp := &b.Spans[i]; n < sp.End-sp.Start {
			sp.KV.Undo(int(b.Positions[sp.Start]) + n)
			e.undo = append(e.undo, recurrent.Undo{Span: e.spans[i], Of: i, Keep: n})
		}
	}
	if len(e.undo) > 0 {
		e.whole.rec.TakeBack(e.undo)
	}
}

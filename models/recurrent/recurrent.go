package recurrent

import (
	"math"

	"github.com/lutra-lm/lutra/kernels/delta"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// Shape is the size of a recurrent layer. Value head h reads with the queries and
// keys of head h mod KeyHeads. Without heads the layer convolves its inputs, and that is all.
type Shape struct {
	KeyHeads, ValueHeads int
	Width                int // of a query, key or value: a multiple of delta.Tile
	Inputs               int // of a token, without heads
	Taps                 int // of the convolution: 2 to delta.MostTaps
	StateSpace               // in place of heads; zero: none
	// Grouped: value head h reads with head h·KeyHeads/ValueHeads instead.
	Grouped bool
}

// keyHead returns the head with whose queries and keys value head h reads.
func (s *Shape) keyHead(h int) int {
	if s.Grouped {
		return h * s.KeyHeads / s.ValueHeads
	}
	return h % s.KeyHeads
}

// Values returns the numbers of all value heads of a token.
func (s Shape) Values() int { return s.ValueHeads * s.Width }

// Channels returns the number of a token's channels that are convolved: of queries, keys and values, of inputs, or
// of a state space.
func (s Shape) Channels() int {
	return 2*s.KeyHeads*s.Width + s.Values() + s.Inputs + s.StateSpace.channels()
}

// tail returns the numbers of the rows that the convolution looks back to.
func (s Shape) tail() int { return (s.Taps - 1) * s.Channels() }

// Size returns the numbers of a sequence's state in one layer: the last inputs of the convolution,
// [Taps-1][Channels], then the state of each value head, in package delta's form, or of each head of a state space.
func (s Shape) Size() int {
	return s.tail() + s.ValueHeads*delta.Size(s.Width) + s.StateSpace.size()
}

// Weights are the weights of one layer, besides its matrices.
type Weights struct {
	Conv        []float32 // [Taps][Channels]
	A, DT       []float32 // [ValueHeads], or nil
	ConvBias, D []float32 // [Channels], or nil, and [Heads] of a state space
}

// Span is a run of consecutive rows of one sequence.
type Span struct {
	First, N int
	Position int       // of the first row in the sequence
	State    []float32 // of all layers, [layers][Size]
	Copies   []Copy    // in order
	// Guesses says that the rows after the only copy are guesses, which TakeBack may undo: it gets what they overwrite.
	Guesses bool
	// Versions of State before the rows and after them, by which a device knows what it has: see kv.Sequence.StateVersion.
	From, To uint64
}

// Copy is where a state belongs as it stands after some rows of a span, 1 to N.
type Copy struct {
	After int
	State []float32 // of all layers
}

// Pass runs the layers of a step. It is for one goroutine at a time.
type Pass struct {
	workers pool.Workers
	shape   Shape
	eps     float32
	scratch [][]float32 // a worker, for package delta, and for states that are spaces: see scan
	journal journal

	// Of the run under way.
	do     func(p *Pass, worker, part int)
	rows   []float32
	stride int
	gates  []float32
	spans  []Span
	at     int // where the layer's part of a state begins
	w      *Weights
}

// New makes a pass. Norms of queries and keys are eps at least.
func New(w pool.Workers, shape Shape, eps float32) *Pass {
	p := &Pass{workers: w, shape: shape, eps: eps, scratch: make([][]float32, w.N())}
	for i := range p.scratch {
		switch {
		case shape.ValueHeads > 0:
			p.scratch[i] = make([]float32, delta.Scratch(shape.Width))
		case shape.StateSpace.Heads > 0:
			p.scratch[i] = make([]float32, shape.StateSpace.scratch())
		}
	}
	return p
}

// Run takes rows through recurrent layer number layer. They stand stride apart and begin with queries, keys and
// values [Channels]. Gates are the products for beta and decay, [2·ValueHeads] a row. Each row's outputs replace
// its values. Without heads rows begin with inputs, which their convolution replaces, or with x, B, C and dt of a
// state space, whose outputs replace x; gates are nil.
func (p *Pass) Run(rows []float32, stride int, gates []float32, spans []Span, layer int, w *Weights) {
	m := p.workers.Pool.Meter()
	start := m.Start()
	p.rows, p.stride, p.gates, p.spans, p.at, p.w = rows, stride, gates, spans, layer*p.shape.Size(), w
	p.journal.note(p, layer)
	p.step()
	if m.Enabled() {
		state, n := int64(p.shape.Values()*p.shape.Width+p.shape.StateSpace.size()), int64(len(rows)/stride)
		m.Stop(meter.Attention, start, p.workers.N(), 3*state*n, 4*state*(int64(len(spans))+n/delta.Chunk))
	}
	p.rows, p.gates, p.spans, p.w = nil, nil, nil, nil
}

// step takes the rows of the run under way through the layer.
func (p *Pass) step() {
	p.each((*Pass).convolve, len(p.spans)*p.tiles())
	if p.shape.ValueHeads > 0 {
		p.each((*Pass).prepare, len(p.rows)/p.stride)
		p.each((*Pass).update, len(p.spans)*p.shape.ValueHeads)
	}
	if n := p.shape.StateSpace.Heads; n > 0 {
		p.each((*Pass).scan, len(p.spans)*n)
	}
}

func (p *Pass) each(do func(p *Pass, worker, part int), parts int) {
	p.do = do
	p.workers.Run(p, parts)
}

// Do computes one part.
func (p *Pass) Do(worker, part int) { p.do(p, worker, part) }

// tiles returns the number of parts that the channels make.
func (p *Pass) tiles() int { return pool.Parts(p.shape.Channels(), delta.Channels) }

// convolve computes some channels of a span.
func (p *Pass) convolve(_, part int) {
	s, sp := &p.shape, &p.spans[part/p.tiles()]
	all := s.Channels()
	lo := part % p.tiles() * delta.Channels
	n := min(delta.Channels, all-lo)
	var bias []float32
	if p.w.ConvBias != nil {
		bias = p.w.ConvBias[lo:]
	}
	x, tail := p.rows[sp.First*p.stride+lo:], sp.State[p.at:][lo:s.tail()]
	for _, c := range sp.Copies {
		delta.Tail(c.State[p.at:][lo:s.tail()], x, c.After, p.stride, n, tail, all, s.Taps)
	}
	delta.Conv(x, sp.N, p.stride, n, p.w.Conv[lo:], bias, tail, all, s.Taps, s.ValueHeads+s.StateSpace.Heads > 0)
}

// prepare makes the queries, keys and gates of one row what the states take.
func (p *Pass) prepare(_, row int) {
	s, x, gates := &p.shape, p.rows[row*p.stride:], p.gates[2*row*p.shape.ValueHeads:]
	scale := float32(1 / math.Sqrt(float64(s.Width)))
	for h := range 2 * s.KeyHeads {
		if h == s.KeyHeads {
			scale = 1
		}
		vector.L2Norm(x[h*s.Width:(h+1)*s.Width], scale, p.eps)
	}
	delta.Gates(gates[s.ValueHeads:2*s.ValueHeads], gates[:s.ValueHeads], p.w.A, p.w.DT)
}

// update takes a span through the state of one value head.
func (p *Pass) update(worker, part int) {
	s, sp, head := &p.shape, &p.spans[part/p.shape.ValueHeads], part%p.shape.ValueHeads
	key := s.keyHead(head)
	q, k, v := key*s.Width, (s.KeyHeads+key)*s.Width, (2*s.KeyHeads+head)*s.Width
	size := delta.Size(s.Width)
	lo := p.at + s.tail() + head*size
	state := sp.State[lo : lo+size]
	run := func(from, to int) {
		if from == to {
			return
		}
		x, gates := p.rows[(sp.First+from)*p.stride:], p.gates[2*(sp.First+from)*s.ValueHeads:]
		delta.Update(state, s.Width, &delta.Tokens{
			N: to - from, Position: sp.Position + from, Q: x[q:], K: x[k:], V: x[v:], Stride: p.stride,
			Decay: gates[s.ValueHeads+head:], Beta: gates[head:], Gates: 2 * s.ValueHeads,
		}, p.scratch[worker])
	}
	from := 0
	for _, c := range sp.Copies {
		run(from, c.After)
		sp.save(c, lo+sp.overwritten(s.Width), lo+size)
		from = c.After
	}
	run(from, sp.N)
}

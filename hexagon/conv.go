package hexagon

import (
	"slices"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/models"
)

// tailShape gives the sizes of the data that recurrent layers of one sequence look back to. These are
// [taps-1][channels]float32 of each layer, the last rows before a convolution, and the states of a delta net. The device has room for slots of these.
type tailShape struct {
	layers, taps, channels int
	heads, width           int // of states; 0: there are none
	at                     region
	slots                  int
}

// tails are the tails that the device has of some sequences. The device goes on from them by itself. The
// states of the KV cache stay the truth: a step gives back the new ones. A slot gets a copy of the states that
// the device lacks, by their versions.
type tails struct {
	*tailShape
	q     *request
	slots []tail
	clock uint64 // of requests

	// Of the step under way: its states get theirs when all of it has run.
	spans   []spanTail
	pending []float32
}

// tail is the bookkeeping of a slot.
type tail struct {
	has  []uint64 // [layers] versions, see kv.Sequence.StateVersion; 0: it has nothing
	used uint64   // by which request
}

// spanTail is a span of a step: its slot, -1 before its first row, and the places in pending of the tails after its
// rows and of its checkpoint's tails.
type spanTail struct {
	slot     int32
	at, mark int
	marked   int32     // the slot that gets the states of its checkpoint, if that is within a request's rows
	states   []float32 // of all layers, if others have got its slot
}

// convPart is rows of a request that are one span's, the first of which has done of the span's before it.
type convPart struct{ span, first, n, done int }

// tailBytes is the memory for tails, unless a sequence's are larger. stateBytes is the memory with states of delta
// nets, of which one sequence has at most mostBytes: further layers are the host's.
const tailBytes, stateBytes, mostBytes = 16 << 20, 128 << 20, 512 << 20

// conv takes a layer's short convolution. It returns the reason where it does not.
func (d *layerPlan) conv(a *arena, l *layer) (why string) {
	if len(l.qkv.parts) != 1 || d.m.Parallel {
		return "a short convolution reads outputs of several products, or what the feed-forward reads"
	}
	if why := d.tails.take(l, tailShape{taps: l.Conv.Taps, channels: d.m.Hidden}, l.Conv.Weights); why != "" {
		return why
	}
	l.taps = d.vectors.add(a, l.Conv.Weights, len(l.Conv.Weights))
	return ""
}

// take makes room for a layer of a shape, with weights of a convolution, in slots. All layers have one. It
// returns the reason where it does not.
func (t *tailShape) take(l *layer, shape tailShape, weights []float32) (why string) {
	shape.layers = t.layers + 1
	switch {
	case shape.taps < 2 || shape.taps > device.MaxTaps || len(weights) != shape.taps*shape.channels || shape.channels > device.MaxDim:
		return "its convolution has more taps or channels than a packet takes"
	case shape.size() > mostBytes:
		return "the states of a sequence take more memory than the device has for them"
	case t.layers > 0 && (shape.taps != t.taps || shape.channels != t.channels || shape.heads != t.heads || shape.width != t.width):
		return "its states have another shape than those of the layers before it"
	}
	l.tail = t.layers
	t.layers, t.taps, t.channels, t.heads, t.width = shape.layers, shape.taps, shape.channels, shape.heads, shape.width
	return ""
}

// rows counts the numbers of the rows that a layer looks back to, states the numbers of a delta net's states.
func (t *tailShape) rows() int   { return (t.taps - 1) * t.channels }
func (t *tailShape) states() int { return t.heads * t.width * t.width }

// size returns the bytes of a slot.
func (t *tailShape) size() int { return 4 * t.layers * (t.rows() + t.states()) }

// rowsAt and statesAt return the places of a layer's rows and states in a slot.
func (t *tailShape) rowsAt(slot int32, l *layer) uint32 {
	return t.at.at + uint32(int(slot)*t.size()+4*l.tail*(t.rows()+t.states()))
}
func (t *tailShape) statesAt(slot int32, l *layer) uint32 {
	return t.rowsAt(slot, l) + uint32(4*t.rows())
}

// reserve makes room for the tails of so many sequences, or fewer.
func (t *tailShape) reserve(a *arena, sequences int) {
	if t.layers == 0 {
		return
	}
	t.slots = max(1, min(sequences, tailBytes/t.size()))
	if t.heads > 0 {
		t.slots = max(2, min(sequences, stateBytes/t.size())) // of a checkpoint, too
	}
	t.at = a.region(t.slots * t.size())
}

// begin makes ready for a step.
func (t *tails) begin(s *models.DenseStep) {
	if t.slots == nil {
		t.slots = make([]tail, t.tailShape.slots)
		for i := range t.slots {
			t.slots[i].has = make([]uint64, t.layers)
		}
	}
	t.spans = t.spans[:0]
	size, n := t.layers*t.rows(), 0
	for i := range s.Spans {
		of := spanTail{slot: -1, at: n, marked: -1}
		if n += size; len(s.Spans[i].Copies) > 0 {
			of.mark = n
			n += size
		}
		t.spans = append(t.spans, of)
	}
	t.pending = slices.Grow(t.pending[:0], n)[:n]
}

// cut returns the parts of rows [lo, hi) of a step that spans are, and where they end: there are slots for
// so many.
func (t *tails) cut(parts []convPart, s *models.DenseStep, lo, hi int) ([]convPart, int) {
	slots := 0
	for i := range s.Spans {
		sp := &s.Spans[i]
		from, to := max(lo, sp.First), min(hi, sp.First+sp.N)
		if from >= to {
			continue
		}
		p := convPart{span: i, first: from - lo, n: to - from, done: from - sp.First}
		if slots++; t.marks(sp, &p) {
			slots++
		}
		if slots > len(t.slots) {
			return parts, from
		}
		parts = append(parts, p)
	}
	return parts, hi
}

// marks tells whether a checkpoint is within a part's rows, so that its states are another slot's. A span has
// one at most.
func (t *tails) marks(sp *models.RecurrentSpan, p *convPart) bool {
	return t.heads > 0 && len(sp.Copies) > 0 && sp.Copies[0].After > p.done && sp.Copies[0].After < p.done+p.n
}

// hold finds slots for the parts of a request, of which a span that goes on is the first.
func (t *tails) hold(s *models.DenseStep, parts []convPart) {
	t.clock++
	for _, p := range parts {
		of := &t.spans[p.span]
		if of.slot < 0 {
			of.slot = t.slot(s.Spans[p.span].From)
		}
		t.slots[of.slot].used = t.clock
	}
	for i := range parts {
		if p := &parts[i]; t.marks(&s.Spans[p.span], p) {
			of := &t.spans[p.span]
			of.marked = t.slot(0)
			t.slots[of.marked].used = t.clock
		}
	}
}

// slot returns one that the request has not got yet: what has tails of a version, else the one that was used
// least recently.
func (t *tails) slot(version uint64) int32 {
	oldest := int32(-1)
	for i := range t.slots {
		y := &t.slots[i]
		if y.used == t.clock {
			continue
		}
		if version != 0 && slices.Contains(y.has, version) {
			return int32(i)
		}
		if oldest < 0 || y.used < t.slots[oldest].used {
			oldest = int32(i)
		}
	}
	for i := range t.spans {
		if of := &t.spans[i]; t.heads > 0 && of.slot == oldest { // which has ended: its states are to be had when the step has
			of.states = slices.Clone(device.View[float32](t.q.mem, t.at.at+uint32(int(oldest)*t.size()), t.size()/4))
			of.slot = -1
		}
	}
	clear(t.slots[oldest].has)
	return oldest
}

// forget has the device have nothing.
func (t *tails) forget() {
	for i := range t.slots {
		clear(t.slots[i].has)
	}
}

// commit gives the states what a step has made of the tails of layers.
func (t *tails) commit(s *models.DenseStep, layers []*layer) {
	n := t.rows()
	for i := range t.spans {
		sp, of := &s.Spans[i], &t.spans[i]
		for _, l := range layers {
			if l.attends() {
				continue
			}
			copy(sp.State[l.state():][:n], t.pending[of.at+l.tail*n:])
			if len(sp.Copies) > 0 {
				copy(sp.Copies[0].State[l.state():][:n], t.pending[of.mark+l.tail*n:])
			}
			switch {
			case t.heads == 0:
			case of.states != nil:
				t.restore(sp.State, of.states[l.tail*(n+t.states())+n:], l, sp.Position+sp.N)
				t.q.count(&t.q.work.Read, 4*t.states())
			default:
				t.giveStates(sp.State, of.slot, l, sp.Position+sp.N)
			}
		}
	}
}

// state returns where the layer's part of a sequence's recurrent state begins.
func (l *layer) state() int {
	if l.Conv != nil {
		return l.Conv.State
	}
	return l.Delta.State
}

// convolve queues a layer's short convolution, from b, c and x on. It returns what O reads.
func (r *step) convolve(l *layer, b span) span {
	h, n, width := r.plan.at.h, uint32(r.n), uint32(r.plan.m.Hidden)
	c, x := b.from(r.plan.m.Hidden), b.from(2*r.plan.m.Hidden)
	r.q.add(device.OpMul, x.at, b.at, x.at, n, width, x.stride, b.stride, x.stride)
	r.rec.conv(l, h, x, 0)
	r.q.add(device.OpMul, h.at, h.at, c.at, n, width, h.stride, h.stride, c.stride)
	return h
}

// conv queues the convolution of x, with silu the SiLU of it, span by span.
func (r *recurrence) conv(l *layer, dst, x span, silu uint32) {
	t := r.tails
	for _, p := range r.parts {
		sp, of := &r.s.Spans[p.span], &t.spans[p.span]
		state := t.rowsAt(of.slot, l)
		if p.done == 0 && !t.has(sp, of.slot, l) {
			copy(device.View[float32](r.q.mem, state, t.rows()), sp.State[l.state():])
			r.q.count(&r.q.work.Written, 4*t.rows())
		}
		r.q.add(device.OpConv, dst.row(p.first).at, x.row(p.first).at, l.taps, state, uint32(p.n), uint32(t.channels), dst.stride, x.stride, uint32(t.taps), silu)
	}
}

// has tells whether a slot has what a span's sequence looks back to in a layer.
func (t *tails) has(sp *models.RecurrentSpan, slot int32, l *layer) bool {
	return sp.From != 0 && t.slots[slot].has[l.tail] == sp.From
}

// take takes in the last rows before the convolution of each span, of which the device has the tails now.
func (r *recurrence) take(l *layer, x span) {
	t, n := r.tails, r.tails.rows()
	if l.Conv != nil {
		x = x.from(2 * r.plan.m.Hidden)
	}
	for _, p := range r.parts {
		sp, of := &r.s.Spans[p.span], &t.spans[p.span]
		after := t.pending[of.at+l.tail*n:][:n]
		before := after
		if p.done == 0 {
			before = sp.State[l.state():][:n]
		}
		// behind sets dst to the tail after some rows. dst may be before: rows are read ahead of where they are written.
		behind := func(dst []float32, rows int) {
			for i := range t.taps - 1 {
				row, to := rows-(t.taps-1)+i, dst[i*t.channels:][:t.channels]
				if row < 0 {
					copy(to, before[(t.taps-1+row)*t.channels:])
					continue
				}
				copy(to, device.View[float32](r.q.mem, x.row(p.first+row).at, t.channels))
				r.q.count(&r.q.work.Read, 4*t.channels)
			}
		}
		for _, c := range sp.Copies {
			at := c.After - p.done
			if at <= 0 || at > p.n {
				continue
			}
			behind(t.pending[of.mark+l.tail*n:][:n], at)
			switch {
			case t.heads == 0:
			case at < p.n:
				t.giveStates(c.State, of.marked, l, sp.Position+c.After)
			default:
				t.giveStates(c.State, of.slot, l, sp.Position+c.After)
			}
		}
		if behind(after, p.n); p.done+p.n == sp.N {
			t.slots[of.slot].has[l.tail] = sp.To
		}
	}
}

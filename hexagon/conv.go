package hexagon

import (
	"slices"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/models"
)

// tails is what short convolutions look back to, as the device has it of some sequences: a slot has
// [layers][taps-1][hidden]float32, the last rows of b·x. The device goes on from them by itself. The
// states of the KV cache stay the truth: a step gives its last rows back, and of what the
// device lacks, as versions of states say, a slot is given a copy.
type tails struct {
	layers, taps, hidden int

	at    region
	slots []tail
	clock uint64 // of recordings

	// Of the step under way: its states get theirs when all of it has run.
	spans   []spanTail
	pending []float32
}

// tail is the bookkeeping of a slot.
type tail struct {
	has  []uint64 // [layers] versions, see kv.Sequence.StateVersion; 0: it has nothing
	used uint64   // by which recording
}

// spanTail is a span of a step: its slot, -1 before its first row, and where in pending are the tails behind its
// rows, and those of its checkpoint.
type spanTail struct {
	slot     int32
	at, mark int
}

// convPart is rows of a recording that are one span's, the first of which has done of the span's before it.
type convPart struct{ span, first, n, done int }

// tailBytes is the memory for tails, unless a sequence's are larger.
const tailBytes = 16 << 20

// conv takes a layer's short convolution. It returns false for one that is not like the others.
func (d *whole) conv(b *Backend, l *layer) bool {
	t, c := &d.tails, l.Conv
	if c.Taps < 2 || c.Taps > device.MaxTaps || t.layers > 0 && t.taps != c.Taps || len(l.qkv.parts) != 1 || len(c.Weights) != c.Taps*d.m.Hidden || d.m.Parallel {
		return false
	}
	t.taps, t.hidden, l.tail = c.Taps, d.m.Hidden, t.layers
	t.layers++
	l.taps = d.vectors.add(b, c.Weights, len(c.Weights))
	return true
}

// numbers counts those of a layer.
func (t *tails) numbers() int { return (t.taps - 1) * t.hidden }

// size returns the bytes of a slot.
func (t *tails) size() int { return 4 * t.layers * t.numbers() }

// reserve makes room for the tails of so many sequences, or fewer.
func (t *tails) reserve(b *Backend, sequences int) {
	if t.layers == 0 {
		return
	}
	n := max(1, min(sequences, tailBytes/t.size()))
	t.at, t.slots = b.region(n*t.size()), make([]tail, n)
	for i := range t.slots {
		t.slots[i].has = make([]uint64, t.layers)
	}
}

// begin makes ready for a step.
func (t *tails) begin(s *models.DenseStep) {
	t.spans = t.spans[:0]
	size, n := t.layers*t.numbers(), 0
	for i := range s.Spans {
		of := spanTail{slot: -1, at: n}
		if n += size; s.Spans[i].Copy != nil {
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
	for i := range s.Spans {
		sp := &s.Spans[i]
		from, to := max(lo, sp.First), min(hi, sp.First+sp.N)
		if from >= to {
			continue
		}
		if len(parts) == len(t.slots) {
			return parts, from
		}
		parts = append(parts, convPart{span: i, first: from - lo, n: to - from, done: from - sp.First})
	}
	return parts, hi
}

// hold finds slots for the parts of a recording, of which a span that goes on is the first.
func (t *tails) hold(s *models.DenseStep, parts []convPart) {
	t.clock++
	for _, p := range parts {
		of := &t.spans[p.span]
		if of.slot < 0 {
			of.slot = t.slot(s.Spans[p.span].From)
		}
		t.slots[of.slot].used = t.clock
	}
}

// slot returns one that the recording has not got yet: what has tails of a version, else the one that was used
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
	n := t.numbers()
	for i := range t.spans {
		sp, of := &s.Spans[i], &t.spans[i]
		for _, l := range layers {
			if l.Conv == nil {
				continue
			}
			copy(sp.State[l.Conv.State:][:n], t.pending[of.at+l.tail*n:])
			if sp.Copy != nil {
				copy(sp.Copy[l.Conv.State:][:n], t.pending[of.mark+l.tail*n:])
			}
		}
	}
}

// convolve queues a layer's short convolution, from b, c and x on. It returns what O reads.
func (r *recording) convolve(l *layer, b span) span {
	t, h, n, width := &r.tails, r.at.h, uint32(r.n), uint32(r.m.Hidden)
	c, x := b.from(r.m.Hidden), b.from(2*r.m.Hidden)
	r.add(device.OpMul, x.at, b.at, x.at, n, width, x.stride, b.stride, x.stride)
	for _, p := range r.parts {
		sp, slot := &r.s.Spans[p.span], t.spans[p.span].slot
		state, has := t.at.at+uint32(int(slot)*t.size()+4*l.tail*t.numbers()), t.slots[slot].has[l.tail]
		if p.done == 0 && (sp.From == 0 || has != sp.From) {
			copy(device.View[float32](r.mem, state, t.numbers()), sp.State[l.Conv.State:])
			r.count(&r.work.Written, 4*t.numbers())
		}
		first := uint32(p.first)
		r.add(device.OpConv, h.at+first*h.stride, x.at+first*x.stride, l.taps, state, uint32(p.n), width, h.stride, x.stride, uint32(t.taps))
	}
	r.add(device.OpMul, h.at, h.at, c.at, n, width, h.stride, h.stride, c.stride)
	return h
}

// takeTails takes in the last rows of b·x of each span, of which the device has the tails now.
func (r *recording) takeTails(l *layer, b span) {
	t, x, n := &r.tails, b.from(2*r.m.Hidden), r.tails.numbers()
	for _, p := range r.parts {
		sp, of := &r.s.Spans[p.span], &t.spans[p.span]
		after := t.pending[of.at+l.tail*n:][:n]
		before := after
		if p.done == 0 {
			before = sp.State[l.Conv.State:][:n]
		}
		// behind sets dst to the tail after some rows. dst may be before: rows are read ahead of where they are written.
		behind := func(dst []float32, rows int) {
			for i := range t.taps - 1 {
				row, to := rows-(t.taps-1)+i, dst[i*t.hidden:][:t.hidden]
				if row < 0 {
					copy(to, before[(t.taps-1+row)*t.hidden:])
					continue
				}
				copy(to, device.View[float32](r.mem, x.at+uint32(p.first+row)*x.stride, t.hidden))
				r.count(&r.work.Read, 4*t.hidden)
			}
		}
		if at := sp.CopyAt - p.done; sp.Copy != nil && at > 0 && at <= p.n {
			behind(t.pending[of.mark+l.tail*n:][:n], at)
		}
		if behind(after, p.n); p.done+p.n == sp.N {
			t.slots[of.slot].has[l.tail] = sp.To
		}
	}
}

package hexagon

import (
	"slices"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// layerRuns has the session run the requests of steps, and takes in what comes of them.
type layerRuns struct {
	s     *session
	q     *request
	plan  *plan
	gated *gatedRuns
	step  *step
	xs    []float32 // of the step, until all of its rows have been computed
}

// RunLayers implements models.Accelerator.
func (b *Backend) RunLayers(s *models.DenseStep) int {
	b.session.mu.Lock()
	defer b.session.mu.Unlock()
	if b.session.dev == nil || b.plan.layers == nil {
		return s.First
	}
	return b.layers.run(s)
}

// run computes layers from s.First on, and the head, and returns the first that it has not.
func (r *layerRuns) run(s *models.DenseStep) int {
	d := r.plan.layers
	r.step.follow(d)
	end := r.reach(s)
	within := end > s.First && d.layers[end-1].Mixture
	head := end == len(d.layers) && !within && d.tiled != nil
	if end == s.First && !head || !r.step.att.tcm.divide(s.Cache.Shape().HeadDim, d.cap) {
		return s.First
	}
	if s.Experts != nil && !r.gated.joins(s, min(r.gated.mixture.gated.chunk, d.atOnce(len(s.Rows), s.First, end)), r.step.rec.tails) {
		return s.First
	}
	tails := r.step.rec.tails
	tails.begin(s)
	if !r.record(s, end, head) || s.Experts != nil && r.gated.probe(s.Experts, r.gated.list) != nil {
		tails.forget()
		return s.First
	}
	tails.commit(s, d.layers[s.First:end])
	if head {
		return end + 1
	}
	copy(s.X, r.xs)
	if s.Within = within; within {
		end--
	}
	return end
}

// reach returns the layer after the last that is computed: the host computes the next, or the mixture of the last.
func (r *layerRuns) reach(s *models.DenseStep) int {
	d := r.plan.layers
	if s.Model != d.m || s.Cache.Type() != kv.F16 && s.Cache.Type() != kv.F32 || !r.step.att.keys.use(s.Cache) {
		return s.First
	}
	for lo := 0; lo < len(s.Rows); lo += max(1, s.Rows[lo].All) {
		if all := s.Rows[lo].All; all > 0 && (all > encoderRows || s.Rows[lo].Pos > 0 || lo+all > len(s.Rows)) {
			return s.First
		}
	}
	for i := s.First; i < len(d.layers); i++ {
		if l := d.layers[i]; l == nil {
			return i
		} else if l.Mixture {
			return i + 1
		}
	}
	return len(d.layers)
}

// record has layers [s.First, end) of all rows computed, and the head. It returns false where that failed.
func (r *layerRuns) record(s *models.DenseStep, end int, head bool) bool {
	d, t, out := r.plan.layers, r.step.rec.tails, 0
	most := d.atOnce(len(s.Rows), s.First, end)
	r.xs = slices.Grow(r.xs[:0], len(s.X))[:len(s.X)]
	recurs := slices.ContainsFunc(d.layers[s.First:end], func(l *layer) bool { return !l.attends() })
	for lo, hi := 0, 0; lo < len(s.Rows); lo = hi {
		parts := r.step.rec.parts[:0]
		if hi = min(len(s.Rows), lo+most); recurs {
			parts, hi = t.cut(parts, s, lo, hi)
			t.hold(s, parts)
		}
		if all := s.Rows[lo].All; all > 0 { // whole sequences
			for hi = lo + all; hi < len(s.Rows) && hi+s.Rows[hi].All <= lo+most; hi += s.Rows[hi].All {
			}
		}
		r.step.rec.parts = parts
		if !r.step.begin(stepRows{s: s, rows: s.Rows[lo:hi], lo: lo, n: hi - lo, last: end, ran: s.First}, out, head, r.s.probes+1) {
			return false
		}
		r.s.probes++
		if s.Experts != nil {
			r.step.addExperts(r.gated, s.Experts)
		}
		if !r.layers(s.First, end) || !r.end() {
			return false
		}
		out += len(r.step.wanted)
	}
	return true
}

// layers queues layers [first, end), and runs what is queued where there is no room for more. It returns
// false where the device has failed, or what is left of slots for keys is not enough.
func (r *layerRuns) layers(first, end int) bool {
	k := r.step.att.keys
	for i := first; i < end; i++ {
		room, slots := r.step.fits(i)
		if (!room || !slots) && r.flush(i) != nil {
			return false
		}
		if !slots {
			k.lists = nil
			k.open(0)
			if _, slots = r.step.fits(i); !slots {
				return false
			}
		}
		r.step.layer(i)
	}
	return true
}

// end queues the head, has everything run, and takes in what comes of the last layer.
func (r *layerRuns) end() bool {
	p, d := r.step, r.plan.layers
	p.headRows()
	first := 0
	for { // rows of logits for which there is room
		n := 0
		if p.head {
			n = min(len(p.wanted)-first, d.rows)
			p.logits(first, n)
		}
		if r.flush(p.last) != nil {
			return false
		}
		for _, flag := range device.View[uint32](r.q.mem, d.at.saturated, layout.Tile) {
			if flag != 0 { // sums of values are too large for fp16: the CPU computes the step
				return false
			}
		}
		r.takeLogits(first, n)
		if first += n; first == len(p.wanted) || !p.head {
			break
		}
	}
	if !p.head {
		hidden := d.m.Hidden
		for i := range p.n {
			copy(r.xs[(p.lo+i)*hidden:][:hidden], device.View[float32](r.q.mem, d.at.x.at+uint32(i)*d.at.x.stride, hidden))
		}
		r.q.count(&r.q.work.Read, 4*p.n*hidden)
	}
	return true
}

// flush runs what is queued, layers before end, and gives their keys and values to the cache: but for
// an encoder's, which no later step sees.
func (r *layerRuns) flush(end int) error {
	if err := r.s.run(); err != nil {
		return err
	}
	p, m := r.step, r.plan.layers.m
	for ; p.ran < end; p.ran++ {
		l, qkv := r.plan.layers.layers[p.ran], r.plan.layers.qkvOf(p.ran, p.n)
		if m.Bidirectional {
			continue
		}
		if !l.attends() {
			p.rec.take(l, qkv)
			continue
		}
		kv := m.KVHeads * m.HeadDim
		keys, values, _ := l.columns(m)
		for i := range p.rows {
			row := device.View[float32](r.q.mem, qkv.at+uint32(i)*qkv.stride, values+kv)
			p.s.Cache.Store(l.KV, p.rows[i].Seq, p.rows[i].Pos, row[keys:keys+kv], row[values:])
		}
		r.q.count(&r.q.work.Read, 8*kv*p.n)
	}
	of := &p.probed
	if of.product == nil {
		return nil
	}
	for i, b := range of.bias {
		of.y[i] -= b
	}
	r.q.count(&r.q.work.Read, 4*(of.Cols+of.M))
	err := r.s.probe(of.product)
	of.product = nil
	return err
}

// takeLogits copies to the step the logits of n rows, from row first of those that want them on.
func (r *layerRuns) takeLogits(first, n int) {
	p, t, at := r.step, r.plan.layers.tiled, &r.plan.layers.at
	for i := range n {
		logits, results := p.s.Logits[(p.out+first+i)*t.Rows:][:t.Rows], device.View[float32](r.q.mem, at.logits.at+uint32(i)*at.logits.stride, t.Rows)
		if r.plan.layers.headByLookups(len(p.wanted)) {
			copy(logits, results)
		} else {
			t.scaled(logits, results)
		}
		r.q.count(&r.q.work.Read, 4*t.Rows)
	}
}

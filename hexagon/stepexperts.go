package hexagon

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/models"
)

// joins tells whether the experts of the layer before a step's first are queued with what follows: all are
// whole on the device, their rows are of no chunk, and at most most, for one request and one launch.
func (gr *gatedRuns) joins(s *models.DenseStep, most int, t *tails) bool {
	x, g, w := s.Experts, &gr.mixture.gated, gr.work
	if gr.q.hosted == gr.s.opt.Decode || w.divide(x.Rows, gr.mixture.plan.Chunk) > 0 || len(x.Rows) > most ||
		t.layers > 0 && len(s.Spans) > t.tailShape.slots {
		return false
	}
	w.ints = w.ints[:0]
	gr.list = gr.sharedRows(gr.list[:0], x, none, 0, len(x.Rows))
	for _, e := range x.List {
		of := g.of[x.Layer][e]
		if of == nil || of.down == nil {
			return false
		}
		places := w.placesOf(x, e, none)
		gr.list = g.split(gr.list, of, places, len(places), len(places))
	}
	rows := 0
	for i := range gr.list {
		rows += roundUp(gr.list[i].n, layout.Tile)
	}
	return len(gr.list) > 0 && rows <= gr.mem.rows
}

// addExperts queues the experts of joins, and adds to the stream what the rows make of them: the sums, in the order, of
// rows whose experts are a launch of their own.
func (r *step) addExperts(gr *gatedRuns, x *models.Experts) {
	g, y := gr.mem, r.plan.at.y
	if r.last > r.s.First {
		r.q.addPowers() // of the attention behind them
	}
	gr.writeChunk(x, none, 0)
	gr.queue(x, gr.list)
	gr.outs = append(gr.outs[:0], make([]uint32, len(x.RowAt)+r.n)...) // by place; of the shared expert by row
	for i := range gr.list {
		of := &gr.list[i]
		base := 0
		if of.number == models.SharedExpert {
			base = len(x.RowAt)
		} else {
			gr.s.counts.Decoded += int64(len(of.places))
		}
		for j, place := range of.places {
			gr.outs[base+int(place)] = g.out.row(of.first + j).at
		}
	}
	for i := range r.n {
		to := y.row(i).at
		add := func(out uint32, weight float32) {
			r.q.add(device.OpAdd, to, out, 1, uint32(r.plan.m.Hidden), y.stride, g.out.stride, math.Float32bits(weight))
		}
		r.q.add(device.OpCopy, to, g.h.row(gr.mixture.gated.chunk).at, uint32(4*r.plan.m.Hidden))
		if x.Shared != nil {
			add(gr.outs[len(x.RowAt)+i], x.SharedWeights[i])
		}
		for j := i * x.Chosen; j < (i+1)*x.Chosen; j++ {
			add(gr.outs[x.Places[j]], x.Weights[j])
		}
	}
	r.residual(0, &streamNorm{})
}

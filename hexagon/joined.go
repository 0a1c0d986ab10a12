package hexagon

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/models"
)

// joins tells whether the experts of the layer before a step's first are queued with what follows, up to layer end: all are
// whole on the device, their rows are of no chunk, and those of one recording and one launch.
func (d *whole) joins(b *Backend, s *models.DenseStep, end int) bool {
	x, g, w := s.Experts, &b.mix.gated, &b.mix.work
	if b.hosted == b.opt.Decode || w.divide(x.Rows, b.mix.plan.Chunk) > 0 || len(x.Rows) > min(g.chunk, d.atOnce(len(s.Rows), s.First, end)) ||
		d.tails.layers > 0 && len(s.Spans) > len(d.tails.slots) {
		return false
	}
	w.ints = w.ints[:0]
	g.list = b.sharedRows(g.list[:0], x, none, 0, len(x.Rows))
	for _, e := range x.List {
		of := g.of[x.Layer][e]
		if of == nil || of.down == nil {
			return false
		}
		places := w.placesOf(x, e, none)
		g.list = g.split(g.list, of, places, len(places), len(places))
	}
	rows := 0
	for i := range g.list {
		rows += roundUp(g.list[i].n, layout.Tile)
	}
	return len(g.list) > 0 && rows <= g.rows
}

// addExperts queues the experts of joins, and adds to the stream what the rows make of them: the sums, in the order, of
// rows whose experts are a launch of their own.
func (r *recording) addExperts(x *models.Experts) {
	g, y := &r.mix.gated, r.at.y
	if r.last > r.s.First {
		r.addPowers() // of the attention behind them
	}
	r.writeChunk(x, none, 0)
	r.queueGated(x, g.list)
	g.outs = append(g.outs[:0], make([]uint32, len(x.RowAt)+r.n)...) // by place; of the shared expert by row
	for i := range g.list {
		of := &g.list[i]
		base := 0
		if of.number == models.SharedExpert {
			base = len(x.RowAt)
		} else {
			r.mix.counts.Decoded += int64(len(of.places))
		}
		for j, place := range of.places {
			g.outs[base+int(place)] = g.out.row(of.first + j).at
		}
	}
	for i := range r.n {
		to := y.row(i).at
		add := func(out uint32, weight float32) {
			r.add(device.OpAdd, to, out, 1, uint32(r.m.Hidden), y.stride, g.out.stride, math.Float32bits(weight))
		}
		r.add(device.OpCopy, to, g.h.row(g.chunk).at, uint32(4*r.m.Hidden))
		if x.Shared != nil {
			add(g.outs[len(x.RowAt)+i], x.SharedWeights[i])
		}
		for j := i * x.Chosen; j < (i+1)*x.Chosen; j++ {
			add(g.outs[x.Places[j]], x.Weights[j])
		}
	}
	r.residual(0, &streamNorm{})
}

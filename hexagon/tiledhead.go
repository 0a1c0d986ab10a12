package hexagon

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/kernels"
)

// tiledHead is the matrix of logits as the tile unit multiplies it within a step: one
// in fp16 or rounded, or one with more rows than go by lookups.
type tiledHead struct {
	*linear
	factor float32 // the power of two that makes what it reads at most 1
	x      uint32  // a row in each column of K/32 tiles; lanes without one keep what they had
	ones   uint32
	more   span // results of further columns, where they are multiplied in parts
}

// newTiledHead takes the head, or returns nil.
func newTiledHead(a *arena, d *layerPlan, head kernels.Linear) *tiledHead {
	l, ok := head.(*linear)
	if !ok || l.Cols != d.m.Hidden || d.m.HeadNorm.Weight == nil {
		return nil
	}
	most := math.Sqrt(float64(l.Cols)) * float64(largest(d.m.HeadNorm.Weight)) // of a row of which one number is not zero
	_, e := math.Frexp(most + float64(largest(d.m.HeadNorm.Bias)))
	t := &tiledHead{linear: l, factor: float32(math.Ldexp(1, -max(-126, min(e, 126))))}
	ones := make([]float32, layout.Tile)
	for i := range ones {
		ones[i] = 1
	}
	t.ones = d.vectors.add(a, ones, len(ones))
	return t
}

// reserve makes room for rows of activations and results.
func (t *tiledHead) reserve(a *arena, rows int) {
	t.x = a.reserve(2 * layout.Tile * t.K)
	if t.tile(1, 0).parts(t.K) > 1 {
		t.more = span{a.reserve(4 * t.M * rows), uint32(4 * t.M)}
	}
}

// multiply queues the products of n rows of x, and their results, without scales, as rows of y.
func (t *tiledHead) multiply(q *request, x, y span, n int, saturated uint32) {
	q.add(device.OpToTiles, t.x, x.at, uint32(n), 1, uint32(t.Cols), x.stride, 0, 0, 1, math.Float32bits(t.factor))
	p, to := product{linear: t.linear}, y
	plan := t.tile(n, 0)
	passes := t.passes(nil, &plan, 0, t.M/layout.Strip, func(strip, strips int, out uint32) {
		q.add(device.OpFromTiles, to.at+uint32(4*strip*layout.Strip), out, t.ones, uint32(n), uint32(strips*layout.Strip), to.stride, 0, saturated, 1)
	})
	for c := 0; c < t.K; c += plan.k {
		part := min(plan.k, t.K-c)
		if c > 0 {
			to = t.more
		}
		q.loadRows(&p, &plan, t.x, c, part)
		plan.pipeline(q, passes, c, part)
		for at := 0; c > 0 && at < t.M; at += device.MaxDim {
			q.add(device.OpAdd, y.at+uint32(4*at), to.at+uint32(4*at), uint32(n), uint32(min(device.MaxDim, t.M-at)), y.stride, to.stride, oneBits)
		}
	}
	q.count(&q.work.Tiled, n)
	q.count(&q.work.Lanes, layout.Tile)
}

// scaled sets logits to results.
func (t *tiledHead) scaled(logits, results []float32) {
	scale := 1 / (t.factor * t.outScale(t.tile(1, 0).k))
	for m := range logits {
		logits[m] = results[m] * (t.R[m] * scale)
	}
}

// headRows queues the norm of the rows that want logits, and brings them together.
func (r *step) headRows() {
	if !r.head || len(r.wanted) == 0 {
		return
	}
	r.normed(&r.plan.headNorm)
	h := r.plan.at.h
	for i, row := range r.wanted {
		if row > i {
			r.q.add(device.OpCopy, h.row(i).at, h.row(row).at, uint32(4*r.plan.m.Hidden))
		}
	}
}

// logits queues the product of the head with n rows, from row first of those that want logits on.
func (r *step) logits(first, n int) {
	h := r.plan.at.h
	h.at += uint32(first) * h.stride
	switch {
	case n == 0:
	case r.plan.headByLookups(len(r.wanted)):
		r.mulAs(r.plan.head, len(r.wanted), h, r.plan.at.logits, n)
	default:
		r.plan.tiled.multiply(r.q, h, r.plan.at.logits, n, r.plan.at.saturated)
	}
}

// headByLookups tells whether the head is multiplied by lookups for so many rows, or else by the tile unit.
func (d *layerPlan) headByLookups(wanted int) bool {
	return d.head != nil && wanted <= d.head.most
}

package hexagon

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models"
)

// span is rows of float32 on the device.
type span struct{ at, stride uint32 }

// from returns the rows from number col on, and row those from row i on.
func (s span) from(col int) span { return span{s.at + uint32(4*col), s.stride} }
func (s span) row(i int) span    { return span{s.at + uint32(i)*s.stride, s.stride} }

// rowBuffers is where rows stand while matrices multiply them: integers for lookups and their
// sums, fp16 tiles, and scales of both.
type rowBuffers struct{ inputs, ints, scales, tiles uint32 }

// rowBuffers makes room for rows by lookups and others by tiles, of at most k columns and outs outputs.
func (a *arena) rowBuffers(k, outs, rows, tiled int) rowBuffers {
	return rowBuffers{a.reserve(2 * k * rows), a.reserve(4 * outs * rows), a.reserve(4 * max(rows, tiled)), a.reserve(2 * k * tiled)}
}

// mulRows queues the products of n rows of x with matrices, results to y, by the path of room rows:
// as many as the path has at once, at most.
func (q *request) mulRows(w *rowBuffers, s *stack, room int, x, y span, n int) {
	if room > s.most {
		q.mulTiledRows(w, s, x, y, n)
		return
	}
	q.lookUpRows(w, s, x, y, n)
}

// lookUpRows queues products by lookups, for which the rows' tables fit TCM at once.
func (q *request) lookUpRows(w *rowBuffers, s *stack, x, y span, n int) {
	first := s.parts[0]
	q.add(device.OpQuantize, w.inputs, w.scales, x.at, uint32(n), uint32(first.K), uint32(first.Cols), x.stride)
	for i, l := range s.parts {
		if i == 0 || l.InBytes() != s.parts[i-1].InBytes() {
			l.precompute(q, n, w.inputs)
		}
		for strip := 0; strip < l.M/layout.Strip; {
			strips := l.summed(strip, n)
			col, width := uint32(4*strip*layout.Strip), uint32(strips*layout.Strip)
			l.lookUp(q, strip, strips, n, w.ints)
			bias := s.bias[i]
			if bias != 0 {
				bias += col
			}
			q.add(device.OpScale, y.at+uint32(4*s.col[i])+col, w.ints, w.scales, s.r[i]+col, bias, uint32(n), width, y.stride, 4*width)
			strip += strips
		}
		q.count(&q.work.Lookups, n)
	}
}

// mulTiledRows queues products of at most tileRows rows by the tile unit: the numbers of
// Backend.mulTiles, with rows to tiles and back by the device. Matrices of one tiling are one pipeline: the first strips
// of the next are brought and unfolded while the last ones of the one before are multiplied.
func (q *request) mulTiledRows(w *rowBuffers, s *stack, x, y span, n int) {
	for i := 0; i < len(s.parts); {
		l := s.parts[i]
		plan, end := l.tile(n, 0), i+1
		if plan.k == l.K {
			for end < len(s.parts) && s.parts[end].K == l.K && s.parts[end].tile(n, 0) == plan {
				end++
			}
		}
		if i == 0 || l.K != s.parts[i-1].K {
			q.add(device.OpRowsToTiles, w.tiles, w.scales, x.at, uint32(n), uint32(l.K), uint32(l.Cols), x.stride)
		}
		loaded := i > 0 && l.K == s.parts[i-1].K && plan.k == l.K && s.parts[i-1].tile(n, 0).k == l.K // whole, by the one before
		for c := 0; c < l.K; c += plan.k {
			part := min(plan.k, l.K-c)
			if !loaded {
				q.loadRows(&product{linear: l}, &plan, w.tiles, c, part)
			}
			var passes []pass
			for j := i; j < end; j++ {
				passes = s.parts[j].passes(passes, &plan, 0, s.parts[j].M/layout.Strip, q.toRows(w, s, j, y, n, plan.k, c > 0))
			}
			plan.pipeline(q, passes, c, part)
		}
		for ; i < end; i++ {
			q.count(&q.work.Tiled, n)
			q.count(&q.work.Lanes, roundUp(n, layout.Tile))
		}
	}
}

// toRows returns a function that queues the results of strips of part i, multiplied in parts of k columns, as
// numbers of n rows of y. They are added to the parts before, or to biases.
func (q *request) toRows(w *rowBuffers, s *stack, i int, y span, n, k int, more bool) func(strip, strips int, out uint32) {
	scale := math.Float32bits(1 / s.parts[i].outScale(k))
	return func(strip, strips int, out uint32) {
		col, bias, adds := uint32(4*strip*layout.Strip), s.bias[i], uint32(0)
		if more {
			bias, adds = 0, 1
		}
		if bias != 0 {
			bias += col
		}
		q.add(device.OpTilesToRows, y.at+uint32(4*s.col[i])+col, out, w.scales, s.r[i]+col, bias, uint32(n), uint32(strips*layout.Strip), y.stride, scale, adds)
	}
}

// unit is a gated unit as OpGLU has it.
type unit struct {
	kind uint32
	ref.Clamp
}

// units are the units that the device has.
var units = map[models.GatedUnit]unit{
	models.UnitSiLU: {kind: ref.GLUSiLU}, models.UnitGELU: {kind: ref.GLUGELU}, models.UnitReLU2: {kind: ref.GLUReLU2}, models.UnitErfGELU: {kind: ref.GLUErfGELU},
	models.UnitClampedSiLU: {ref.GLUClamped, ref.Clamp{Limit: vector.ClampedLimit, Alpha: 1}},
	models.UnitClamped:     {ref.GLUClamped, ref.Clamp{Limit: vector.ClampedLimit, Alpha: vector.ClampedSlope, Plus: 1}},
}

// gate queues a unit of n rows, width numbers of each; dst may be gate.
func (q *request) gate(u unit, dst, gate, up span, n, width int) {
	q.add(device.OpGLU, dst.at, gate.at, up.at, uint32(n), uint32(width), dst.stride, gate.stride, u.kind,
		math.Float32bits(u.Limit), math.Float32bits(u.Alpha), math.Float32bits(u.Plus))
}

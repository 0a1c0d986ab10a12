package hexagon

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
)

// mulTiles queues the products of n rows, at most tileRows, with matrices by the tile unit: the
// numbers of Backend.mulTiles, with rows to tiles and back by the device.
func (r *recording) mulTiles(s *stack, x, y span, n int) {
	for i, l := range s.parts {
		p, plan := product{linear: l}, l.tile(n, 0)
		if i == 0 || l.K != s.parts[i-1].K {
			r.add(device.OpRowsToTiles, r.at.tiles, r.at.scales, x.at, uint32(n), uint32(l.K), uint32(l.Cols), x.stride)
		}
		loaded := i > 0 && l.K == s.parts[i-1].K && plan.k == l.K && s.parts[i-1].tile(n, 0).k == l.K // whole, by the one before
		for c := 0; c < l.K; c += plan.k {
			part, bias, more := min(plan.k, l.K-c), s.bias[i], uint32(0)
			if c > 0 {
				bias, more = 0, 1
			}
			plan.take = func(strip int, out uint32) {
				col, bias := uint32(4*strip*layout.Strip), bias
				if bias != 0 {
					bias += col
				}
				r.add(device.OpTilesToRows, y.at+uint32(4*s.col[i])+col, out, r.at.scales, s.r[i]+col, bias, uint32(n), layout.Strip, y.stride, math.Float32bits(1/l.outScale(plan.k)), more)
			}
			if !loaded {
				r.loadRows(&p, &plan, r.at.tiles, c, part)
			}
			l.pipeline(&plan, 0, l.M/layout.Strip, c, part)
		}
		r.count(&r.work.Tiled, n)
		r.count(&r.work.Lanes, roundUp(n, layout.Tile))
		r.probe(l, s.bias[i], x, y.from(s.col[i]))
	}
}

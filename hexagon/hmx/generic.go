package hmx

import "github.com/lutra-lm/lutra/hexagon/layout"

// widen converts src to dst, in order.
func widen(dst []float32, src []uint16) {
	src = src[:len(dst)]
	for i, h := range src {
		dst[i] = layout.F32(h)
	}
}

// widenWeights converts a tile to rows of 32 columns.
func widenWeights(dst *[tile]float32, src *[tile]uint16) {
	for k := 0; k < layout.Tile; k += 2 {
		even, odd := dst[k*layout.Tile:][:layout.Tile], dst[(k+1)*layout.Tile:][:layout.Tile]
		pair := src[k*layout.Tile:][:2*layout.Tile]
		for c := range even {
			even[c], odd[c] = layout.F32(pair[2*c]), layout.F32(pair[2*c+1])
		}
	}
}

// multiply adds the products of a run of tiles: act in tiles' order, wgt row by row.
func multiply(acc *[tile]float32, act, wgt []float32, tiles int) {
	for y := range layout.Tile {
		a := act[y>>1<<6|y&1:]
		for x := 0; x < layout.Tile; x += 8 {
			p := (*[8]float32)(acc[y*layout.Tile+x:])
			s0, s1, s2, s3, s4, s5, s6, s7 := p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]
			for t := range tiles {
				a, w := a[t*tile:][:2*layout.Tile-1], wgt[t*tile:][:tile]
				for k := range layout.Tile {
					f, b := a[2*k], (*[8]float32)(w[k*layout.Tile+x:])
					// Products of fp16 are exact in float32, so that it does not
					// matter whether a machine fuses them with the sums.
					s0 += f * b[0]
					s1 += f * b[1]
					s2 += f * b[2]
					s3 += f * b[3]
					s4 += f * b[4]
					s5 += f * b[5]
					s6 += f * b[6]
					s7 += f * b[7]
				}
			}
			*p = [8]float32{s0, s1, s2, s3, s4, s5, s6, s7}
		}
	}
}

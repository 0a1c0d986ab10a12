//go:build !purego

package delta

import "github.com/lutra-lm/lutra/kernels/cpu"

// productsFast does as products, where the machine has more than portable code.
func productsFast(state []float32, width int, q, k []float32, stride, n int, out []float32) bool {
	if cpu.Active() != cpu.NEON {
		return false
	}
	last := (n - 1) * stride
	_, _, _, _ = state[width*width-1], q[last+width-1], k[last+width-1], out[2*n*width-1]
	for lo := 0; lo < width; lo += panel {
		if width-lo < panel {
			productsOneNEON(&state[lo*width], width, &q[0], &k[0], 4*stride, &out[lo], 4*width, n)
		} else {
			productsNEON(&state[lo*width], width, &q[0], &k[0], 4*stride, &out[lo], 4*width, n)
		}
	}
	return true
}

// dotsFast leaves dots to vector.Dot.
func dotsFast(_, _, _ []float32, _ *mix) bool { return false }

// correctFast does as correct.
func correctFast(all []float32, token int, m *mix, products, v []float32) bool {
	if cpu.Active() != cpu.NEON {
		return false
	}
	width := len(v)
	_, _, _ = all[Chunk*width-1], m.key[token], products[2*width-1]
	correctNEON(&all[0], width, width/Tile, token, &m.key[0], &products[0], 4*width, &v[0])
	return true
}

// foldFast does as fold.
func foldFast(state, keys, d []float32, before float32, width int) bool {
	if cpu.Active() != cpu.NEON {
		return false
	}
	_, _, _ = state[width*width-1], keys[Chunk*width-1], d[Chunk*width-1]
	for lo := 0; lo < width; lo += Tile {
		first := lo / panel * panel
		columns := min(panel, width-first)
		foldNEON(&state[first*width+lo-first], 4*columns, width, &keys[0], &d[lo], before)
	}
	return true
}

// spaceFast takes one of n tokens through a tile of a state space, and returns how many: 0 where the machine
// has portable code alone.
func spaceFast(tile []float32, length, _ int, x, y []float32, _ int, b, c []float32, _ int, decays []float32) int {
	if cpu.Active() != cpu.NEON {
		return 0
	}
	_, _, _, _ = tile[Tile*length-1], x[Tile-1], y[Tile-1], decays[0]
	_, _ = b[length-1], c[length-1]
	spaceNEON(&tile[0], length, &b[0], &c[0], &x[0], &y[0], &decays[0])
	return 1
}

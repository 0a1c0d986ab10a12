//go:build amd64 && !purego

package delta

import "github.com/lutra-lm/lutra/kernels/cpu"

// Routines are called by name: through variables, their arguments would escape.

// productsFast does as products, where the machine has more than portable code.
func productsFast(state []float32, width int, q, k []float32, stride, n int, out []float32) bool {
	if !cpu.UseAVX2() {
		return false
	}
	last := (n - 1) * stride
	_, _, _, _ = state[width*width-1], q[last+width-1], k[last+width-1], out[2*n*width-1]
	wide := cpu.Active() == cpu.AVX512
	for lo := 0; lo < width; lo += panel {
		p, out, ld := &state[lo*width], out[lo:], 4*width
		switch {
		case width-lo < panel && wide:
			productsOneAVX512(p, width, &q[0], &k[0], 4*stride, &out[0], ld, n)
		case width-lo < panel:
			productsOneAVX2(p, width, &q[0], &k[0], 4*stride, &out[0], ld, n)
		case wide:
			if n >= 4 {
				productsAVX512x4(p, width, &q[0], &k[0], 4*stride, &out[0], ld, n/4)
			}
			if i := n &^ 3; i < n {
				productsAVX512(p, width, &q[i*stride], &k[i*stride], 4*stride, &out[2*i*width], ld, n-i)
			}
		default:
			productsAVX2(p, width, &q[0], &k[0], 4*stride, &out[0], ld, n)
		}
	}
	return true
}

// dotsFast does as dots.
func dotsFast(keys, q, k []float32, m *mix) bool {
	if !cpu.UseAVX2() {
		return false
	}
	width := len(k)
	n := len(keys) / width
	_, _ = q[width-1], m.key[n-1]
	if cpu.Active() == cpu.AVX512 {
		dotsAVX512(&keys[0], width, n, &q[0], &k[0], &m.key[0])
	} else {
		dotsAVX2(&keys[0], width, n, &q[0], &k[0], &m.key[0])
	}
	return true
}

// correctFast does as correct.
func correctFast(all []float32, token int, m *mix, products, v []float32) bool {
	if !cpu.UseAVX2() {
		return false
	}
	width := len(v)
	_, _, _ = all[Chunk*width-1], m.key[token], products[2*width-1]
	if cpu.Active() == cpu.AVX512 {
		n := width / (4 * Tile)
		if n > 0 {
			correctAVX512(&all[0], width, n, token, &m.key[0], &products[0], 4*width, &v[0])
		}
		if lo := n * 4 * Tile; lo < width {
			correctOneAVX512(&all[lo], width, (width-lo)/Tile, token, &m.key[0], &products[lo], 4*width, &v[lo])
		}
		return true
	}
	n := width / (2 * Tile)
	if n > 0 {
		correctAVX2(&all[0], width, n, token, &m.key[0], &products[0], 4*width, &v[0])
	}
	if lo := n * 2 * Tile; lo < width {
		correctOneAVX2(&all[lo], width, 1, token, &m.key[0], &products[lo], 4*width, &v[lo])
	}
	return true
}

// foldFast does as fold.
func foldFast(state, keys, d []float32, before float32, width int) bool {
	if !cpu.UseAVX2() {
		return false
	}
	_, _, _ = state[width*width-1], keys[Chunk*width-1], d[Chunk*width-1]
	wide := cpu.Active() == cpu.AVX512
	for lo := 0; lo < width; lo += panel {
		p, d := &state[lo*width], &d[lo]
		switch {
		case width-lo < panel && wide:
			foldOneAVX512(p, width, &keys[0], d, before)
		case width-lo < panel:
			foldOneAVX2(p, width, &keys[0], d, before)
		case wide:
			foldAVX512(p, width, &keys[0], d, before)
		default:
			foldAVX2(p, width, &keys[0], d, before)
		}
	}
	return true
}

// spaceFast takes some of n tokens through a tile of a state space, and returns how many: 0 where the machine
// has portable code alone.
func spaceFast(tile []float32, length, n int, x, y []float32, dim int, b, c []float32, stride int, decays []float32) int {
	if !cpu.UseAVX2() {
		return 0
	}
	_, _, _, _ = tile[Tile*length-1], x[Tile-1], y[Tile-1], decays[0]
	_, _ = b[length-1], c[length-1]
	switch wide := cpu.Active() == cpu.AVX512; {
	case wide && n >= 4:
		_, _, _, _, _ = x[3*dim+Tile-1], y[3*dim+Tile-1], b[3*stride+length-1], c[3*stride+length-1], decays[3]
		spaceAVX512x4(&tile[0], length, &b[0], &c[0], 4*stride, &x[0], &y[0], 4*dim, &decays[0])
		return 4
	case wide:
		spaceAVX512(&tile[0], length, &b[0], &c[0], 4*stride, &x[0], &y[0], 4*dim, &decays[0])
	case n >= 2:
		_, _, _, _, _ = x[dim+Tile-1], y[dim+Tile-1], b[stride+length-1], c[stride+length-1], decays[1]
		spaceAVX2x2(&tile[0], length, &b[0], &c[0], 4*stride, &x[0], &y[0], 4*dim, &decays[0])
		return 2
	default:
		spaceAVX2(&tile[0], length, &b[0], &c[0], 4*stride, &x[0], &y[0], 4*dim, &decays[0])
	}
	return 1
}

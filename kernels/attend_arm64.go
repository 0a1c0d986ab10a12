//go:build arm64 && !purego

package kernels

import "unsafe"

// attendFast tells whether the assembly takes heads of d.
func attendFast(d int) bool { return active == NEON && d%8 == 0 && d > 0 }

func scoresF16Fast(dst []float32, ld int, q []float32, k []uint16, g, t, d int) bool {
	if !attendFast(d) {
		return false
	}
	keys, i := (*byte)(unsafe.Pointer(&k[0])), 0
	for ; i+2 <= g; i += 2 {
		scoresF16x2(&dst[i*ld], ld, &q[i*d], keys, t, d)
	}
	if i < g {
		scoresF16x1(&dst[i*ld], ld, &q[i*d], keys, t, d)
	}
	return true
}

func accumF16Fast(acc, p []float32, ld int, v []uint16, g, t, d int) bool {
	if !attendFast(d) {
		return false
	}
	values, i := (*byte)(unsafe.Pointer(&v[0])), 0
	for ; i+2 <= g; i += 2 {
		accumF16x2(&acc[i*d], &p[i*ld], ld, values, t, d)
	}
	if i < g {
		accumF16x1(&acc[i*d], &p[i*ld], ld, values, t, d)
	}
	return true
}

func scoresQ8Fast(dst []float32, ld int, q []float32, k []int8, scale []float32, g, t, d int) bool {
	if !attendFast(d) {
		return false
	}
	keys, i := (*byte)(unsafe.Pointer(&k[0])), 0
	for ; i+2 <= g; i += 2 {
		scoresQ8x2(&dst[i*ld], ld, &q[i*d], keys, &scale[0], t, d)
	}
	if i < g {
		scoresQ8x1(&dst[i*ld], ld, &q[i*d], keys, &scale[0], t, d)
	}
	return true
}

func accumQ8Fast(acc, p []float32, ld int, v []int8, scale []float32, g, t, d int) bool {
	if !attendFast(d) {
		return false
	}
	values, i := (*byte)(unsafe.Pointer(&v[0])), 0
	for ; i+2 <= g; i += 2 {
		accumQ8x2(&acc[i*d], &p[i*ld], ld, values, &scale[0], t, d)
	}
	if i < g {
		accumQ8x1(&acc[i*d], &p[i*ld], ld, values, &scale[0], t, d)
	}
	return true
}

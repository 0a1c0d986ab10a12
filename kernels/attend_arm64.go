//go:build arm64 && !purego

package kernels

import "unsafe"

// attendFast tells whether the assembly takes heads of d.
func attendFast(d int) bool { return active == NEON && d%8 == 0 && d > 0 }

func scoresF16Fast(dst []float32, ld int, q []float32, k []uint16, g, groups, d int) bool {
	if active != NEON || d < 1 {
		return false
	}
	keys, i := (*byte)(unsafe.Pointer(&k[0])), 0
	for ; i+4 <= g; i += 4 {
		scoresF16x4(&dst[i*ld], ld, &q[i*d], keys, groups, d)
	}
	if i+2 <= g {
		scoresF16x2(&dst[i*ld], ld, &q[i*d], keys, groups, d)
		i += 2
	}
	if i < g {
		scoresF16x1(&dst[i*ld], ld, &q[i*d], keys, groups, d)
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

func scoresQ8Fast(dst []float32, ld int, q []float32, k []int8, scale []float32, g, groups, d int) bool {
	if active != NEON || d < 1 {
		return false
	}
	keys, i := (*byte)(unsafe.Pointer(&k[0])), 0
	for ; i+4 <= g; i += 4 {
		scoresQ8x4(&dst[i*ld], ld, &q[i*d], keys, &scale[0], groups, d)
	}
	if i+2 <= g {
		scoresQ8x2(&dst[i*ld], ld, &q[i*d], keys, &scale[0], groups, d)
		i += 2
	}
	if i < g {
		scoresQ8x1(&dst[i*ld], ld, &q[i*d], keys, &scale[0], groups, d)
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

// softmaxRowsFast is false: block does a row with the NEON primitives.
func softmaxRowsFast(_ []OnlineSoftmax, _ []float32, _ int, _ []int32, _ []float32, _ int) bool {
	return false
}

func storeKeyF16Fast(_ []uint16, _ []float32) int { return 0 }

//go:build arm64 && !purego

package attention

import (
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/cpu"
)

// attendFast reports whether the assembly takes heads of d.
func attendFast(d int) bool { return cpu.Active() == cpu.NEON && d%8 == 0 && d > 0 }

// contiguous counts the groups, from the first on, that stand one after another.
func contiguous(at []int32) int {
	n := 1
	for n < len(at) && at[n] == at[n-1]+KeyGroup {
		n++
	}
	return n
}

func scoresF16Fast(dst []float32, ld int, q []float32, k []uint16, at []int32, g, groups, d int, _ Ahead[uint16]) bool {
	if cpu.Active() != cpu.NEON || d < 1 {
		return false
	}
	for j := 0; j < groups; {
		first, n, i := int(at[j]), contiguous(at[j:groups]), 0
		keys, at := (*byte)(unsafe.Pointer(&k[first*d])), j*KeyGroup
		for ; i+4 <= g; i += 4 {
			scoresF16x4(&dst[i*ld+at], ld, &q[i*d], keys, n, d)
		}
		if i+2 <= g {
			scoresF16x2(&dst[i*ld+at], ld, &q[i*d], keys, n, d)
			i += 2
		}
		if i < g {
			scoresF16x1(&dst[i*ld+at], ld, &q[i*d], keys, n, d)
		}
		j += n
	}
	return true
}

func accumF16Fast(acc, p []float32, ld int, v []uint16, at []int32, g, t, d int, _ Ahead[uint16]) bool {
	if !attendFast(d) {
		return false
	}
	for j := 0; j*KeyGroup < t; {
		first, groups, i := int(at[j]), contiguous(at[j:]), 0
		values, n, at := (*byte)(unsafe.Pointer(&v[first*d])), min(groups*KeyGroup, t-j*KeyGroup), j*KeyGroup
		for ; i+2 <= g; i += 2 {
			accumF16x2(&acc[i*d], &p[i*ld+at], ld, values, n, d)
		}
		if i < g {
			accumF16x1(&acc[i*d], &p[i*ld+at], ld, values, n, d)
		}
		j += groups
	}
	return true
}

func scoresQ8Fast(dst []float32, ld int, q []float32, k []int8, scale []float32, at []int32, g, groups, d int, _ Ahead[int8]) bool {
	if cpu.Active() != cpu.NEON || d < 1 {
		return false
	}
	for j := 0; j < groups; {
		first, n, i := int(at[j]), contiguous(at[j:groups]), 0
		keys, at := (*byte)(unsafe.Pointer(&k[first*d])), j*KeyGroup
		for ; i+4 <= g; i += 4 {
			scoresQ8x4(&dst[i*ld+at], ld, &q[i*d], keys, &scale[first], n, d)
		}
		if i+2 <= g {
			scoresQ8x2(&dst[i*ld+at], ld, &q[i*d], keys, &scale[first], n, d)
			i += 2
		}
		if i < g {
			scoresQ8x1(&dst[i*ld+at], ld, &q[i*d], keys, &scale[first], n, d)
		}
		j += n
	}
	return true
}

func accumQ8Fast(acc, p []float32, ld int, v []int8, scale []float32, at []int32, g, t, d int, _ Ahead[int8]) bool {
	if !attendFast(d) {
		return false
	}
	for j := 0; j*KeyGroup < t; {
		first, groups, i := int(at[j]), contiguous(at[j:]), 0
		values, n, at := (*byte)(unsafe.Pointer(&v[first*d])), min(groups*KeyGroup, t-j*KeyGroup), j*KeyGroup
		for ; i+2 <= g; i += 2 {
			accumQ8x2(&acc[i*d], &p[i*ld+at], ld, values, &scale[first], n, d)
		}
		if i < g {
			accumQ8x1(&acc[i*d], &p[i*ld+at], ld, values, &scale[first], n, d)
		}
		j += groups
	}
	return true
}

// scoresQ4Fast returns false: the portable product does it.
func scoresQ4Fast(_ []float32, _ int, _, _ []byte, _ []uint16, _ []int32, _, _, _ int, _ Ahead[byte]) bool {
	return false
}

// accumQ4Fast returns false: the portable sum does it.
func accumQ4Fast(_, _ []float32, _ int, _ []byte, _ []uint16, _ []int32, _, _, _ int, _ Ahead[byte]) bool {
	return false
}

// softmaxRowsFast returns false: block does a row with the NEON primitives.
func softmaxRowsFast(_ []Softmax, _ []float32, _ int, _ []int32, _ []float32, _ int) bool {
	return false
}

func storeKeyF16Fast(_ []uint16, _ []float32) int { return 0 }

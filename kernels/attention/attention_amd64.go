//go:build amd64 && !purego

package attention

import (
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/cpu"
)

// attendGroups holds how many groups of keys the kernel of n query rows takes at once.
var attendGroups = [attendRows + 1]int{0, 4, 4, 2, 2}

// attendRows is the number of query rows of the widest kernel.
const attendRows = 4

// attendFast reports whether the assembly takes heads of d.
func attendFast(d int) bool { return cpu.UseAVX2() && d%8 == 0 && d > 0 }

// find returns where the given number of groups are, nil when there are fewer.
func (a Ahead[T]) find(groups int) (*byte, *int32) {
	if len(a.Data) == 0 || len(a.At) < groups {
		return nil, nil
	}
	return (*byte)(unsafe.Pointer(&a.Data[0])), &a.At[0]
}

// haveGroups returns how many of the groups there is room for in dst, whose g rows of
// scores are ld apart.
func haveGroups(dst, ld, groups, g int) int {
	have := min(groups, (dst-(g-1)*ld)/KeyGroup)
	if g > 1 {
		have = min(have, ld/KeyGroup)
	}
	return have
}

func scoresF16Fast(dst []float32, ld int, q []float32, k []uint16, at []int32, g, groups, d int, next Ahead[uint16]) bool {
	if !attendFast(d) {
		return false
	}
	keys := (*byte)(unsafe.Pointer(&k[0]))
	soon, soonAt := next.find(len(at))
	if soonAt == nil {
		soon, soonAt = keys, &at[0]
	}
	have := haveGroups(len(dst), ld, len(at), g)
	for i := 0; i < g; {
		n := cpu.TileWidth(g-i, attendRows)
		out, query := &dst[i*ld], &q[i*d]
		take := min(cpu.RoundUp(groups, attendGroups[n]), have) // more keys at once cost no more
		switch n {
		case 1:
			scoresF16x1(out, ld, query, keys, &at[0], take, d, soon, soonAt)
		case 2:
			scoresF16x2(out, ld, query, keys, &at[0], take, d, soon, soonAt)
		case 3:
			scoresF16x3(out, ld, query, keys, &at[0], take, d, soon, soonAt)
		case 4:
			scoresF16x4(out, ld, query, keys, &at[0], take, d, soon, soonAt)
		}
		i += n
	}
	return true
}

func scoresQ8Fast(dst []float32, ld int, q []float32, k []int8, scale []float32, at []int32, g, groups, d int, next Ahead[int8]) bool {
	if !attendFast(d) {
		return false
	}
	keys := (*byte)(unsafe.Pointer(&k[0]))
	soon, soonAt := next.find(len(at))
	if soonAt == nil {
		soon, soonAt = keys, &at[0]
	}
	have := haveGroups(len(dst), ld, len(at), g)
	for i := 0; i < g; {
		n := cpu.TileWidth(g-i, attendRows)
		out, query := &dst[i*ld], &q[i*d]
		take := min(cpu.RoundUp(groups, attendGroups[n]), have) // more keys at once cost no more
		switch n {
		case 1:
			scoresQ8x1(out, ld, query, keys, &scale[0], &at[0], take, d, soon, soonAt)
		case 2:
			scoresQ8x2(out, ld, query, keys, &scale[0], &at[0], take, d, soon, soonAt)
		case 3:
			scoresQ8x3(out, ld, query, keys, &scale[0], &at[0], take, d, soon, soonAt)
		case 4:
			scoresQ8x4(out, ld, query, keys, &scale[0], &at[0], take, d, soon, soonAt)
		}
		i += n
	}
	return true
}

func scoresQ4Fast(dst []float32, ld int, q, k []byte, scale []uint16, at []int32, g, groups, d int, next Ahead[byte]) bool {
	if !cpu.UseAVX2() {
		return false
	}
	soon, soonAt := next.find(len(at))
	if soonAt == nil {
		soon, soonAt = &k[0], &at[0]
	}
	score := scoresQ4AVX2
	if cpu.Active() == cpu.AVX512 {
		score = scoresQ4AVX512
	}
	score(&dst[0], ld, &q[0], &k[0], &scale[0], &at[0], groups, d/PartQ4, g, soon, soonAt)
	return true
}

func accumQ4Fast(acc, p []float32, ld int, v []byte, scale []uint16, at []int32, g, t, d int, next Ahead[byte]) bool {
	if !cpu.UseAVX2() {
		return false
	}
	soon, soonAt := next.find(len(at))
	accum := accumQ4AVX2
	if cpu.Active() == cpu.AVX512 {
		accum = accumQ4AVX512
	}
	accum(&acc[0], &p[0], ld, &v[0], &scale[0], &at[0], t, d/PartQ4, g, soon, soonAt)
	return true
}

func softmaxRowsFast(rows []Softmax, scores []float32, ld int, n []int32, acc []float32, d int) bool {
	if !attendFast(d) {
		return false
	}
	if cpu.Active() == cpu.AVX512 {
		softmaxRowsAVX512(&rows[0].Max, &scores[0], ld, &n[0], &acc[0], d, len(rows))
	} else {
		softmaxRowsAVX2(&rows[0].Max, &scores[0], ld, &n[0], &acc[0], d, len(rows))
	}
	return true
}

func storeKeyF16Fast(group []uint16, x []float32) int {
	n := len(x) &^ 7
	if n > 0 && cpu.UseAVX2() {
		interleaveF16(&group[0], &x[0], n)
		return n
	}
	return 0
}

func accumF16Fast(acc, p []float32, ld int, v []uint16, at []int32, g, t, d int, next Ahead[uint16]) bool {
	if !attendFast(d) {
		return false
	}
	values := (*byte)(unsafe.Pointer(&v[0]))
	soon, soonAt := next.find(len(at))
	for i := 0; i < g; {
		n := cpu.TileWidth(g-i, attendRows)
		out, weight := &acc[i*d], &p[i*ld]
		switch n {
		case 1:
			accumF16x1(out, weight, ld, values, &at[0], t, d, soon, soonAt)
		case 2:
			accumF16x2(out, weight, ld, values, &at[0], t, d, soon, soonAt)
		case 3:
			accumF16x3(out, weight, ld, values, &at[0], t, d, soon, soonAt)
		case 4:
			accumF16x4(out, weight, ld, values, &at[0], t, d, soon, soonAt)
		}
		i += n
	}
	return true
}

func accumQ8Fast(acc, p []float32, ld int, v []int8, scale []float32, at []int32, g, t, d int, next Ahead[int8]) bool {
	if !attendFast(d) {
		return false
	}
	values := (*byte)(unsafe.Pointer(&v[0]))
	soon, soonAt := next.find(len(at))
	for i := 0; i < g; {
		n := cpu.TileWidth(g-i, attendRows)
		out, weight := &acc[i*d], &p[i*ld]
		switch n {
		case 1:
			accumQ8x1(out, weight, ld, values, &scale[0], &at[0], t, d, soon, soonAt)
		case 2:
			accumQ8x2(out, weight, ld, values, &scale[0], &at[0], t, d, soon, soonAt)
		case 3:
			accumQ8x3(out, weight, ld, values, &scale[0], &at[0], t, d, soon, soonAt)
		case 4:
			accumQ8x4(out, weight, ld, values, &scale[0], &at[0], t, d, soon, soonAt)
		}
		i += n
	}
	return true
}

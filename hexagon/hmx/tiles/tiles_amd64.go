//go:build amd64 && !purego

package tiles

import "github.com/lutra-lm/lutra/kernels/cpu"

// near weights stay in the first cache while all rows are multiplied.
const near = 4 * Size

func (s *Sums) multiplyFast(act, wgt []float32, columns int) bool {
	if !cpu.UseAVX2() {
		return false
	}
	// rows is the number of rows that one call multiplies.
	multiply, rows := multiplyAVX2, 2
	switch wide := cpu.Active() == cpu.AVX512; {
	case wide && columns == Side:
		multiply, rows = multiplyAVX512, 8
	case wide:
		multiply, rows = multiplyHalfAVX512, 16
	case columns < Side:
		multiply, rows = multiplyHalfAVX2, 4
	}
	for len(wgt) > 0 {
		n := min(len(wgt), near)
		for y := 0; y < Side; y += rows {
			multiply(&s[y*Side], &act[y*Side], &wgt[0], n/Size)
		}
		act, wgt = act[n:], wgt[n:]
	}
	return true
}

func widenFast(dst []float32, src []uint16) bool {
	if !cpu.UseAVX2() {
		return false
	}
	widenAVX2(&dst[0], &src[0], len(dst))
	return true
}

func widenRowsFast(dst []float32, src []uint16) bool {
	if !cpu.UseAVX2() {
		return false
	}
	widenPairsAVX2(&dst[0], &src[0], len(dst)/(2*Side))
	return true
}

func (s *Sums) narrowFast(dst *[Size]uint16, scale float32) bool {
	if !cpu.UseAVX2() {
		return false
	}
	narrowPairsAVX2(&dst[0], &s[0], scale, Side/2)
	return true
}

func unpackFast(dst *[Size]uint16, lines []byte, values *[Side][Codes]uint16, bits int) bool {
	if cpu.Active() != cpu.AVX512 {
		return false
	}
	switch bits {
	case 1:
		unpack1AVX512(&dst[0], &lines[0], &values[0][0])
	case 2:
		unpack2AVX512(&dst[0], &lines[0], &values[0][0])
	case 4:
		unpack4AVX512(&dst[0], &lines[0], &values[0][0])
	default:
		return false
	}
	return true
}

func superGroupsFast(dst []uint16, src []byte, v *[Codes]float32, n int) bool {
	if cpu.Active() != cpu.AVX512 {
		return false
	}
	superGroupsAVX512(&dst[0], &src[0], &v[0], n)
	return true
}

func scaleValuesFast(values [][Codes]uint16, v *[Codes]float32, scales, offsets []float32) bool {
	if cpu.Active() != cpu.AVX512 {
		return false
	}
	var o *float32
	if offsets != nil {
		o = &offsets[0]
	}
	scaleValuesAVX512(&values[0][0], &v[0], &scales[0], o, len(values))
	return true
}

// LooksUp reports whether LookUp has instructions.
func LooksUp() bool { return cpu.Active() == cpu.AVX512 }

func lookUpFast(t *[Rows]int32, lines []byte, tables []int16, bits int) bool {
	if !LooksUp() {
		return false
	}
	switch bits {
	case 1:
		lookUp1AVX512(&t[0], &lines[0], &tables[0])
	case 2:
		lookUp2AVX512(&t[0], &lines[0], &tables[0])
	case 4:
		lookUp4AVX512(&t[0], &lines[0], &tables[0])
	default:
		return false
	}
	return true
}

func addScaledFast(y, t *[Rows]int32, scales *[Rows]int16, a, b int32) bool {
	if !LooksUp() {
		return false
	}
	addScaledAVX512(&y[0], &t[0], &scales[0], a, b)
	return true
}

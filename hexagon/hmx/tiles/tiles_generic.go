package tiles

import "github.com/lutra-lm/lutra/kernels/vector"

func widenGeneric(dst []float32, src []uint16) {
	for i, h := range src {
		dst[i] = vector.FromF16(h)
	}
}

func widenRowsGeneric(dst []float32, src []uint16) {
	for ; len(dst) > 0; dst, src = dst[2*Side:], src[2*Side:] {
		for c := range Side {
			dst[c], dst[Side+c] = vector.FromF16(src[2*c]), vector.FromF16(src[2*c+1])
		}
	}
}

// multiplyGeneric keeps eight sums of a row in registers.
func (s *Sums) multiplyGeneric(act, wgt []float32, columns int) {
	for y := range Side {
		a := act[y>>1<<6|y&1:]
		for x := 0; x < columns; x += 8 {
			p := (*[8]float32)(s[y*Side+x:])
			s0, s1, s2, s3, s4, s5, s6, s7 := p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]
			for t := 0; t < len(wgt); t += Size {
				a, w := a[t:][:2*Side-1], wgt[t:][:Size]
				for k := range Side {
					f, b := a[2*k], (*[8]float32)(w[k*Side+x:])
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

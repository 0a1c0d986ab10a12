package grouped

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/acts"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// tallTokens is the number of tokens of the tallest tiles of Q8 in AVX2. Registers hold the sums
// of so many for one vector of a band's rows, so that these tiles take one vector of a group
// after the other: sizes and signs of codes are divided by more tokens, and what is asked of
// memory is spread over their time.
const tallTokens = 8

// tallQ8 gives the emitter of a group: it multiplies |w| with the activations, or with their
// complement where w is negative: -a-1, which is a sign's work in half the time. What those
// ones take off is the sum of the negative codes, which is put back at the end. A pair's sum
// is within ±2·128·128 and fits. Tokens that follow each other read different words, since
// records lie so that the same ones are in one bank of L1.
func (t *tile) tallQ8() func() {
	ones, none := YMM(), YMM()
	emit.FillLanes(0x00010001, ones)
	emit.ZeroY(none)
	products := func(v int) []reg.VecVirtual {
		sum, ofNegative := make([]reg.VecVirtual, t.tokens), YMM()
		for j := 0; j < 8; j += 2 {
			var size, negative [2]reg.VecVirtual
			for h := range 2 {
				size[h], negative[h] = YMM(), YMM()
				VPABSB(t.code((j+h)*planeBytes+v*32), size[h])
				VPCMPGTB(t.code((j+h)*planeBytes+v*32), none, negative[h])
				if j+h == 0 {
					VPMADDUBSW(negative[h], size[h], ofNegative)
					continue
				}
				m := YMM()
				VPMADDUBSW(negative[h], size[h], m)
				VPADDW(m, ofNegative, ofNegative)
			}
			for half := range 2 {
				for i := range sum {
					h, a := (i+half)%2, YMM()
					VPBROADCASTD(t.acts.At(i, 4*(j+h)), a)
					VPXOR(negative[h], a, a)
					VPMADDUBSW(a, size[h], a)
					VPMADDWD(ones, a, a)
					if j+half == 0 {
						sum[i] = a
					} else {
						VPADDD(a, sum[i], sum[i])
					}
				}
			}
		}
		VPMADDWD(ones, ofNegative, ofNegative)
		m := YMM()
		VPBROADCASTD(everyDword(magicBits), m)
		VPSUBD(m, ofNegative, ofNegative)
		for i := range sum {
			VPSUBD(ofNegative, sum[i], sum[i])
		}
		return sum
	}
	return func() {
		for v := range vectors {
			t.finishMagic(v, products(v))
		}
	}
}

// finishMagic does as finish, for vector v and integers that were added to magicBits, and
// so are float32 numbers already: d·1.5·2²³ is exact, and taken off before anything is rounded.
func (t *tile) finishMagic(v int, sum []reg.VecVirtual) {
	d, off := YMM(), YMM()
	VCVTPH2PS(t.scaleAt(16*v), d)
	VPBROADCASTD(everyDword(magicBits|1<<31), off)
	VMULPS(off, d, off)
	for i, s := range sum {
		VFMADD213PS(off, d, s)
		a := YMM()
		VBROADCASTSS(t.acts.At(i, acts.RecScale), a)
		VFMADD213PS(t.y.At(i, v*32), a, s)
		VMOVUPS(s, t.y.At(i, v*32))
	}
}

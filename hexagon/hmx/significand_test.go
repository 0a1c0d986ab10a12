package hmx

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/layout"
)

func TestTheSignificandSumsIntegersExactly(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 4))
	for range 200 {
		x, w := make([]uint16, 64), make([]uint16, 64)
		for i := range x {
			x[i], w[i] = layout.F16(float32(r.IntN(41)-20)), layout.F16(float32(r.IntN(41)-20))
		}
		if got, want := sumSignificand(x, w), sumExact(x, w); float64(got) != want {
			t.Fatalf("the sum is %v, want %v", got, want)
		}
	}
	for h := range uint16(0x7c00) {
		if m, e := split(h | 0x8000); math.Ldexp(float64(m), e-9) != -float64(layout.F32(h)) {
			t.Fatalf("%#x is split into %d and %d", h, m, e)
		}
	}
	if got := jam(0b1011, 2); got != 0b11 {
		t.Errorf("jam loses a bit: %b", got)
	}
	if got := jam(-8, 2); got != -2 {
		t.Errorf("jam of -8 by 2 is %d", got)
	}
}

// Whether the unit's accumulator is one or the other matters less than fp16 shows.
func TestAccumulatorsDifferInFewHalves(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const rows, cols = 1, 1
	for _, k := range []int{8, 32, 128} { // 256, 1024 and 4096 columns
		act, wgt := make([]uint16, k*tile), make([]uint16, k*tile)
		for i := range act {
			act[i] = layout.F16(float32(r.NormFloat64() * 0.02)) // weights
			wgt[i] = layout.F16(float32(r.NormFloat64()))
		}
		a := CompareAccumulators(act, wgt, rows, cols, k)
		t.Logf("%d columns: %+v", k*layout.Tile, a)
		if a.Numbers != tile || a.Float32*50 > a.Numbers || a.Significand*50 > a.Numbers {
			t.Errorf("%d columns: %+v", k*layout.Tile, a)
		}
	}
	for i, h := range []uint16{0x3c00, 0x3c01, 0xbc00} {
		largest := 0
		if d := differs(h, 0x3c00, &largest); (i == 0) != (d == 0) || i == 1 && largest != 1 {
			t.Errorf("%#x differs by %d from 1", h, largest)
		}
	}
}

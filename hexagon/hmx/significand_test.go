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
		a := compareAccumulators(act, wgt, rows, cols, k)
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

// accumulators compares ways to sum a tile's products, since no document says how the
// unit does: the float32 that devices here compute, and a signed 8.22 significand with
// an exponent, as Qualcomm's public fork of QEMU describes the unit. Neither has been
// compared with a chip.
type accumulators struct {
	Numbers                  int // of output
	Float32, Significand     int // of them that differ from the exact sum's fp16
	Different                int // from one another
	LargestF32, LargestSig22 int // differences, in units of the last place
}

// compareAccumulators multiplies act [rows][k] by wgt [cols][k] tiles.
func compareAccumulators(act, wgt []uint16, rows, cols, k int) accumulators {
	var a accumulators
	u, out := New(nil), make([]uint16, rows*cols*tile)
	u.Mul(out, []Run{{Act: act, Wgt: wgt, K: k}}, rows, cols, 1)
	x, w := make([]uint16, k*layout.Tile), make([]uint16, k*layout.Tile)
	for r := range rows * layout.Tile {
		for c := range cols * layout.Tile {
			for i := range x {
				x[i] = act[(r/layout.Tile*k+i/layout.Tile)*tile+layout.TileIndex(r%layout.Tile, i%layout.Tile)]
				w[i] = wgt[(c/layout.Tile*k+i/layout.Tile)*tile+layout.TileIndex(i%layout.Tile, c%layout.Tile)]
			}
			f32 := out[(r/layout.Tile*cols+c/layout.Tile)*tile+layout.TileIndex(r%layout.Tile, c%layout.Tile)]
			sig, exact := layout.F16(sumSignificand(x, w)), layout.F16(float32(sumExact(x, w)))
			a.Numbers++
			a.Float32 += differs(f32, exact, &a.LargestF32)
			a.Significand += differs(sig, exact, &a.LargestSig22)
			a.Different += differs(f32, sig, new(int))
		}
	}
	return a
}

// differs is 1 if two numbers do, and keeps the largest difference.
func differs(a, b uint16, largest *int) int {
	d := int(layout.Order(a)) - int(layout.Order(b))
	*largest = max(*largest, d, -d)
	if d != 0 {
		return 1
	}
	return 0
}

// sumExact returns the sum of products in float64, which is exact for fp16 numbers of
// like sizes.
func sumExact(x, w []uint16) (sum float64) {
	for i, h := range x {
		sum += float64(layout.F32(h)) * float64(layout.F32(w[i]))
	}
	return sum
}

// The significand's format: value = significand · 2^(exponent - fraction).
const (
	fraction      = 22
	leastExponent = -64
	atOnce        = 8 // products
)

// sumSignificand sums products as the fork does: eight are aligned to the largest of
// their exponents and added, the sum is aligned with the accumulator and added to it,
// and that is normalised by at most three places. Bits that alignment shifts out are
// or-ed into the last place.
func sumSignificand(x, w []uint16) float32 {
	var acc int64
	exponent := leastExponent
	for i := 0; i < len(x); i += atOnce {
		var products [atOnce]int64
		var exponents [atOnce]int
		top, any := leastExponent, false
		for j := range products {
			a, ea := split(x[i+j])
			b, eb := split(w[i+j])
			if products[j] = a * b << (fraction - 18); products[j] != 0 {
				exponents[j], any = ea+eb, true
				top = max(top, exponents[j])
			}
		}
		if !any {
			continue
		}
		var sum int64
		for j, p := range products {
			sum += jam(p, top-exponents[j])
		}
		most := max(top, exponent)
		acc = jam(sum, most-top) + jam(acc, most-exponent)
		acc, exponent = jam(acc, 1), most+1
		for n := 0; n < 3 && exponent > leastExponent && acc<<(63-28)>>(63-28) == acc; n++ {
			acc, exponent = acc<<1, exponent-1
		}
	}
	return float32(math.Ldexp(float64(acc), exponent-fraction))
}

// jam shifts right and ors the bits that are lost into the last place.
func jam(v int64, n int) int64 {
	if n <= 0 {
		return v
	}
	n = min(n, 62)
	if v&(1<<n-1) != 0 {
		return v>>n | 1
	}
	return v >> n
}

// split returns value = significand · 2^(exponent-9), 1024 ≤ |significand| < 2048.
func split(h uint16) (significand int64, exponent int) {
	e, m := int(h>>10&31), int64(h&0x3ff)
	switch {
	case e > 0:
		m |= 1024
	case m == 0:
		return 0, 0
	default:
		for e = 1; m < 1024; e-- {
			m <<= 1
		}
	}
	if h&0x8000 != 0 {
		m = -m
	}
	return m, e - 16
}

package vector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/kerneltest"
)

func TestEveryHalfSurvivesWideningAndNarrowing(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		src, back := make([]uint16, 1<<16), make([]uint16, 1<<16)
		wide := make([]float32, 1<<16)
		for i := range src {
			src[i] = uint16(i)
			wide[i] = FromF16(src[i])
		}
		F32ToF16(back, wide)
		for i, h := range src {
			nan := h&0x7fff > 0x7c00
			if want := h | uint16(map[bool]int{true: 0x200}[nan]); back[i] != want {
				t.Fatalf("half %#x came back as %#x, want %#x", h, back[i], want)
			}
		}
		for i, h := range src {
			back[i] = ToBF16(FromBF16(h))
			if nan := h&0x7fff > 0x7f80; back[i] != h && !(nan && back[i] == h|0x40) {
				t.Fatalf("bfloat16 %#x came back as %#x", h, back[i])
			}
		}
	})
}

func TestNarrowingRoundsToNearestEven(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 9))
		x := make([]float32, 1<<14)
		for i := range x {
			x[i] = math.Float32frombits(r.Uint32()&^0x7f800000 | uint32(100+r.IntN(45))<<23)
			if i%3 == 0 { // a tie
				x[i] = math.Float32frombits(math.Float32bits(x[i])&^0x1fff | 0x1000)
			}
		}
		x = append(x, 65519.99, 65520, 1e30, -65520, 0x1p-24, 0x1p-25, 0x1.8p-25, 0x1p-26, float32(math.Inf(1)), 5.9604645e-08)
		h := make([]uint16, len(x))
		F32ToF16(h, x)
		for i, f := range x {
			if want := ToF16(f); h[i] != want {
				t.Fatalf("F32ToF16(%v) = %#x, want %#x", f, h[i], want)
			}
			// No neighbour may be nearer.
			if d := math.Abs(float64(FromF16(h[i])) - float64(f)); h[i]&0x7fff < 0x7bff {
				for _, o := range []uint16{h[i] + 1, h[i] - 1} {
					e := math.Abs(float64(FromF16(o)) - float64(f))
					if o&0x7fff < 0x7c00 && (e < d || e == d && h[i]&1 == 1) {
						t.Fatalf("F32ToF16(%v) = %#x, but %#x is nearer or even", f, h[i], o)
					}
				}
			}
		}
	})
}

func TestHalvesWidenAndRoundToNearestEven(t *testing.T) {
	for h := range uint32(1 << 16) {
		f := FromF16(uint16(h))
		if math.IsNaN(float64(f)) != (h&0x7c00 == 0x7c00 && h&0x3ff != 0) {
			t.Fatalf("half %#04x widens to %v", h, f)
		}
		if f != f {
			if g := ToF16(f); g&0x7c00 != 0x7c00 || g&0x3ff == 0 {
				t.Fatalf("NaN %#04x narrows to %#04x", h, g)
			}
			continue
		}
		if g := ToF16(f); g != uint16(h) {
			t.Fatalf("half %#04x comes back as %#04x", h, g)
		}
		if h&0x7fff >= 0x7c00 {
			continue
		}
		// Half-way to the next larger magnitude goes to the even of the two; a
		// hair more or less goes to the nearer one.
		next := float64(FromF16(uint16(h + 1)))
		if math.IsInf(next, 0) {
			next = math.Copysign(65536, next) // where the next half would be
		}
		mid := float32((float64(f) + next) / 2)
		even := uint16(h + h&1)
		if g := ToF16(mid); g != even {
			t.Fatalf("%v, half-way above %#04x, rounds to %#04x, want %#04x", mid, h, g, even)
		}
		if g := ToF16(math.Nextafter32(mid, f)); g != uint16(h) {
			t.Fatalf("just below half-way above %#04x rounds to %#04x", h, g)
		}
		if g := ToF16(math.Nextafter32(mid, float32(next))); g != uint16(h+1) {
			t.Fatalf("just above half-way above %#04x rounds to %#04x", h, g)
		}
	}
}

func TestBrainFloatsRoundToNearestEven(t *testing.T) {
	for _, c := range []struct {
		bits uint32
		want uint16
	}{
		{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},
		{0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0x80000000, 0x8000},
	} {
		if got := ToBF16(math.Float32frombits(c.bits)); got != c.want {
			t.Errorf("float bits %#08x round to %#04x, want %#04x", c.bits, got, c.want)
		}
	}
}

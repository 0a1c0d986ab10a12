package kernels

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

func randomTrits(rng *rand.Rand, n int) []int8 {
	t := make([]int8, n)
	for i := range t {
		t[i] = int8(rng.IntN(3) - 1)
	}
	return t
}

func randomFloats(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

func TestUnpackUndoesPackTernary(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, p := range []Packing{I1, I2} {
		for _, c := range [][2]int{{1, 1}, {1, 3}, {64, 20}, {65, 16}, {63, 21}, {127, 97}, {200, 131}} {
			rows, cols := c[0], c[1]
			trits := randomTrits(rng, rows*cols)
			m, err := PackTernary(rows, cols, trits, []float32{1}, p)
			if err != nil {
				t.Fatalf("PackTernary(%d, %d, %v): %v", rows, cols, p, err)
			}
			got, err := UnpackTernary(m)
			if err != nil {
				t.Fatal(err)
			}
			for i := range trits {
				if got[i] != trits[i] {
					t.Fatalf("%v %dx%d: trit %d = %d, want %d", p, rows, cols, i, got[i], trits[i])
				}
			}
		}
	}
}

func TestPackTernaryRefusesWhatDoesNotFit(t *testing.T) {
	one := []float32{1}
	for _, c := range []struct {
		name       string
		rows, cols int
		trits      []int8
		scale      []float32
		p          Packing
		want       error
	}{
		{"no rows", 0, 4, nil, one, I1, ErrShape},
		{"no columns", 4, 0, nil, one, I2, ErrShape},
		{"negative", -1, -4, make([]int8, 4), one, I2, ErrShape},
		{"too few trits", 2, 4, make([]int8, 7), one, I1, ErrShape},
		{"too many trits", 2, 4, make([]int8, 9), one, I1, ErrShape},
		{"product overflows", 1 << 30, 1 << 24, make([]int8, 4), one, I1, ErrShape},
		{"no scale", 2, 4, make([]int8, 8), nil, I1, ErrShape},
		{"scales for three rows", 2, 4, make([]int8, 8), make([]float32, 3), I1, ErrShape},
		{"a two", 1, 4, []int8{0, 0, 2, 0}, one, I1, ErrShape},
		{"a minus two", 1, 4, []int8{0, 0, -2, 0}, one, I2, ErrShape},
		{"a minus 128", 1, 4, []int8{0, 0, 0, -128}, one, I2, ErrShape},
		{"not ternary", 1, 4, make([]int8, 4), one, Q4, ErrUnsupported},
	} {
		if _, err := PackTernary(c.rows, c.cols, c.trits, c.scale, c.p); !errors.Is(err, c.want) {
			t.Errorf("%s: PackTernary = %v, want %v", c.name, err, c.want)
		}
	}
}

func TestLoadRefusesTernaryDataThatKernelsCouldNotTrust(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	cpu := NewCPU(pool)
	good := func() *Matrix {
		m, err := PackTernary(2, 4, make([]int8, 8), []float32{1}, I2)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for name, spoil := range map[string]func(m *Matrix){
		"short data":     func(m *Matrix) { m.Data = m.Data[:len(m.Data)-1] },
		"a crumb of 3":   func(m *Matrix) { m.Data[7] = 3 << 4 },
		"no scale":       func(m *Matrix) { m.Scale = nil },
		"more columns":   func(m *Matrix) { m.Cols = 17 },
		"no rows":        func(m *Matrix) { m.Rows = 0 },
		"another layout": func(m *Matrix) { m.Packing = I1; m.Data[0] = 243 },
	} {
		m := good()
		spoil(m)
		if _, err := cpu.Load(m); !errors.Is(err, ErrShape) {
			t.Errorf("%s: Load = %v, want ErrShape", name, err)
		}
	}
	if _, err := cpu.Load(good()); err != nil {
		t.Errorf("Load of a good matrix: %v", err)
	}
}

func TestQuantisedRowsKeepTheirBounds(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		x     []float32
		q     []int8
		scale float32
	}{
		{[]float32{0, 0, 0}, []int8{0, 0, 0}, 0},
		{[]float32{1, -1, 0.5}, []int8{127, -127, 64}, 1 / float32(127)}, // 63.5 goes to even
		{[]float32{254, 5, 3}, []int8{127, 2, 2}, 2},                     // 2.5 and 1.5
		{[]float32{1, nan, 3}, []int8{0, 0, 0}, nan},
		{[]float32{1, -inf, 3}, []int8{0, 0, 0}, nan},
		{[]float32{1e-40, -1e-38, 0}, []int8{0, 0, 0}, 0},
		{[]float32{math.MaxFloat32, -math.MaxFloat32, 1}, []int8{127, -127, 0}, math.MaxFloat32 / 127},
	} {
		for _, pad := range []int{0, 13, 64} { // the value sits in a vector's body and in its tail
			x := append(make([]float32, pad), c.x...)
			q := make([]int8, len(x))
			for name, f := range map[string]func([]int8, []float32) (float32, int32){"native": quantiseRow, "generic": quantiseRowGeneric} {
				scale, negSum := f(q, x)
				want := int32(0)
				for i, v := range c.q {
					if q[pad+i] != v {
						t.Errorf("%s: quantised %v = %v, want %v", name, c.x, q[pad:], c.q)
					}
					want -= int32(v)
				}
				if scale != c.scale && (scale == scale || c.scale == c.scale) || negSum != want {
					t.Errorf("%s: quantised %v: scale %v, sum %v; want %v, %v", name, c.x, scale, negSum, c.scale, want)
				}
			}
		}
	}
}

func ExampleTernarySize() {
	for _, p := range []Packing{I1, I2} {
		fmt.Println(p, TernarySize(2560, 6912, p))
	}
	// Output:
	// I1 3543040
	// I2 4423680
}

func TestArrangementsHoldTheCodesOfTheirTokens(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, cols := range []int{1, 16, 79, 80, 81, 333} {
		stride := rowStride(cols)
		q := make([]int8, actTile*stride)
		for i := range q {
			q[i] = int8(rng.IntN(255) - 127)
		}
		for _, g := range []int{4, 5} {
			kp := cpu.RoundUp(cols, blockBytes*g)
			for width := 1; width <= 8; width++ {
				got, want := make([]int8, width*kp), make([]int8, width*kp)
				arrangeQuads(got, q, stride, g, width)
				arrangeQuadsGeneric(want, q, stride, g, width)
				for k := range kp { // and by the definition: [block][g][width][4]
					b, c, j := k/(blockBytes*g), k%(blockBytes*g)/g, k%g
					for n := range width {
						i := ((b*g+j)*width+n)*4 + c
						if got[i] != q[n*stride+k] || want[i] != q[n*stride+k] {
							t.Fatalf("%d columns, g %d, width %d: token %d, column %d = %d and %d, want %d", cols, g, width, n, k, got[i], want[i], q[n*stride+k])
						}
					}
				}
			}
		}
		got, want := make([]int8, actTile*stride), make([]int8, actTile*stride)
		arrangeLanes(got, q, stride, actTile, actTile)
		arrangeLanesGeneric(want, q, stride, actTile, actTile)
		for i := range got {
			if v := q[i%actTile*stride+i/actTile]; got[i] != v || want[i] != v {
				t.Fatalf("%d columns: lane %d, column %d = %d and %d, want %d", cols, i%actTile, i/actTile, got[i], want[i], v)
			}
		}
	}
}

func TestPairedTilesHoldTheCodesOfTheirTokens(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	pool := pool.New(2)
	defer pool.Close()
	const n, lo, hi = 3*hybridTokens + 2, hybridTokens, 3 * hybridTokens
	for _, cols := range []int{1, 79, 80, 81, 333} {
		var acts Acts
		acts.Set(randomFloats(rng, n*cols), n, cols)
		a := &acts.ternary
		a.quantise(&acts, pool)
		for _, g := range []int{4, 5} {
			kp := cpu.RoundUp(cols, blockBytes*g)
			data := a.pairedFor(&acts, pool, g, lo, hi)
			for tile := range (hi - lo) / hybridTokens {
				lanes, quads := pairedTile(data[tile*pairedSize(a.stride, kp):], a.stride)
				for i := range hybridTokens {
					codes := a.q[(lo+tile*hybridTokens+i)*a.stride:]
					for k := range kp {
						at := (i%wideLanes/madWidth*kp+k/(blockBytes*g)*blockBytes*g)*madWidth + (k%g*madWidth+i%madWidth)*blockBytes + k%(blockBytes*g)/g
						got := quads[min(at, len(quads)-1)]
						if i < wideLanes {
							got = lanes[k*wideLanes+i]
						}
						if got != codes[k] {
							t.Fatalf("%d columns, g %d, tile %d: token %d, column %d = %d, want %d", cols, g, tile, i, k, got, codes[k])
						}
					}
				}
			}
		}
	}
}

func TestQuantisedRowsAgreeBitForBit(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for _, n := range []int{1, 31, 32, 33, 64, 100, 2560} {
		for range 50 {
			x := randomFloats(rng, n)
			q, want := make([]int8, n), make([]int8, n)
			s, sum := quantiseRow(q, x)
			ws, wsum := quantiseRowGeneric(want, x)
			if s != ws || sum != wsum {
				t.Fatalf("%d columns: scale %v, sum %v; want %v, %v", n, s, sum, ws, wsum)
			}
			for i := range q {
				if q[i] != want[i] || q[i] == -128 {
					t.Fatalf("%d columns: code %d = %d, want %d", n, i, q[i], want[i])
				}
			}
		}
	}
}

func FuzzPackTernaryRoundTrip(f *testing.F) {
	f.Add([]byte{0, 1, 2, 255}, 3, true)
	f.Add([]byte{255, 255}, 1, false)
	f.Fuzz(func(t *testing.T, b []byte, cols int, one bool) {
		trits := make([]int8, len(b))
		for i := range b {
			trits[i] = int8(b[i])
		}
		rows := 1
		if cols > 0 {
			rows = len(b) / cols
		}
		p := I2
		if one {
			p = I1
		}
		m, err := PackTernary(rows, cols, trits, []float32{1}, p)
		if err != nil {
			return
		}
		got, err := UnpackTernary(m)
		if err != nil {
			t.Fatal(err)
		}
		for i := range trits {
			if got[i] != trits[i] {
				t.Fatalf("trit %d = %d, want %d", i, got[i], trits[i])
			}
		}
	})
}

func TestPackRefusesWhatIsNoTritAtAnyPlace(t *testing.T) {
	const cols = 19 // two whole words of trits and a rest
	trits := make([]int8, cols)
	for i := range trits {
		for w := -128; w < 128; w++ {
			for k := range trits {
				trits[k] = int8(k%3 - 1)
			}
			trits[i] = int8(w)
			_, err := PackTernary(1, cols, trits, []float32{1}, I2)
			if isTrit := w >= -1 && w <= 1; (err == nil) != isTrit {
				t.Fatalf("PackTernary with %d at %d = %v", w, i, err)
			}
		}
	}
}

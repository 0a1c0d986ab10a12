package kernels

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
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
	pool := NewPool(1)
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
		"a byte of 81":   func(m *Matrix) { m.Data[7] = 81 },
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

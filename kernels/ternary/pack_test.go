package ternary

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/stream"
)

func TestPackTernaryRefusesWhatDoesNotFit(t *testing.T) {
	one := []float32{1}
	for _, c := range []struct {
		name       string
		rows, cols int
		trits      []int8
		scale      []float32
		p          matrix.Packing
		want       error
	}{
		{"no rows", 0, 4, nil, one, matrix.I1, matrix.ErrShape},
		{"no columns", 4, 0, nil, one, matrix.I2, matrix.ErrShape},
		{"negative", -1, -4, make([]int8, 4), one, matrix.I2, matrix.ErrShape},
		{"too few trits", 2, 4, make([]int8, 7), one, matrix.I1, matrix.ErrShape},
		{"too many trits", 2, 4, make([]int8, 9), one, matrix.I1, matrix.ErrShape},
		{"product overflows", 1 << 30, 1 << 24, make([]int8, 4), one, matrix.I1, matrix.ErrShape},
		{"no scale", 2, 4, make([]int8, 8), nil, matrix.I1, matrix.ErrShape},
		{"scales for three rows", 2, 4, make([]int8, 8), make([]float32, 3), matrix.I1, matrix.ErrShape},
		{"a two", 1, 4, []int8{0, 0, 2, 0}, one, matrix.I1, matrix.ErrShape},
		{"a minus two", 1, 4, []int8{0, 0, -2, 0}, one, matrix.I2, matrix.ErrShape},
		{"a minus 128", 1, 4, []int8{0, 0, 0, -128}, one, matrix.I2, matrix.ErrShape},
		{"not ternary", 1, 4, make([]int8, 4), one, matrix.Q4, matrix.ErrUnsupported},
	} {
		if _, err := Pack(c.rows, c.cols, c.trits, c.scale, c.p); !errors.Is(err, c.want) {
			t.Errorf("%s: Pack = %v, want %v", c.name, err, c.want)
		}
	}
}

func TestLoadRefusesTernaryDataThatKernelsCouldNotTrust(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	run := NewRunner(pool, new(stream.Order))
	good := func() *matrix.Matrix {
		m, err := Pack(2, 4, make([]int8, 8), []float32{1}, matrix.I2)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for name, spoil := range map[string]func(m *matrix.Matrix){
		"short data":      func(m *matrix.Matrix) { m.Data = m.Data[:len(m.Data)-1] },
		"a bit pair of 3": func(m *matrix.Matrix) { m.Data[7] = 3 << 4 },
		"no scale":        func(m *matrix.Matrix) { m.Scale = nil },
		"more columns":    func(m *matrix.Matrix) { m.Cols = 17 },
		"no rows":         func(m *matrix.Matrix) { m.Rows = 0 },
		"another layout":  func(m *matrix.Matrix) { m.Packing = matrix.I1; m.Data[0] = 243 },
	} {
		m := good()
		spoil(m)
		if _, err := run.Load(m); !errors.Is(err, matrix.ErrShape) {
			t.Errorf("%s: Load = %v, want ErrShape", name, err)
		}
	}
	if _, err := run.Load(good()); err != nil {
		t.Errorf("Load of a good matrix: %v", err)
	}
}

func ExampleSize() {
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		fmt.Println(p, Size(2560, 6912, p))
	}
	// Output:
	// I1 3543040
	// I2 4423680
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
		p := matrix.I2
		if one {
			p = matrix.I1
		}
		m, err := Pack(rows, cols, trits, []float32{1}, p)
		if err != nil {
			return
		}
		row := make([]float32, cols)
		for i, trit := range trits {
			if i%cols == 0 {
				Row(row, m, i/cols)
			}
			if row[i%cols] != float32(trit) {
				t.Fatalf("trit %d = %v, want %d", i, row[i%cols], trit)
			}
		}
	})
}

func TestPackPairsRefusesWhatDoesNotFit(t *testing.T) {
	one := []float32{1}
	for _, c := range []struct {
		name       string
		rows, cols int
		pairs      []byte
		p          matrix.Packing
		want       error
	}{
		{"no rows", 0, 4, nil, matrix.I2, matrix.ErrShape},
		{"too few bytes", 2, 5, make([]byte, 3), matrix.I1, matrix.ErrShape},
		{"too many bytes", 2, 5, make([]byte, 5), matrix.I2, matrix.ErrShape},
		{"product overflows", 1 << 30, 1 << 24, make([]byte, 4), matrix.I2, matrix.ErrShape},
		{"a code of 3", 2, 4, []byte{0x55, 0x75}, matrix.I1, matrix.ErrShape},
		{"a code of 3 in a last byte", 2, 6, []byte{0x55, 0x55, 0x55, 0x0d}, matrix.I2, matrix.ErrShape},
		{"not ternary", 1, 4, make([]byte, 1), matrix.Q4, matrix.ErrUnsupported},
	} {
		if _, err := PackPairs(c.rows, c.cols, c.pairs, one, c.p); !errors.Is(err, c.want) {
			t.Errorf("%s: PackPairs = %v, want %v", c.name, err, c.want)
		}
	}
}

func TestWhatFollowsTheLastCodeOfARowIsIgnored(t *testing.T) {
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		m, err := PackPairs(2, 5, []byte{0x92, 0xfe, 0x1a, 0xfc}, []float32{1}, p)
		if err != nil {
			t.Fatal(err)
		}
		row := make([]float32, 5)
		for r, want := range [][]float32{{1, -1, 0, 1, 1}, {1, 1, 0, -1, -1}} {
			if Row(row, m, r); !slices.Equal(row, want) {
				t.Errorf("%v: row %d = %v, want %v", p, r, row, want)
			}
		}
		if err := checkData(m); err != nil {
			t.Errorf("%v: %v", p, err)
		}
	}
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
			_, err := Pack(1, cols, trits, []float32{1}, matrix.I2)
			if isTrit := w >= -1 && w <= 1; (err == nil) != isTrit {
				t.Fatalf("Pack with %d at %d = %v", w, i, err)
			}
		}
	}
}

func TestRowOfATernaryMatrixIsItsTritsTimesTheScale(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		for _, c := range [][2]int{{1, 1}, {1, 3}, {63, 21}, {64, 20}, {65, 16}, {70, 256}, {127, 97}, {200, 131}} {
			rows, cols := c[0], c[1]
			trits := make([]int8, rows*cols)
			for i := range trits {
				trits[i] = int8(r.IntN(3)) - 1
			}
			for _, scale := range [][]float32{{0.37}, kerneltest.RandomVector(r, rows)} {
				m, err := Pack(rows, cols, trits, scale, p)
				if err != nil {
					t.Fatal(err)
				}
				row := make([]float32, cols)
				for i := range rows {
					Row(row, m, i)
					for k, v := range row {
						if want := float32(trits[i*cols+k]) * scale[i%len(scale)]; v != want {
							t.Fatalf("%v: row %d, column %d = %v, want %v", p, i, k, v, want)
						}
					}
				}
			}
		}
	}
}

func TestIdleLanesAreThoseThatLookupTilesLack(t *testing.T) {
	for _, c := range []struct {
		form        actForm
		n, width, w int
	}{
		{formLanes, 1, 16, 15}, {formLanes, 16, 16, 0}, {formLanes, 33, 16, 15}, {formLanes, 33, 32, 31},
		{formTiles, 5, 8, 0}, {formQuads, 3, 4, 0}, {formRows, 7, 1, 0},
	} {
		r := segmentRun{segment: segment{lo: 64, hi: 64 + c.n}, form: c.form, width: c.width}
		if got := r.idle(); got != c.w {
			t.Errorf("%d tokens in tiles of %d, form %d: %d lanes are idle, want %d", c.n, c.width, c.form, got, c.w)
		}
	}
}

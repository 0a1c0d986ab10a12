package hexagon

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/dense"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// withOffsets are matrices whose offsets stand beside their codes.
func withOffsets(t *testing.T, r *rand.Rand, rows, cols int) map[string]*matrix.Matrix {
	blocks := func(size int) []byte { // of 32 columns, with a scale and an offset first
		raw := make([]byte, rows*cols/32*size)
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		for at := 0; at < len(raw); at += size {
			for i := range 2 {
				binary.LittleEndian.PutUint16(raw[at+2*i:], vector.ToF16(float32(r.NormFloat64())*0.02))
			}
		}
		return raw
	}
	of4, err := grouped.PackQ4_1(rows, cols, blocks(20))
	if err != nil {
		t.Fatal(err)
	}
	of5, err := grouped.PackQ5_1(rows, cols, blocks(24))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*matrix.Matrix{"Q4_1": of4, "Q5_1": of5}
}

func TestScalesOfMXFP4AreExactOnTheDevice(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 1))
	const rows, cols = 20, 512
	m := matrices.Random(t, r, matrix.FP4, rows, cols)
	d, err := convert(m)
	if err != nil {
		t.Fatal(err)
	}
	want, got := make([]float32, cols), make([]float32, cols)
	for row := range rows {
		matrices.Row(want, m, row)
		if d.Dequantize(got, row); !slices.Equal(got, want) {
			t.Fatalf("row %d is %v, want %v", row, got[:8], want[:8])
		}
	}
}

// The largest codes and activations add up to more than int32 holds, in units of the largest
// scale.
func TestSumsOfTheLargestBytesDoNotOverflow(t *testing.T) {
	const rows, cols = 1, 16384
	x := make([]float32, cols)
	for k := range x {
		x[k] = 1
	}
	for _, p := range []matrix.Packing{matrix.Q8, matrix.NL4} {
		m := matrices.Extreme(t, p, rows, cols, 0x77) // of IQ4_NL -10
		if p == matrix.NL4 {
			m = matrices.Extreme(t, p, rows, cols, 0) // -127
		}
		_, l := started(t, newGoDevice, Options{Path: PathLookup}, m)
		var acts kernels.Acts
		acts.Set(x, 1, cols)
		y, w := make([]float32, rows), make([]float32, cols)
		l[0].Mul(y, &acts)
		matrices.Row(w, m, 0)
		if want := float64(w[0]) * cols; !(math.Abs(float64(y[0])-want) <= math.Abs(want)/1000) {
			t.Errorf("%v: the sum is %v, want %v", p, y[0], want)
		}
	}
}

func TestHalvesAreMultipliedAsTheyAre(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 1))
	const rows, cols, n = 130, 300, 33
	for _, p := range []matrix.Packing{matrix.F16, matrix.BF16} {
		raw := make([]byte, 2*rows*cols)
		for i := range rows * cols {
			f := float32(r.NormFloat64()) * float32(math.Ldexp(1, r.IntN(12)-14))
			h := vector.ToF16(f)
			if p == matrix.BF16 { // of exponents that fp16 does not have
				h = uint16(math.Float32bits(f*float32(math.Ldexp(1, 30*(i/cols%3)-30))) >> 16)
			}
			binary.LittleEndian.PutUint16(raw[2*i:], h)
		}
		pack := dense.PackF16
		if p == matrix.BF16 {
			pack = dense.PackBF16
		}
		m, err := pack(rows, cols, raw)
		if err != nil {
			t.Fatal(err)
		}
		b, ls := started(t, newGoDevice, Options{}, m)
		x := gaussians(r, n*cols)
		var acts kernels.Acts
		acts.Set(x, n, cols)
		y, w, held := make([]float32, n*rows), make([]float32, cols), make([]float32, cols)
		ls[0].Mul(y, &acts)
		for j := range rows {
			matrices.Row(w, m, j)
			if ls[0].(*linear).weightsOf(held, j); !slices.Equal(held, w) {
				t.Fatalf("%v: row %d is not held exactly", p, j)
			}
			for i := 0; i < n; i += 16 {
				want, size := 0.0, 0.0
				for k, f := range w {
					v := float64(f) * float64(x[i*cols+k])
					want, size = want+v, size+v*v
				}
				if got := float64(y[i*rows+j]); !(math.Abs(got-want) <= math.Sqrt(size)/500) {
					t.Fatalf("%v: output %d of row %d is %v, want %v", p, j, i, got, want)
				}
			}
		}
		if work := b.Work(); work.Tiled != n || work.Lookups != 0 {
			t.Errorf("%v: %d rows by tiles, %d by lookups", p, work.Tiled, work.Lookups)
		}
	}
}

// F32 of a file that was F16 or BF16 is the same matrix as that file's. With a scale a row it is exact too. Other
// F32 is the CPU's, or rounded.
func TestF32ThatFitsHalvesIsMultipliedAsThese(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 1))
	const rows, cols, n = 70, 200, 5
	x := gaussians(r, n*cols)
	load := func(opt Options, m *matrix.Matrix) (y []float32, l *linear, err error) {
		b := New("test", newGoDevice, opt)
		of, err := b.Load(m)
		if err != nil {
			return nil, nil, err
		}
		if err := b.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		var acts kernels.Acts
		acts.Set(x, n, cols)
		y = make([]float32, n*rows)
		of.Mul(y, &acts)
		return y, of.(*linear), b.Err()
	}
	for _, as := range []matrix.Packing{matrix.F16, matrix.BF16, matrix.F32} {
		w, raw, held := gaussians(r, rows*cols), make([]byte, 2*rows*cols), make([]float32, cols)
		for i, f := range w {
			switch as {
			case matrix.BF16:
				w[i] = math.Float32frombits(math.Float32bits(f*float32(math.Ldexp(1, 30*(i/cols%3)-30))) &^ 0xffff)
				binary.LittleEndian.PutUint16(raw[2*i:], uint16(math.Float32bits(w[i])>>16))
			default:
				h := vector.ToF16(f)
				w[i] = vector.FromF16(h)
				if binary.LittleEndian.PutUint16(raw[2*i:], h); as == matrix.F32 {
					w[i] *= 0x1p-60
				}
			}
		}
		m, err := dense.PackF32(rows, cols, w)
		if err != nil {
			t.Fatal(err)
		}
		got, l, err := load(Options{}, m)
		if err != nil {
			t.Fatalf("%v: %v", as, err)
		}
		for i := range rows {
			if l.weightsOf(held, i); !slices.Equal(held, w[i*cols:][:cols]) {
				t.Fatalf("%v: row %d is not held exactly", as, i)
			}
		}
		if pack := map[matrix.Packing]func(int, int, []byte) (*matrix.Matrix, error){matrix.F16: dense.PackF16, matrix.BF16: dense.PackBF16}[as]; pack != nil {
			half, err := pack(rows, cols, raw)
			if err != nil {
				t.Fatal(err)
			}
			if want, _, err := load(Options{}, half); err != nil || !slices.Equal(got, want) {
				t.Errorf("%v: products have other bits, %v", as, err)
			}
		}
	}
	m, err := dense.PackF32(rows, cols, gaussians(r, rows*cols))
	if err != nil {
		t.Fatal(err)
	}
	b := New("test", newGoDevice, Options{})
	if _, err := b.Load(m); err == nil || !slices.Equal(b.Refused(), []string{"F32"}) {
		t.Errorf("the device refuses %q, %v", b.Refused(), err)
	}
	if _, _, err := load(Options{}, m); !errors.Is(err, matrix.ErrUnsupported) || !strings.Contains(err.Error(), "more digits than fp16 has") {
		t.Errorf("loading numbers of 24 digits ends with %v", err)
	}
	_, l, err := load(Options{Round: RoundF16}, m)
	if err != nil {
		t.Fatal(err)
	}
	w, held := make([]float32, cols), make([]float32, cols)
	for i := range rows {
		matrices.Row(w, m, i)
		l.weightsOf(held, i)
		for k, f := range w {
			if d := math.Abs(float64(held[k]) - float64(f)); d > 0x1p-11*math.Abs(float64(f)) {
				t.Fatalf("weight %d of row %d is %v, want %v", k, i, held[k], f)
			}
		}
	}
}

func TestHalvesThatAreInfiniteStayOnTheCPU(t *testing.T) {
	raw := make([]byte, 2*256)
	binary.LittleEndian.PutUint16(raw[20:], 0x7c00)
	m, err := dense.PackF16(1, 256, raw)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New("test", newGoDevice, Options{}).Load(m); !errors.Is(err, matrix.ErrUnsupported) {
		t.Errorf("loading ends with %v", err)
	}
}

func TestMatricesInBytesAndForLookupsTakeTurnsWithTheSameRows(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 1))
	const rows, cols = 128, 512
	q4, q8 := matrices.Random(t, r, matrix.Q4, rows, cols), matrices.Random(t, r, matrix.Q8, rows, cols)
	_, together := started(t, newRefDevice, Options{}, q4, q8)
	_, first := started(t, newRefDevice, Options{}, q4)
	_, second := started(t, newRefDevice, Options{}, q8)
	var acts kernels.Acts
	acts.Set(gaussians(r, 2*cols), 2, cols)
	for _, pair := range [][2]kernels.Linear{{together[0], first[0]}, {together[1], second[0]}, {together[0], first[0]}} {
		got, want := make([]float32, 2*rows), make([]float32, 2*rows)
		pair[0].Mul(got, &acts)
		pair[1].Mul(want, &acts)
		if !slices.Equal(got, want) {
			t.Error("a product is another one beside a matrix of the other kind")
		}
	}
}

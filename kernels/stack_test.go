package kernels

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/dense"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/ternary"
)

func TestAStackGivesEachRowTheBitsOfItsOwnMatrix(t *testing.T) {
	pool := pool.New(2)
	defer pool.Close()
	for _, p := range append([]matrix.Packing{matrix.I1, matrix.I2}, matrices.Banded...) {
		r := rand.New(rand.NewPCG(9, uint64(p)))
		const cols, n = 256, 5
		var parts []*matrix.Matrix
		for i, rows := range []int{128, 64, 37} {
			if p.Ternary() {
				scale := []float32{0.5}
				if i == 1 {
					scale = kerneltest.RandomVector(r, rows)
				}
				m, err := ternary.Pack(rows, cols, kerneltest.RandomTrits(r, rows*cols), scale, p)
				if err != nil {
					t.Fatal(err)
				}
				parts = append(parts, m)
			} else {
				parts = append(parts, matrices.Random(t, r, p, rows, cols))
			}
		}
		stack, err := Stack(nil, parts...)
		if err != nil {
			t.Fatalf("%v: %v", p, err)
		}
		var x Acts
		x.Set(kerneltest.RandomVector(r, n*cols), n, cols)
		y := make([]float32, n*stack.Rows)
		mustLinear(t, pool, stack).Mul(y, &x)
		at := 0
		for _, m := range parts {
			want := make([]float32, n*m.Rows)
			mustLinear(t, pool, m).Mul(want, &x)
			for i := range n {
				if !kerneltest.SameBits(y[i*stack.Rows+at:][:m.Rows], want[i*m.Rows:(i+1)*m.Rows]) {
					t.Fatalf("%v: token %d differs in the matrix that starts at row %d", p, i, at)
				}
			}
			at += m.Rows
		}
	}
}

func TestAStackKeepsOneScaleThatAllShare(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	pack := func(rows int, scale float32) *matrix.Matrix {
		m, err := ternary.Pack(rows, 64, kerneltest.RandomTrits(r, rows*64), []float32{scale}, matrix.I2)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	same, err := Stack(nil, pack(64, 2), pack(64, 2))
	if err != nil || !slices.Equal(same.Scale, []float32{2}) {
		t.Errorf("scales %v, %v", same.Scale, err)
	}
	other, err := Stack(nil, pack(64, 2), pack(1, 3))
	if err != nil || len(other.Scale) != 65 || other.Scale[63] != 2 || other.Scale[64] != 3 {
		t.Errorf("scales %v, %v", other.Scale, err)
	}
}

func TestStackRefusesWhatDoesNotFit(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for what, ms := range map[string][]*matrix.Matrix{
		"another packing":        {matrices.Random(t, r, matrix.Q4, 16, 256), matrices.Random(t, r, matrix.Q8, 16, 256)},
		"another width":          {matrices.Random(t, r, matrix.Q8, 16, 256), matrices.Random(t, r, matrix.Q8, 16, 512)},
		"a band that ends early": {matrices.Random(t, r, matrix.F32, 15, 256), matrices.Random(t, r, matrix.F32, 16, 256)},
	} {
		if _, err := Stack(nil, ms...); !errors.Is(err, matrix.ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAMatrixBuiltOfPiecesIsTheWhole(t *testing.T) {
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2, matrix.F32} {
		r := rand.New(rand.NewPCG(9, uint64(p)))
		const rows, cols = 3*PieceRows + 7, 256
		trits, scale := kerneltest.RandomTrits(r, rows*cols), kerneltest.RandomVector(r, rows)
		values := kerneltest.RandomVector(r, rows*cols)
		piece := func(lo, hi int) *matrix.Matrix {
			m, err := dense.PackF32(hi-lo, cols, values[lo*cols:hi*cols])
			if p.Ternary() {
				m, err = ternary.Pack(hi-lo, cols, trits[lo*cols:hi*cols], scale[lo:hi], p)
			}
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		var a cpu.Arena
		defer a.Free()
		b := NewBuilder(&a, rows)
		for lo := 0; lo < rows; lo += 2 * PieceRows {
			if err := b.Add(piece(lo, min(rows, lo+2*PieceRows))); err != nil {
				t.Fatalf("%v: %v", p, err)
			}
		}
		got, err := b.Matrix()
		if err != nil {
			t.Fatalf("%v: %v", p, err)
		}
		want := piece(0, rows)
		if got.Rows != want.Rows || got.Cols != want.Cols || got.Packing != p || !slices.Equal(got.Scale, want.Scale) || !slices.Equal(got.Data, want.Data) {
			t.Errorf("%v: built of pieces is not what is packed at once", p)
		}
	}
}

func TestABuilderRefusesPiecesThatDoNotFit(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 11))
	first := matrices.Random(t, r, matrix.Q8, 64, 256)
	for what, c := range map[string]struct {
		first, then *matrix.Matrix
		want        error
	}{
		"another packing":        {first, matrices.Random(t, r, matrix.Q4, 64, 256), matrix.ErrUnsupported},
		"another width":          {first, matrices.Random(t, r, matrix.Q8, 64, 512), matrix.ErrUnsupported},
		"a band that ends early": {matrices.Random(t, r, matrix.Q8, 15, 256), first, matrix.ErrUnsupported},
		"too many rows":          {first, matrices.Random(t, r, matrix.Q8, 65, 256), matrix.ErrShape},
	} {
		b := NewBuilder(nil, 128)
		if err := b.Add(c.first); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := b.Add(c.then); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		if _, err := b.Matrix(); !errors.Is(err, matrix.ErrShape) {
			t.Errorf("%s: a matrix of too few rows gives %v, want ErrShape", what, err)
		}
	}
}

package kernels

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestAStackGivesEachRowTheBitsOfItsOwnMatrix(t *testing.T) {
	pool := NewPool(2)
	defer pool.Close()
	for _, p := range append([]Packing{I1, I2}, bandPackings...) {
		r := rand.New(rand.NewPCG(9, uint64(p)))
		const cols, n = 256, 5
		var parts []*Matrix
		for i, rows := range []int{128, 64, 37} {
			if p.Ternary() {
				scale := []float32{0.5}
				if i == 1 {
					scale = randomVector(r, rows)
				}
				m, err := PackTernary(rows, cols, randomTrits(r, rows*cols), scale, p)
				if err != nil {
					t.Fatal(err)
				}
				parts = append(parts, m)
			} else {
				parts = append(parts, randomMatrix(t, r, p, rows, cols))
			}
		}
		stack, err := Stack(parts...)
		if err != nil {
			t.Fatalf("%v: %v", p, err)
		}
		var x Acts
		x.Set(randomVector(r, n*cols), n, cols)
		y := make([]float32, n*stack.Rows)
		mustLinear(t, pool, stack).Mul(y, &x)
		at := 0
		for _, m := range parts {
			want := make([]float32, n*m.Rows)
			mustLinear(t, pool, m).Mul(want, &x)
			for i := range n {
				if !sameBits(y[i*stack.Rows+at:][:m.Rows], want[i*m.Rows:(i+1)*m.Rows]) {
					t.Fatalf("%v: token %d differs in the matrix that starts at row %d", p, i, at)
				}
			}
			at += m.Rows
		}
	}
}

func TestAStackKeepsOneScaleThatAllShare(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	pack := func(rows int, scale float32) *Matrix {
		m, err := PackTernary(rows, 64, randomTrits(r, rows*64), []float32{scale}, I2)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	same, err := Stack(pack(64, 2), pack(64, 2))
	if err != nil || !slices.Equal(same.Scale, []float32{2}) {
		t.Errorf("scales %v, %v", same.Scale, err)
	}
	other, err := Stack(pack(64, 2), pack(1, 3))
	if err != nil || len(other.Scale) != 65 || other.Scale[63] != 2 || other.Scale[64] != 3 {
		t.Errorf("scales %v, %v", other.Scale, err)
	}
}

func TestStackRefusesWhatDoesNotFit(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for what, ms := range map[string][]*Matrix{
		"another packing":        {randomMatrix(t, r, Q4, 16, 256), randomMatrix(t, r, Q8, 16, 256)},
		"another width":          {randomMatrix(t, r, Q8, 16, 256), randomMatrix(t, r, Q8, 16, 512)},
		"a band that ends early": {randomMatrix(t, r, F32, 15, 256), randomMatrix(t, r, F32, 16, 256)},
	} {
		if _, err := Stack(ms...); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

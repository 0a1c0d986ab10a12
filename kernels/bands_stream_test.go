package kernels

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// Takers from both ends share a stretch out: each tile goes to one of them,
// and who is told that another follows finds it unless it was taken meanwhile.
func TestEveryTileOfAStretchIsTakenOnce(t *testing.T) {
	for _, tiles := range []int{0, 1, 2, 3, 1000} {
		const offset = 7
		var s stretch
		s.set(offset, offset+tiles)
		taken := make([]atomic.Int32, tiles)
		var wg sync.WaitGroup
		for i := range 4 {
			take := s.front
			if i%2 == 1 {
				take = s.back
			}
			wg.Go(func() {
				for tile, _, ok := take(); ok; tile, _, ok = take() {
					taken[tile-offset].Add(1)
				}
			})
		}
		wg.Wait()
		for i := range taken {
			if n := taken[i].Load(); n != 1 {
				t.Errorf("of %d tiles, tile %d was taken %d times", tiles, i, n)
			}
		}
	}
}

func TestAStretchSaysWhatFollows(t *testing.T) {
	var s stretch
	s.set(0, 3)
	for _, want := range []struct {
		take    func() (int, bool, bool)
		tile    int
		follows bool
	}{{s.front, 0, true}, {s.back, 2, true}, {s.front, 1, false}} {
		if tile, follows, ok := want.take(); tile != want.tile || follows != want.follows || !ok {
			t.Errorf("took %d, %v, %v, want %d, %v, true", tile, follows, ok, want.tile, want.follows)
		}
	}
	if _, _, ok := s.back(); ok {
		t.Error("an empty stretch gave a tile")
	}
}

// Wherever a matrix ends, in a tile, a band or a row, and however many workers
// there are for how few tiles, one token has the bits it has among others.
func TestOneTokenHasTheBitsOfManyAtAllNumbersOfRows(t *testing.T) {
	pool := NewPool(3)
	defer pool.Close()
	onEachISA(t, func(t *testing.T) {
		const cols = 512
		r := rand.New(rand.NewPCG(5, 5))
		var alone, two Acts
		for _, p := range []Packing{Q4, Q4M, Q6, Q8} {
			for rows := 1; rows <= 20*bandRows; rows += 1 + rows/7 {
				l := mustLinear(t, pool, randomMatrix(t, r, p, rows, cols))
				x := randomVector(r, 2*cols)
				alone.Set(x, 1, cols)
				two.Set(x, 2, cols)
				got, want := make([]float32, rows), make([]float32, 2*rows)
				l.Mul(got, &alone)
				l.Mul(want, &two)
				if !sameBits(got, want[:rows]) {
					t.Fatalf("%v, %d rows: one token has not the bits of two", p, rows)
				}
			}
		}
	})
}

package kernels

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// Takers from both ends share a stretch out: each unit goes to one of them.
func TestEveryUnitOfAStretchIsTakenOnce(t *testing.T) {
	for _, units := range []int{0, 1, 2, 3, 1000} {
		const offset = 7
		var s stretch
		s.set(offset, offset+units)
		taken := make([]atomic.Int32, units)
		var wg sync.WaitGroup
		for i := range 4 {
			take := s.front
			if i%2 == 1 {
				take = s.back
			}
			wg.Go(func() {
				for unit, _, ok := take(); ok; unit, _, ok = take() {
					taken[unit-offset].Add(1)
				}
			})
		}
		wg.Wait()
		for i := range taken {
			if n := taken[i].Load(); n != 1 {
				t.Errorf("of %d units, unit %d was taken %d times", units, i, n)
			}
		}
	}
}

func TestAStretchSaysWhatFollows(t *testing.T) {
	var s stretch
	s.set(0, 3)
	for _, want := range []struct {
		take    func() (int, bool, bool)
		unit    int
		follows bool
	}{{s.front, 0, true}, {s.back, 2, true}, {s.front, 1, false}} {
		if unit, follows, ok := want.take(); unit != want.unit || follows != want.follows || !ok {
			t.Errorf("took %d, %v, %v, want %d, %v, true", unit, follows, ok, want.unit, want.follows)
		}
	}
	if _, _, ok := s.back(); ok {
		t.Error("an empty stretch gave a unit")
	}
}

// Wherever a matrix ends, in a tile, a band or a row, and however many workers
// there are for how few tiles, one token has the bits it has among others.
func TestOneTokenHasTheBitsOfManyAtAllNumbersOfRows(t *testing.T) {
	pool := pool.New(3)
	defer pool.Close()
	kerneltest.OnEachISA(t, func(t *testing.T) {
		const cols = 512
		r := rand.New(rand.NewPCG(5, 5))
		var alone, two Acts
		for _, p := range []Packing{Q4, Q4M, Q6, Q8} {
			for rows := 1; rows <= 20*bandRows; rows += 1 + rows/7 {
				l := mustLinear(t, pool, randomMatrix(t, r, p, rows, cols))
				x := kerneltest.RandomVector(r, 2*cols)
				alone.Set(x, 1, cols)
				two.Set(x, 2, cols)
				got, want := make([]float32, rows), make([]float32, 2*rows)
				l.Mul(got, &alone)
				l.Mul(want, &two)
				if !kerneltest.SameBits(got, want[:rows]) {
					t.Fatalf("%v, %d rows: one token has not the bits of two", p, rows)
				}
			}
		}
	})
}

// unitLog notes which units a worker was given, and what to prefetch.
type unitLog struct{ units, next []uintptr }

func (u *unitLog) multiply(_, unit int, next uintptr) {
	u.units, u.next = append(u.units, uintptr(unit)), append(u.next, next)
}

// In an order seen before, the end of a product prefetches the begin of the
// one that came next.
func TestAStreamKnowsWhatComesNext(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	cpu := NewCPU(pool)
	a, b := stream{base: 1000, unit: 10, units: 3}, stream{base: 5000, unit: 20, units: 2}
	var x Acts
	var log unitLog
	for _, s := range []*stream{&a, &b, &a, &b} {
		log = unitLog{}
		x.stream.run(cpu, &x, s, 1, &log)
		if s == &a && b.after.Load() == &a {
			if want := []uintptr{1010, 1020, 5000}; !slices.Equal(log.next, want) {
				t.Errorf("prefetched %v, want %v", log.next, want)
			}
		}
	}
	if want := []uintptr{5020, 1000}; !slices.Equal(log.next, want) {
		t.Errorf("prefetched %v, want %v", log.next, want)
	}
	if want := []uintptr{0, 1}; !slices.Equal(log.units, want) {
		t.Errorf("multiplied units %v, want %v", log.units, want)
	}
}

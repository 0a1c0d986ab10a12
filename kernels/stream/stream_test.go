package stream

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// Takers from both ends share a shard out: each unit goes to one of them.
func TestEveryUnitOfAShardIsTakenOnce(t *testing.T) {
	for _, units := range []int{0, 1, 2, 3, 1000} {
		const offset = 7
		var s shard
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

func TestAShardSaysWhatFollows(t *testing.T) {
	var s shard
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
		t.Error("an empty shard gave a unit")
	}
}

// unitLog notes which units a worker was given, and what to prefetch.
type unitLog struct{ units, next []uintptr }

func (u *unitLog) Multiply(_, unit int, next uintptr) {
	u.units, u.next = append(u.units, uintptr(unit)), append(u.next, next)
}

// In an order seen before, the end of a product prefetches the begin of the
// one that came next.
func TestAStreamKnowsWhatComesNext(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	a, b := Units{base: 1000, size: 10, n: 3}, Units{base: 5000, size: 20, n: 2}
	var order Order
	var task Task
	var x acts.Rows
	var log unitLog
	for _, s := range []*Units{&a, &b, &a, &b} {
		log = unitLog{}
		task.Run(pool, &order, &x, s, 1, &log)
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

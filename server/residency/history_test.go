package residency

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/internal/sweep"
)

// replaced is a source of a name whose file has been replaced so many times.
func (m *memory) replaced(name string, times int) Source {
	s := m.source(name)
	s.Key = fmt.Sprint(name, " ", times)
	return s
}

func TestAModelThatIsReplacedWhileItLoadsGivesItsMemoryBackAndItsRequestsTheNewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, 2)
		m.stale, m.gate = true, make(chan struct{})
		s := m.set(Options{KeepAlive: -1}, "a", "b")
		defer m.end(s)
		got := make(chan *Lease)
		go func() { got <- hold(t, s, "b") }()
		synctest.Wait()
		if err := s.Update(t.Context(), []Source{m.source("a"), m.replaced("b", 1)}, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		m.gate <- struct{}{}
		lease := <-got
		if st, _ := s.State("b"); st.Model == nil || lease.Registry.Named("b") != st.Model || m.used.Load() != 2 {
			t.Errorf("with its new file b is %+v, and %d models are in memory, want 2", st, m.used.Load())
		}
		lease.Release()
		if err := s.Update(t.Context(), []Source{m.source("a")}, nil); err != nil || m.used.Load() != 1 {
			t.Errorf("%v: without b %d models are in memory, want 1", err, m.used.Load())
		}
	})
}

func TestALoadWaitsForTheRequestsOfAModelThatWasReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, 2)
		m.stale = true
		s := m.set(Options{KeepAlive: -1}, "a", "b")
		defer m.end(s)
		old := hold(t, s, "b")
		if err := s.Update(t.Context(), []Source{m.source("a"), m.replaced("b", 1)}, nil); err != nil {
			t.Fatal(err)
		}
		got := make(chan *Lease)
		go func() { got <- hold(t, s, "b") }()
		synctest.Wait()
		if err := generate(t.Context(), old, "b", 2); err != nil {
			t.Errorf("a request under way: %v", err)
		}
		old.Release()
		(<-got).Release()
	})
}

func TestALoadThatEndsAfterAllHaveLeftKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, 2)
		s := m.set(Options{KeepAlive: -1}, "a", "b")
		defer m.end(s)
		load, finish := s.entries[1].Load, make(chan struct{})
		s.entries[1].Load = func(_ context.Context, progress func(done, total int64)) (*Resident, error) {
			<-finish // it is past the point where it would see that it is cancelled
			return load(t.Context(), progress)
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := s.Hold(ctx, "b", nil)
			left <- err
		}()
		synctest.Wait()
		cancel()
		<-left
		got := make(chan *Lease)
		go func() { got <- hold(t, s, "b") }()
		synctest.Wait()
		close(finish)
		(<-got).Release()
	})
}

// A history is calls in an order of a seed, of which loads and requests end when the seed says so.
func TestAllMemoryComesBackOfAnyHistory(t *testing.T) {
	for seed := range uint64(sweep.Of(t, 100, 2000)) {
		synctest.Test(t, func(t *testing.T) { runHistory(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func runHistory(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	names := []string{"a", "b", "c", "d"}
	m := newMemory(t, 2+random.Int64N(3))
	m.stale, m.gate = true, make(chan struct{})
	s := m.set(Options{KeepAlive: []time.Duration{-1, 0, time.Minute}[random.IntN(3)], Queue: 4}, names...)
	var calls sync.WaitGroup
	var mu sync.Mutex
	var leases []*Lease
	var cancels []context.CancelFunc
	call := func(do func(ctx context.Context)) {
		ctx, cancel := context.WithCancel(t.Context())
		cancels = append(cancels, cancel)
		calls.Go(func() { do(ctx) })
	}
	updating := make(chan struct{}, 1) // one at a time
	release := func() (done bool) {
		mu.Lock()
		defer mu.Unlock()
		if len(leases) == 0 {
			return false
		}
		i := random.IntN(len(leases))
		leases[i].Release()
		leases = slices.Delete(leases, i, i+1)
		return true
	}
	for range 80 {
		name := names[random.IntN(len(names))]
		switch random.IntN(10) {
		case 0:
			list := []Source{m.replaced("a", random.IntN(2))}
			for _, other := range names[1:] {
				if random.IntN(3) > 0 {
					list = append(list, m.replaced(other, random.IntN(3)))
				}
			}
			list[len(list)-1].Pinned = random.IntN(4) == 0
			select {
			case updating <- struct{}{}:
				call(func(ctx context.Context) {
					_ = s.Update(ctx, list, nil) // there may be no room
					<-updating
				})
			default:
			}
		case 1:
			_ = s.Load(name)
		case 2:
			_ = s.Unload(name)
		case 3, 4:
			call(func(ctx context.Context) {
				if l, err := s.Hold(ctx, name, nil); err == nil {
					mu.Lock()
					defer mu.Unlock()
					leases = append(leases, l)
				}
			})
		case 5:
			release()
		case 6:
			if len(cancels) > 0 {
				cancels[random.IntN(len(cancels))]()
			}
		case 7:
			broken := errors.New("broken")
			if m.fail.Store(&broken); random.IntN(3) > 0 {
				m.fail.Store(nil)
			}
		case 8:
			time.Sleep(time.Duration(random.IntN(90)) * time.Second)
		default:
			select {
			case m.gate <- struct{}{}:
			default:
			}
		}
		synctest.Wait()
		for _, l := range leases {
			if e := l.entry; e != nil && (e.resident == nil || e.going || l.Registry.Named(e.Name).Model != e.resident.Model) {
				t.Errorf("a request holds %s, which is not in memory, or another one", e.Name)
			}
		}
	}
	m.fail.Store(nil)
	close(m.gate)
	for release() {
	}
	for _, cancel := range cancels {
		cancel()
	}
	calls.Wait()
	for release() {
	}
	time.Sleep(time.Hour)
	synctest.Wait()
	held := int64(0)
	for _, st := range s.States() {
		held += st.Bytes
	}
	if n := m.used.Load(); n != held || len(s.dropped) != 0 {
		t.Errorf("%d models take memory, of which the set knows %d, and %d have yet to go", n, held, len(s.dropped))
	}
	if err := s.Update(t.Context(), []Source{m.replaced("a", 9)}, nil); err != nil {
		var room *RoomError // of two of a
		if !errors.As(err, &room) {
			t.Error(err)
		}
	} else if n := m.used.Load(); n != 1 {
		t.Errorf("%d models are in memory, want the first alone", n)
	}
	m.end(s)
}

package residency

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts"
)

// memory is the memory of a fake model.
type memory struct {
	t     testing.TB
	words *tokenizer.Tokenizer
	limit int64
	used  atomic.Int64
	loads atomic.Int64
	open  sync.Map // name → true while it is in memory
	fail  atomic.Pointer[error]
	gate  chan struct{} // a load waits for an element; nil: it does not
	stale bool          // files are replaced: what was loaded from the former one may still be there
}

func newMemory(t testing.TB, limit int64) *memory {
	t.Helper()
	f, err := embedded.Open(embedded.Default)
	if err != nil {
		t.Fatal(err)
	}
	words, err := tokenizer.New(f.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	return &memory{t: t, limit: limit, words: words}
}

// source is a toy model of one unit that says after each load how many blocks it has held.
func (m *memory) source(name string) Source {
	return Source{Name: name, Key: name, Need: func() (int64, error) { return 1, nil }, Load: func(ctx context.Context, progress func(done, total int64)) (*Resident, error) {
		m.loads.Add(1)
		if m.gate != nil {
			progress(1, 2)
			select {
			case <-m.gate:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if err := m.fail.Load(); err != nil {
			return nil, *err
		}
		if n := m.used.Add(1); n > m.limit {
			m.t.Errorf("%d models are in memory, at most %d fit", n, m.limit)
		}
		if _, twice := m.open.LoadOrStore(name, true); twice && !m.stale {
			m.t.Errorf("%s is in memory twice", name)
		}
		model := &toy.Model{Vocab: 1024}
		engine := batcher.New(model, model.NewCache(64, 16), batcher.DefaultOptions())
		ran, stop := make(chan struct{}), context.CancelFunc(nil)
		ctx, stop = context.WithCancel(context.Background())
		go func() {
			defer close(ran)
			if err := engine.Run(ctx); err != nil {
				m.t.Error(err)
			}
		}()
		served := registry.Served{Fingerprint: "fp", Model: tts.NewModel(&models.Bundle{Name: name, Model: model, Tokenizer: m.words}, engine)}
		return &Resident{Served: served, Bytes: 1, Unload: func() {
			stop()
			<-ran
			if st := engine.Stats(); st.Used != 0 {
				m.t.Errorf("%s is unloaded with %d blocks in use", name, st.Used)
			}
			m.open.Delete(name)
			m.used.Add(-1)
		}}, nil
	}}
}

// set makes a set of fake models, the first of which is loaded.
func (m *memory) set(opt Options, names ...string) *Set {
	m.t.Helper()
	opt.Room = func() int64 { return m.limit - m.used.Load() }
	if opt.Queue == 0 {
		opt.Queue = 1 << 16
	}
	s := New(opt, &registry.Settings{})
	var list []Source
	for _, name := range names {
		list = append(list, m.source(name))
	}
	gate := m.gate
	m.gate = nil
	first, err := list[0].Load(m.t.Context(), func(int64, int64) {})
	m.gate = gate
	if err != nil {
		m.t.Fatal(err)
	}
	if err := s.Update(m.t.Context(), list, map[string]*Resident{names[0]: first}); err != nil {
		m.t.Fatal(err)
	}
	return s
}

// end closes a set and frees what is in memory.
func (m *memory) end(s *Set) {
	m.t.Helper()
	s.Close()
	for _, e := range s.entries {
		if e.leases != 0 {
			m.t.Errorf("%s has %d leases in the end", e.Name, e.leases)
		}
		if e.resident != nil {
			e.resident.Unload()
		}
	}
	if n := m.used.Load(); n != 0 {
		m.t.Errorf("%d models are left in memory", n)
	}
}

// generate has a leased model write n tokens.
func generate(ctx context.Context, l *Lease, name string, n int) error {
	m, _, err := l.Registry.Find(name)
	if err != nil {
		return err
	}
	seq, err := m.Engine.Open(ctx, []int32{1, 2, 3})
	if err != nil {
		return err
	}
	defer seq.Close()
	for _, err := range seq.Generate(ctx, sampling.Params{MaxTokens: n, IgnoreEOS: true}) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestTenThousandRequestsForFourModelsWhereTwoFitAreAllAnswered(t *testing.T) {
	before := runtime.NumGoroutine()
	m := newMemory(t, 2)
	names := []string{"a", "b", "c", "d"}
	s := m.set(Options{KeepAlive: -1}, names...)
	const clients, each = 50, 200
	var answered, left atomic.Int64
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(c)))
			for range each {
				name := names[random.IntN(len(names))]
				ctx, cancel := context.WithCancel(t.Context())
				impatient := random.IntN(20) == 0
				if impatient {
					go cancel()
				}
				lease, err := s.Hold(ctx, name, nil)
				if err == nil {
					err = generate(ctx, lease, name, 1)
					lease.Release()
				}
				switch {
				case err == nil:
					answered.Add(1)
				case impatient && errors.Is(err, context.Canceled):
					left.Add(1)
				default:
					t.Errorf("a request for %s: %v", name, err)
				}
				cancel()
			}
		})
	}
	all.Wait()
	if n := answered.Load() + left.Load(); n != clients*each || answered.Load() < clients*each*9/10 {
		t.Errorf("%d requests were answered and %d cancelled, of %d", answered.Load(), left.Load(), clients*each)
	}
	if m.loads.Load() < 4 {
		t.Errorf("%d loads: the models did not take turns", m.loads.Load())
	}
	m.end(s)
	for runtime.NumGoroutine() > before { // cancelled contexts end theirs by and by
		runtime.Gosched()
	}
}

func TestAModelLoadsOnceForAllWhoWait(t *testing.T) {
	m := newMemory(t, 2)
	m.gate = make(chan struct{})
	s := m.set(Options{}, "a", "b")
	defer m.end(s)
	var waiting, all sync.WaitGroup
	waiting.Add(20)
	for range 20 {
		all.Go(func() {
			lease, err := s.Hold(t.Context(), "b", func(model string, progress func() float64) {
				if model != "b" || progress() != 0 && progress() != 0.5 {
					t.Errorf("waits for %s at %v", model, progress())
				}
				waiting.Done()
			})
			if err != nil {
				t.Error(err)
				return
			}
			defer lease.Release()
			if err := generate(t.Context(), lease, "b", 2); err != nil {
				t.Error(err)
			}
		})
	}
	waiting.Wait()
	if st, _ := s.State("b"); st.Status != Loading {
		t.Errorf("while it loads it is %s", st.Status)
	}
	m.gate <- struct{}{}
	all.Wait()
	if n := m.loads.Load(); n != 2 {
		t.Errorf("%d loads of two models", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opt.KeepAlive = -1
}

func TestAModelWithRequestsIsUnloadedWhenTheyHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, 2)
		s := m.set(Options{KeepAlive: -1}, "a", "b", "c")
		defer m.end(s)
		b := hold(t, s, "b")
		got := make(chan *Lease)
		go func() { got <- hold(t, s, "c") }()
		synctest.Wait()
		go func() { got <- hold(t, s, "b") }() // waits behind it
		synctest.Wait()
		if err := generate(t.Context(), b, "b", 3); err != nil {
			t.Errorf("a request under way: %v", err)
		}
		b.Release()
		c := <-got
		if st, _ := s.State("b"); st.Model != nil || c.Registry.Named("c") == nil {
			t.Errorf("with c in memory b is %+v", st)
		}
		c.Release()
		again := <-got
		if again.Registry.Named("b") == nil {
			t.Error("b has not come back")
		}
		if err := s.Unload("b"); err != nil {
			t.Error(err)
		}
		if st, _ := s.State("b"); st.Model == nil {
			t.Error("b was unloaded under its request")
		}
		again.Release()
		if st, _ := s.State("b"); st.Status != Unloaded || s.Unload("b") != ErrAbsent || s.Unload("a") != ErrPinned {
			t.Errorf("after its request b is %+v", st)
		}
	})
}

// hold leases a model.
func hold(t *testing.T, s *Set, name string) *Lease {
	lease, err := s.Hold(t.Context(), name, nil)
	if err != nil {
		t.Errorf("Hold(%q): %v", name, err)
	}
	return lease
}

func TestTheLeastRecentlyUsedModelGoesAndPinnedOnesStay(t *testing.T) {
	m := newMemory(t, 3)
	s := m.set(Options{KeepAlive: -1}, "a", "b", "c", "d")
	defer m.end(s)
	loaded := func() (names []string) {
		for _, st := range s.States() {
			if st.Model != nil {
				names = append(names, st.Source.Name)
			}
		}
		return names
	}
	for _, c := range []struct {
		name string
		want []string
	}{{"b", []string{"a", "b"}}, {"c", []string{"a", "b", "c"}}, {"b+sc8", []string{"a", "b", "c"}}, {"d:latest", []string{"a", "b", "d"}}, {"default", []string{"a", "b", "d"}}, {"c", []string{"a", "c", "d"}}} {
		hold(t, s, c.name).Release()
		if got := loaded(); !slices.Equal(got, c.want) {
			t.Errorf("after %s %v are in memory, want %v", c.name, got, c.want)
		}
	}
	cards := s.Cards()
	var ids []string
	for _, c := range cards {
		ids = append(ids, c.ID+" "+c.Status.Value)
	}
	if want := []string{"a loaded", "b unloaded", "c loaded", "d loaded"}; !slices.Equal(ids, want) {
		t.Errorf("cards %v, want %v", ids, want)
	}
}

func TestAModelGoesSoLongAfterItsLastRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, 9)
		s := m.set(Options{KeepAlive: time.Minute}, "a", "b")
		defer m.end(s)
		in := func() bool {
			synctest.Wait()
			st, _ := s.State("b")
			return st.Model != nil
		}
		for _, c := range []struct {
			keep        *time.Duration
			still, gone time.Duration
		}{{nil, 59 * time.Second, 2 * time.Second}, {new(time.Hour), 59 * time.Minute, 2 * time.Minute}, {new(time.Duration(0)), -1, 0}, {new(time.Duration(-1)), 1000 * time.Hour, -1}} {
			l := hold(t, s, "b")
			if c.keep != nil {
				l.KeepAlive(*c.keep)
			}
			time.Sleep(3 * time.Hour) // a request under way
			l.Release()
			if c.still >= 0 {
				if time.Sleep(c.still); !in() {
					t.Errorf("kept for %v, it is gone after %v", c.keep, c.still)
				}
			}
			if c.gone >= 0 {
				if time.Sleep(c.gone); in() {
					t.Errorf("kept for %v, it is still there", c.keep)
				}
			}
		}
	})
}

func TestAModelThatCannotBeLoadedSaysSoToAllAndIsTriedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, 2)
		m.gate = make(chan struct{}, 1)
		s := m.set(Options{KeepAlive: -1}, "a", "b")
		defer m.end(s)
		broken := errors.New("not a GGUF file")
		m.fail.Store(&broken)
		errs := make(chan error)
		for range 5 {
			go func() {
				_, err := s.Hold(t.Context(), "b", nil)
				errs <- err
			}()
		}
		synctest.Wait()
		m.gate <- struct{}{}
		for range 5 {
			var failed *LoadError
			if err := <-errs; !errors.As(err, &failed) || failed.Model != "b" || !errors.Is(err, broken) {
				t.Errorf("a waiter gets %v", err)
			}
		}
		_, err := s.Hold(t.Context(), "b", nil)
		if st, _ := s.State("b"); !errors.Is(err, broken) || m.loads.Load() != 2 || !st.Failed || s.Load("b") == nil {
			t.Errorf("at once: %v, after %d loads, %+v", err, m.loads.Load(), st)
		}
		m.fail.Store(nil)
		time.Sleep(retryAfter)
		m.gate <- struct{}{}
		hold(t, s, "b").Release()
		if st, _ := s.State("b"); st.Failed || st.Model == nil {
			t.Errorf("later: %+v", st)
		}
	})
}

func TestALoadEndsWhenAllWhoWaitHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, 2)
		m.gate = make(chan struct{}, 1)
		s := m.set(Options{Queue: 2}, "a", "b", "c")
		defer m.end(s)
		var cancels []context.CancelFunc
		errs := make(chan error)
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			go func() {
				_, err := s.Hold(ctx, "b", nil)
				errs <- err
			}()
		}
		synctest.Wait()
		if _, err := s.Hold(t.Context(), "c", nil); err != ErrQueue {
			t.Errorf("a third waiter gets %v, want ErrQueue", err)
		}
		for i, cancel := range cancels {
			cancel()
			if err := <-errs; !errors.Is(err, context.Canceled) {
				t.Errorf("waiter %d gets %v", i, err)
			}
			synctest.Wait()
			if st, _ := s.State("b"); (st.Status == Loading) != (i == 0) {
				t.Errorf("with %d waiters left it is %s", 1-i, st.Status)
			}
		}
		m.gate <- struct{}{}
		hold(t, s, "b").Release() // it can be loaded all the same
		if err := s.Load("c"); err != nil || s.Load("c") != ErrLoaded {
			t.Errorf("Load: %v", err)
		}
		synctest.Wait()
		if err := s.Unload("c"); err != nil {
			t.Errorf("Unload of a load: %v", err)
		}
		synctest.Wait()
		if st, _ := s.State("c"); st.Status != Unloaded {
			t.Errorf("a load that was taken back leaves it %s", st.Status)
		}
	})
}

func TestAModelThatCannotFitIsRefusedWithItsNumbers(t *testing.T) {
	m := newMemory(t, 2)
	s := m.set(Options{KeepAlive: -1}, "a", "b", "big")
	defer m.end(s)
	s.entries[2].Need = func() (int64, error) { return 3, nil }
	hold(t, s, "b").Release()
	var room *RoomError
	if _, err := s.Hold(t.Context(), "big", nil); !errors.As(err, &room) || *room != (RoomError{"big", 3, 1}) {
		t.Errorf("Hold = %v", err)
	}
	if st, _ := s.State("b"); st.Model == nil {
		t.Error("another model was unloaded in vain")
	}
}

func TestAnUpdateKeepsWhatIsTheSame(t *testing.T) {
	m := newMemory(t, 9)
	s := m.set(Options{KeepAlive: -1}, "a", "b", "c")
	defer m.end(s)
	hold(t, s, "b").Release()
	under := hold(t, s, "c")
	loads := m.loads.Load()
	list := []Source{m.source("d"), m.source("b")}
	list[1].Aliases = []string{"bee"}
	if err := s.Update(t.Context(), list, nil); err != nil {
		t.Fatal(err)
	}
	if got := m.loads.Load() - loads; got != 1 || s.Registry().Named("d") == nil {
		t.Errorf("%d loads, want that of the new first model alone", got)
	}
	if st, err := s.State("bee"); err != nil || st.Model == nil {
		t.Errorf("what stays: %+v, %v", st, err)
	}
	if _, err := s.State("a"); err == nil {
		t.Error("what is gone is found")
	}
	if err := generate(t.Context(), under, "c", 2); err != nil {
		t.Errorf("a request under way: %v", err)
	}
	under.Release()
	if n := m.used.Load(); n != 2 {
		t.Errorf("%d models are in memory, want 2", n)
	}
	broken := errors.New("broken")
	m.fail.Store(&broken)
	for _, bad := range [][]Source{{m.source("e"), m.source("b")}, {m.source("d"), m.source("d")}, {m.source("default")}} {
		if err := s.Update(t.Context(), bad, nil); err == nil || s.Registry().Named("d") == nil || len(s.States()) != 2 {
			t.Errorf("Update(%d) = %v", len(bad), err)
		}
	}
}

func TestAPanicWhileAModelLoadsIsTheErrorOfThatLoad(t *testing.T) {
	m := newMemory(t, 2)
	s := m.set(Options{KeepAlive: -1}, "a", "b", "c")
	defer m.end(s)
	s.entries[1].Load = func(context.Context, func(done, total int64)) (*Resident, error) { panic("boom") }
	load := s.entries[2].Load
	s.entries[2].Load = func(ctx context.Context, progress func(done, total int64)) (*Resident, error) {
		r, err := load(ctx, progress)
		if err == nil {
			r.Fingerprint, r.Model = "", nil // whose fingerprint cannot be taken
		}
		return r, err
	}
	for _, name := range []string{"b", "c"} {
		var failed *LoadError
		var p *parallel.Panic
		if _, err := s.Hold(t.Context(), name, nil); !errors.As(err, &failed) || failed.Model != name || !errors.As(err, &p) {
			t.Errorf("Hold(%s) = %v, want a load error that was a panic", name, err)
		}
	}
	if st, _ := s.State("a"); st.Model == nil || m.used.Load() != 1 {
		t.Errorf("the other model is %+v, and %d are in memory", st, m.used.Load())
	}
}

func TestAPanicWhileAModelIsUnloadedEndsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, 3)
		told := make(chan error, 9)
		s := m.set(Options{KeepAlive: time.Minute, Changed: func(_ string, status Status, err error) {
			if status == Unloaded {
				told <- err
			}
		}}, "a", "b")
		defer m.end(s)
		load := s.entries[1].Load
		s.entries[1].Load = func(ctx context.Context, progress func(done, total int64)) (*Resident, error) {
			r, err := load(ctx, progress)
			if err == nil {
				free := r.Unload
				r.Unload = func() { free(); panic("boom") }
			}
			return r, err
		}
		for range 2 { // it can be loaded again
			hold(t, s, "b").Release()
			time.Sleep(time.Minute)
			synctest.Wait()
			var p *parallel.Panic
			if err := <-told; !errors.As(err, &p) || p.Value != "boom" {
				t.Errorf("of the timer's panic is told %v", err)
			}
			if st, _ := s.State("b"); st.Status != Unloaded {
				t.Errorf("the model is %s", st.Status)
			}
		}
	})
}

func TestAModelThatAReloadPinsIsLoadedBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, 3)
		s := m.set(Options{KeepAlive: time.Minute}, "a", "b", "c", "d")
		defer m.end(s)
		sources := func(pinned ...string) (list []Source) {
			for _, name := range []string{"a", "b", "c", "d"} {
				src := m.source(name)
				src.Pinned = slices.Contains(pinned, name)
				list = append(list, src)
			}
			return list
		}
		hold(t, s, "d").Release()
		hold(t, s, "c").Release() // its clock runs
		broken := errors.New("broken")
		m.fail.Store(&broken)
		if err := s.Update(t.Context(), sources("b", "c"), nil); !errors.Is(err, broken) {
			t.Fatalf("Update = %v of a pinned model that cannot be loaded", err)
		}
		m.fail.Store(nil)
		if err := s.Unload("b"); err != ErrAbsent {
			t.Errorf("after an error Unload = %v, want it to be pinned no more than before", err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := m.used.Load(); n != 1 {
			t.Errorf("after an error %d models stay in memory, want the first alone", n)
		}
		hold(t, s, "d").Release()
		hold(t, s, "c").Release()
		if err := s.Update(t.Context(), sources("b", "c"), nil); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for _, name := range []string{"a", "b", "c"} {
				if st, _ := s.State(name); st.Model == nil {
					t.Errorf("the pinned model %s is %s", name, st.Status)
				}
			}
			time.Sleep(2 * time.Minute) // longer than what is not pinned stays
			synctest.Wait()
		}
	})
}

package batcher

import (
	"slices"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/toy"
)

// The toy's numbers begin with the root of what computes them, so that a block, or a row,
// shared wrongly fails the step or changes tokens.
func TestVariantsShareStepsAndNothingElse(t *testing.T) {
	m := &toy.Model{}
	prompt := counting(40)
	p := sampling.Params{MaxTokens: 12}
	variants := []*models.Variant{nil, {Root: kv.Root{Number: 1}}, {Root: kv.Root{Number: 2}}}
	var want [][]int32
	for _, v := range variants {
		start(t, m, 64, 4, DefaultOptions(), func(t *testing.T, r rig) {
			s := rig{r.With(v), m, t}.open(prompt...)
			defer s.Close()
			want = append(want, collect(t, s, p))
		})
	}
	if slices.Equal(want[0], want[1]) || slices.Equal(want[1], want[2]) {
		t.Fatal("variants generate the same")
	}
	start(t, m, 512, 4, DefaultOptions(), func(t *testing.T, r rig) {
		for _, cached := range []int{0, 36} { // whole blocks before the last token
			var seqs []*Sequence
			var params []sampling.Params
			for i := range 6 {
				s := rig{r.With(variants[i%3]), m, t}.open(prompt...)
				defer s.Close()
				forks, err := s.Fork(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				defer forks[0].Close()
				seqs, params = append(seqs, s, forks[0]), append(params, p, p)
				if got := s.CachedPrompt(); i < 3 && got != cached {
					t.Errorf("variant %d began with %d tokens of the cache, want %d", i, got, cached)
				}
			}
			steps := m.Steps()
			for i, got := range generateAll(t, seqs, params) {
				if !slices.Equal(got, want[i/2%3]) {
					t.Errorf("sequence %d: %v, want %v", i, got, want[i/2%3])
				}
			}
			if n := m.Steps() - steps; n > 30 {
				t.Errorf("%d steps: those of the variants are not the same", n)
			}
			for _, s := range seqs {
				s.Close()
			}
		}
	})
}

func TestStatsNameTheAdaptersOfWhatRuns(t *testing.T) {
	var during Stats
	var e *Engine
	m := &toy.Model{}
	m.Before = func(*models.Batch) error {
		during = e.Stats()
		return nil
	}
	start(t, m, 64, 4, DefaultOptions(), func(t *testing.T, r rig) {
		e = r.Engine
		b := &models.Variant{Root: kv.Root{Number: 1}, Uses: []models.Use{{Adapter: &models.Adapter{Name: "b"}, Scale: 1}, {Adapter: &models.Adapter{Name: "a"}, Scale: 1}}}
		var all sync.WaitGroup
		for range 2 {
			s := rig{r.With(b), m, t}.open(counting(9)...)
			defer s.Close()
			all.Go(func() { collect(t, s, sampling.Params{MaxTokens: 4}) })
		}
		all.Wait()
		if got := during.RunningAdapters; !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("running adapters are %v, want a and b", got)
		}
		if st := r.Stats(); len(st.RunningAdapters) > 0 || len(st.WaitingAdapters) > 0 {
			t.Errorf("when nothing runs, adapters %v and %v do", st.RunningAdapters, st.WaitingAdapters)
		}
	})
}

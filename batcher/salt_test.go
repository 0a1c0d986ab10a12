package batcher

import (
	"context"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/toy"
)

// TestSaltsShareNeitherPrefixesNorSteps asks the same of two salts and of none. The first request of each computes all of
// its prompt, and the second finds it. Equal prompts of two salts that run at once are both computed.
func TestSaltsShareNeitherPrefixesNorSteps(t *testing.T) {
	m := &toy.Model{}
	prompt, p := counting(40), sampling.Params{MaxTokens: 6}
	start(t, m, 512, 4, DefaultOptions(), func(t *testing.T, r rig) {
		open := func(salt string) *Sequence {
			s, err := r.Open(WithSalt(context.WithoutCancel(t.Context()), salt), prompt)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		var want []int32
		for _, cached := range []int{0, 36} { // whole blocks before the last token
			for _, salt := range []string{"", "a", "b"} {
				s := open(salt)
				got := collect(t, s, p)
				if s.CachedPrompt() != cached {
					t.Errorf("salt %q began with %d tokens of the cache, want %d", salt, s.CachedPrompt(), cached)
				}
				if want == nil {
					want = got
				}
				if !slices.Equal(got, want) {
					t.Errorf("salt %q: %v, want %v", salt, got, want)
				}
				forks, err := s.Fork(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				if forks[0].salt != s.salt {
					t.Error("a fork has another salt")
				}
				forks[0].Close()
				s.Close()
			}
		}
	})
	for _, c := range []struct {
		first, second string
		saved         bool
	}{{"a", "a", true}, {"a", "b", false}, {"", "b", false}} {
		e := New(m, m.NewCache(512, 4), DefaultOptions())
		var seqs []*Sequence
		for _, salt := range []string{c.first, c.second} {
			s, err := e.Open(WithSalt(t.Context(), salt), prompt)
			if err != nil {
				t.Fatal(err)
			}
			seqs = append(seqs, s)
		}
		saved := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			generateAll(t, seqs, []sampling.Params{p, p})
		}()
		for running := true; running; {
			st, err := e.Step()
			if err != nil {
				t.Fatal(err)
			}
			saved += st.Saved
			select {
			case <-done:
				running = false
			default:
			}
		}
		if hits := seqs[1].CachedPrompt() > 0; (saved > 0 || hits) != c.saved {
			t.Errorf("of salts %q and %q %d tokens were computed once, cached: %t", c.first, c.second, saved, hits)
		}
	}
}

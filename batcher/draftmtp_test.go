package batcher

import (
	"slices"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// told is a Follower that notes what it has guessed.
type told struct {
	Follower
	mu      sync.Mutex
	guesses [][2][]int32 // texts and what followed
}

func (w *told) Draft(guesses []*Guess, extra float64) error {
	err := w.Follower.Draft(guesses, extra)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range guesses {
		if len(g.Tokens) > 0 {
			w.guesses = append(w.guesses, [2][]int32{slices.Clone(g.Text), slices.Clone(g.Tokens)})
		}
	}
	return err
}

func TestAnMTPDrafterSaysWhatItsLayerSaysOfTheWholeTextAndChangesNoToken(t *testing.T) {
	sweep.NoRace(t)
	for _, kind := range []kv.Type{kv.F16, kv.Int4} {
		t.Run(kind.String(), func(t *testing.T) { mtpDraftsChangeNoToken(t, kind) })
	}
}

func mtpDraftsChangeNoToken(t *testing.T, kind kv.Type) {
	b, pool := smallModel(t, synthetic.Shape{Arch: synthetic.Qwen35, Predicts: true}) // a hybrid with a layer that predicts
	newPredictions := func(blocks int) *kv.Cache {
		return newCacheOf(t, b.Predictor, kv.Options{Type: kind, BlockLen: 8, Blocks: blocks, Cold: true})
	}
	const streams, length = 4, 60
	prompt := func(i int) []int32 { return append([]int32{int32(i)}, counting(45+9*i)...) } // nothing is shared
	var want [streams][]string
	for _, c := range []struct {
		how    Speculation
		blocks int // of the predictor's cache
	}{{SpeculateOff, 100}, {"3", 100}, {"1", 100}, {"3", 20}, {SpeculateAuto, 100}} {
		d := &told{Follower: NewMTPDrafter(b.Predictor, newPredictions(c.blocks), pool).(Follower)}
		opt := DefaultOptions()
		opt.Pool, opt.Speculation, opt.Drafters, opt.StepTokens = pool, c.how, []Drafter{d}, 2*Tile
		e, end := running(t, b.Model, newCacheOf(t, b.Model, kv.Options{Type: kind, BlockLen: 8, Blocks: 200, States: 40, Residuals: 14}), opt)
		var all sync.WaitGroup
		var got [streams][]string
		for i := range streams {
			all.Go(func() {
				s, err := e.Open(t.Context(), prompt(i))
				if err != nil {
					t.Error(err)
					return
				}
				got[i] = answer(t, s, sampling.Params{MaxTokens: length})
			})
		}
		all.Wait()
		if c.how == SpeculateOff {
			want = got
		}
		for i := range got {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("speculation %s: %v, want %v", c.how, got[i], want[i])
			}
		}
		st := end()
		if c.how == SpeculateOff || c.how == SpeculateAuto {
			continue
		}
		if n := len(d.guesses); n < length || st.DraftTokens[DraftMTP] < length {
			t.Errorf("speculation %s: %d times something was guessed, %v tokens", c.how, n, st.DraftTokens)
		}
		if c.blocks < 100 { // texts whose beginning was forgotten
			continue
		}
		for i, g := range d.guesses {
			if i%11 == 0 {
				if want := predicted(t, b, newPredictions(100), g[0], len(g[1])); !slices.Equal(g[1], want) {
					t.Errorf("after %d tokens %v was guessed, want %v", len(g[0]), g[1], want)
				}
			}
		}
	}
}

// predicted gives the n tokens that a predictor finds most likely after a text.
func predicted(t *testing.T, b *models.Bundle, cache *kv.Cache, text []int32, n int) (guess []int32) {
	t.Helper()
	last, width := len(text)-1, b.Model.Config().Hidden
	forward := func(m models.Model, cache *kv.Cache, s *kv.Sequence, before []float32, tokens ...int32) *models.Batch {
		batch := &models.Batch{Before: before, KeepStates: true}
		at := s.Len()
		if err := s.Grow(len(tokens)); err != nil {
			t.Fatal(err)
		}
		batch.Add(s, at, 1, tokens...)
		if err := m.Forward(batch, cache); err != nil {
			t.Fatal(err)
		}
		return batch
	}
	whole := newCacheOf(t, b.Model, kv.Options{Type: cache.Type(), BlockLen: 8, Blocks: 100, States: 4})
	states := forward(b.Model, whole, whole.Open(nil), nil, text[:last]...).States
	s := cache.Open(nil)
	made := forward(b.Predictor, cache, s, states, text[1:]...)
	for {
		guess = append(guess, int32(vector.Argmax(made.Logits)))
		if len(guess) == n {
			return guess
		}
		made = forward(b.Predictor, cache, s, made.States[len(made.States)-width:], guess[len(guess)-1])
	}
}

func TestAnMTPDrafterGuessesTheSameBehindACachedPrefix(t *testing.T) {
	sweep.NoRace(t)
	b, pool := smallModel(t, synthetic.Shape{Arch: synthetic.Qwen35, Predicts: true})
	cache, err := kv.New(b.Predictor.Config().KV(), kv.Options{BlockLen: 8, Blocks: 200})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cache.Close() })
	d := &told{Follower: NewMTPDrafter(b.Predictor, cache, pool).(Follower)}
	opt := DefaultOptions()
	opt.Pool, opt.Speculation, opt.Drafters, opt.StepTokens = pool, "3", []Drafter{d}, 2*Tile
	main := newStates(t, b.Model, 200, 40)
	e, end := running(t, b.Model, main, opt)
	run := func(salt string, prompt []int32) (guesses [][2][]int32, accepted int64, cached int) {
		d.mu.Lock()
		d.guesses = nil
		d.mu.Unlock()
		before := e.Stats().DraftAccepted[DraftMTP]
		s, err := e.Open(WithSalt(t.Context(), salt), prompt)
		if err != nil {
			t.Fatal(err)
		}
		answer(t, s, sampling.Params{MaxTokens: 40, Temperature: 1, Seed: 3})
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.guesses, e.Stats().DraftAccepted[DraftMTP] - before, s.Timing().CachedPrompt
	}
	for i, prompt := range [][]int32{append([]int32{7}, counting(70)...), append([]int32{7}, counting(140)...)} {
		want, right, cached := run("other", prompt) // whose blocks nobody finds
		if i == 0 {
			run("", prompt)
		}
		got, again, found := run("", prompt)
		if i == 0 && cached > 0 || found == 0 {
			t.Errorf("the prefix cache had %d and %d tokens of a prompt of %d", cached, found, len(prompt))
		}
		if again != right || !slices.EqualFunc(got, want, func(a, b [2][]int32) bool { return slices.Equal(a[0], b[0]) && slices.Equal(a[1], b[1]) }) {
			t.Errorf("behind %d cached tokens %d guesses are right, without %d; they are\n%v, want\n%v", found, again, right, got, want)
		}
	}
	end()
	if err := cache.Check(); err != nil {
		t.Error(err)
	}
}

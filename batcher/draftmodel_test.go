package batcher

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/toy"
)

// checkReadings verifies that a drafter keeps what open sequences with work or
// blocks need, and nothing else.
func checkReadings(t *testing.T, e *Engine, d *modelDrafter) {
	t.Helper()
	var held []*kv.Sequence
	for s := range e.box.open {
		for i := range s.task.drafts.by {
			r, ok := s.task.drafts.by[i].Notes.(*reading)
			if !ok || r.kv == nil {
				continue
			}
			if s.task.kv == nil || len(r.tokens) != r.kv.Len() || !slices.Contains(d.open, r) {
				t.Fatalf("a draft of %d positions and %d tokens, whose sequence has blocks: %t", r.kv.Len(), len(r.tokens), s.task.kv != nil)
			}
			held = append(held, r.kv)
		}
	}
	if len(held) != len(d.open) {
		t.Fatalf("%d drafts of sequences, %d of the drafter", len(held), len(d.open))
	}
	if err := d.kv.Check(held...); err != nil {
		t.Fatal(err)
	}
}

// checkNoReadings verifies that nothing is left when all sequences are closed.
func checkNoReadings(t *testing.T, d *modelDrafter) {
	t.Helper()
	if err := d.kv.Check(); err != nil {
		t.Error(err)
	}
	if len(d.open) > 0 || d.kv.Free() != d.kv.Blocks() {
		t.Errorf("%d drafts and %d of %d blocks are left", len(d.open), d.kv.Blocks()-d.kv.Free(), d.kv.Blocks())
	}
}

func TestADraftModelChangesNoToken(t *testing.T) {
	for i, p := range everyOption {
		p.MaxTokens, p.Seed = 40, uint64(i)
		prompt := counting(50)
		var want []sampling.Token
		for _, how := range []Speculation{SpeculateOff, SpeculateAuto, "1", "3", "15"} {
			for _, logits := range []func([]int32, []float32){nil, looping} {
				m, small := &toy.Model{}, &toy.Model{Logits: logits}
				d := newModelDrafter(small, small.NewCache(40, 3), nil)
				opt := DefaultOptions()
				opt.Speculation, opt.Drafters, opt.Unread = how, []Drafter{NewLookup(), d}, 7
				start(t, m, 64, 4, opt, func(t *testing.T, r rig) {
					got := generated(t, r.open(prompt...), p)
					if want == nil {
						want = got
					}
					if fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("%+v with speculation %s: %v, want %v", p, how, got, want)
					}
				})
				checkNoReadings(t, d)
			}
		}
	}
}

func TestAModelThatDraftsForItselfIsAlwaysRight(t *testing.T) {
	for i, p := range everyOption {
		p.MaxTokens, p.Seed = 40, uint64(i)
		m := &toy.Model{}
		d := newModelDrafter(m, m.NewCache(64, 4), nil)
		opt := DefaultOptions()
		opt.Speculation, opt.Drafters = "3", []Drafter{d}
		start(t, m, 64, 4, opt, func(t *testing.T, r rig) {
			s := r.open(1, 2, 3)
			defer s.Close()
			n := len(collect(t, s, p))
			st := r.Stats()
			if st.DraftTokens[DraftModel]+st.ForcedTokens < int64(n)/2 || st.DraftAccepted[DraftModel] < st.DraftTokens[DraftModel]-3 { // the last ones may be too many
				t.Errorf("%+v: %d of %d guesses right, %d tokens", p, st.DraftAccepted[DraftModel], st.DraftTokens[DraftModel], n)
			}
		})
	}
}

// clocked makes a model whose steps take a time of their own.
func clocked(perStep, perRow time.Duration, logits func([]int32, []float32)) *toy.Model {
	return &toy.Model{Logits: logits, Before: func(b *models.Batch) error {
		time.Sleep(perStep + time.Duration(len(b.Tokens))*perRow)
		return nil
	}}
}

func TestADraftModelPaysOrIsOff(t *testing.T) {
	sweep.NoRace(t)
	const ms = time.Millisecond
	for _, c := range []struct {
		name    string
		prompt  int
		streams int
		small   *toy.Model
		lo, hi  float64 // times as fast as without
	}{
		{"quick and right", 50, 1, clocked(ms, ms/10, nil), 3, 8},
		{"quick and right, four streams", 50, 4, clocked(ms, ms/10, nil), 2, 8},
		{"quick and right about a long prompt", 1000, 1, clocked(ms, ms/10, nil), 3, 8},
		{"quick and wrong", 50, 1, clocked(ms, ms/10, looping), 0.95, 1},
		{"quick and wrong, four streams", 50, 4, clocked(ms, ms/10, looping), 0.95, 1},
		{"right and as slow as the model itself", 50, 1, clocked(20*ms, ms, nil), 0.95, 1},
		{"slow, wrong, and a long prompt", 1000, 1, clocked(20*ms, ms, looping), 0.95, 1.01}, // lookups may be right
	} {
		speed := func(how Speculation) (tokens float64) {
			synctest.Test(t, func(t *testing.T) {
				m := clocked(20*ms, ms, nil)
				d := newModelDrafter(c.small, c.small.NewCache(1024, 16), nil)
				opt := DefaultOptions()
				opt.Speculation, opt.Drafters = how, []Drafter{NewLookup(), d}
				e := New(m, m.NewCache(1024, 16), opt)
				go func() { _ = e.Run(t.Context()) }()
				run := func(n int) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var seqs []*Sequence
					var params []sampling.Params
					for i := range c.streams {
						s, err := e.Open(ctx, append(counting(c.prompt), int32(i)))
						if err != nil {
							t.Fatal(err)
						}
						seqs, params = append(seqs, s), append(params, sampling.Params{MaxTokens: n})
					}
					for _, run := range GenerateAll(ctx, seqs, params) {
						for _, err := range run {
							if err != nil {
								t.Error(err)
							}
						}
					}
				}
				run(300) // until both models are known
				begin := time.Now()
				run(600)
				tokens = 600 / time.Since(begin).Seconds()
			})
			return tokens
		}
		got := speed(SpeculateAuto) / speed(SpeculateOff)
		t.Logf("%s: %.2f", c.name, got)
		if got < c.lo || got > c.hi {
			t.Errorf("%s: %.2f times as fast with speculation, want %v to %v", c.name, got, c.lo, c.hi)
		}
	}
}

func TestGuessesOfManyStreamsAreDraftedTogether(t *testing.T) {
	m, small := &toy.Model{}, &toy.Model{}
	d := newModelDrafter(small, small.NewCache(64, 4), nil)
	opt := DefaultOptions()
	opt.Speculation, opt.Drafters = "3", []Drafter{d}
	start(t, m, 64, 4, opt, func(t *testing.T, r rig) {
		var seqs []*Sequence
		var params []sampling.Params
		for i := range 5 {
			seqs, params = append(seqs, r.open(int32(i), 2, 3)), append(params, sampling.Params{MaxTokens: 41})
		}
		for _, run := range GenerateAll(t.Context(), seqs, params) {
			for _, err := range run {
				if err != nil {
					t.Error(err)
				}
			}
		}
		for _, s := range seqs {
			s.Close()
		}
		// Four tokens a step, of which the model itself says one.
		if m.Steps() > 15 || small.Steps() > 3*m.Steps() {
			t.Errorf("5 streams of 41 tokens took %d steps and %d of the draft model", m.Steps(), small.Steps())
		}
	})
	checkNoReadings(t, d)
}

// TestReadingALongPromptForDraftsDelaysStreamsNoMoreThanPromptsMay lets a model
// that is not known to be bad read a long text while another stream runs.
func TestReadingALongPromptForDraftsDelaysStreamsNoMoreThanPromptsMay(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		m, small := clocked(20*ms, ms/4, nil), clocked(ms, ms/8, nil)
		d := newModelDrafter(small, small.NewCache(1024, 16), nil)
		opt := DefaultOptions()
		opt.Drafters = []Drafter{d}
		var longest atomic.Int64
		opt.OnStep = func(st StepStats) { longest.Store(max(longest.Load(), int64(st.Drafting))) }
		e := New(m, m.NewCache(1024, 16), opt)
		go func() { _ = e.Run(t.Context()) }()
		s, err := e.Open(t.Context(), counting(20))
		if err != nil {
			t.Fatal(err)
		}
		collect(t, s, sampling.Params{MaxTokens: 500}) // until both models are known
		longest.Store(0)
		long, err := e.Open(t.Context(), counting(3000))
		if err != nil {
			t.Fatal(err)
		}
		before := small.Computed()
		collect(t, long, sampling.Params{MaxTokens: 300})
		if read := small.Computed() - before; read < 3000 {
			t.Errorf("the draft model computed %d tokens", read)
		}
		// Fifteen guesses, and for the prompt half of what a step of one stream takes.
		if limit := 15*2*ms + 11*ms; time.Duration(longest.Load()) > limit {
			t.Errorf("drafting took up to %v of a step, want at most %v", time.Duration(longest.Load()), limit)
		}
	})
}

func TestTextsAreNotReadForDraftsThatAreSoonOver(t *testing.T) {
	sweep.NoRace(t)
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		answer int
		lo, hi float64 // times as fast as without
	}{
		{"answers that are over before their prompt has been read", 12, 0.95, 1.05},
		{"longer ones", 200, 2, 8},
	} {
		speed := func(how Speculation) (tokens float64) {
			synctest.Test(t, func(t *testing.T) {
				m, small := clocked(20*ms, ms, nil), clocked(ms, 2*ms, nil)
				random := rand.New(rand.NewPCG(1, 1))
				d := newModelDrafter(small, small.NewCache(1024, 16), nil)
				opt := DefaultOptions()
				opt.Speculation, opt.Drafters = how, []Drafter{d}
				e := New(m, m.NewCache(1024, 16), opt)
				go func() { _ = e.Run(t.Context()) }()
				took := time.Duration(0)
				for range 4000 / c.answer {
					prompt := counting(300)
					for j := range prompt {
						prompt[j] = random.Int32N(64)
					}
					s, err := e.Open(t.Context(), prompt)
					if err != nil {
						t.Fatal(err)
					}
					collect(t, s, sampling.Params{MaxTokens: c.answer})
					took += s.Timing().LastToken.Sub(s.Timing().FirstToken)
					s.Close()
				}
				tokens = 1 / took.Seconds()
			})
			return tokens
		}
		got := speed(SpeculateAuto) / speed(SpeculateOff)
		t.Logf("%s: %.2f", c.name, got)
		if got < c.lo || got > c.hi {
			t.Errorf("%s: %.2f times as fast with speculation, want %v to %v", c.name, got, c.lo, c.hi)
		}
	}
}

func TestADraftModelThatFailsDraftsNoMoreAndTheAnswersGoOn(t *testing.T) {
	m, boom, steps := &toy.Model{}, errors.New("boom"), 0
	small := &toy.Model{Before: func(*models.Batch) error {
		if steps++; steps > 5 {
			return boom
		}
		return nil
	}}
	var reported []error
	opt := DefaultOptions()
	opt.Speculation, opt.Drafters = "3", []Drafter{NewLookup(), NewModelDrafter(small, small.NewCache(64, 4), nil)}
	opt.OnDraftError = func(err error) { reported = append(reported, err) }
	prompt, p := []int32{3, 1, 4}, sampling.Params{MaxTokens: 60}
	start(t, m, 64, 4, opt, func(t *testing.T, r rig) {
		for range 2 {
			s := r.open(prompt...)
			if got, want := collect(t, s, p), expect(m, prompt, 60, p); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			s.Close()
		}
		if r.Failed() != nil {
			t.Errorf("the engine has failed with its draft: %v", r.Failed())
		}
	})
	if steps != 6 || len(reported) != 1 || !errors.Is(reported[0], boom) {
		t.Errorf("the draft model was run %d times and its failure was reported as %v; want 6 times and once", steps, reported)
	}
}

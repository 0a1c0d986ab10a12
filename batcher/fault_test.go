package batcher

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
)

func TestAfterABackendsFaultOpenSequencesEndAndNewOnesAreComputedAnew(t *testing.T) {
	died := errors.New("the child has died")
	for step := 1; step < 12; step++ {
		for _, states := range []int{0, 6} {
			var m *toy.Model
			m = &toy.Model{States: states, Before: func(*models.Batch) error {
				if m.Steps() == step {
					return &models.FaultError{Err: died, Spare: true}
				}
				return nil
			}}
			heard := 0
			opt := DefaultOptions()
			opt.Name, opt.OnFault = "toy", func(error) { heard++ }
			start(t, m, 64, 4, opt, func(t *testing.T, r rig) {
				prompt := []int32{1, 2, 3, 4, 5, 6, 7, 8, 9}
				p := sampling.Params{MaxTokens: 20, IgnoreEOS: true}
				s, twin := r.open(prompt...), r.open(prompt...)
				var errs []error
				for _, q := range []*Sequence{s, twin} {
					for _, err := range q.Generate(t.Context(), p) {
						if err != nil {
							errs = append(errs, err)
						}
					}
				}
				var fault *FaultError
				if len(errs) != 2 || !errors.As(errs[0], &fault) || fault.Model != "toy" || !errors.Is(errs[1], died) || errors.Is(errs[0], ErrClosed) {
					t.Fatalf("a fault in step %d: sequences end with %v, want two FaultErrors", step, errs)
				}
				if _, err := twin.Logits(t.Context()); !errors.As(err, &fault) {
					t.Errorf("a sequence that has ended answers %v", err)
				}
				synctest.Wait()
				if n := r.loop.kv.Stats().Cached; n != 0 {
					t.Errorf("a fault in step %d: %d blocks of what is not to be trusted are still found", step, n)
				}
				next := r.open(prompt...)
				if next.CachedPrompt() != 0 {
					t.Errorf("%d tokens of a new sequence come from before the fault", next.CachedPrompt())
				}
				if got, want := collect(t, next, p), expect(m, prompt, 20, p); !slices.Equal(got, want) {
					t.Errorf("after a fault in step %d: %v, want %v", step, got, want)
				}
				for _, q := range []*Sequence{s, twin, next} {
					q.Close()
				}
			})
			if heard != 1 {
				t.Errorf("%d faults are reported", heard)
			}
		}
	}
}

func TestAFaultWithoutASpareStopsTheEngine(t *testing.T) {
	m := &toy.Model{Before: func(*models.Batch) error { return &models.FaultError{Err: errors.New("dead")} }}
	e := New(m, m.NewCache(8, 4), DefaultOptions())
	s, err := e.Open(t.Context(), []int32{1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = e.Step()
	if err == nil {
		go func() { _, _ = s.Logits(t.Context()) }()
		for err == nil {
			_, err = e.Step()
		}
	}
	var failed *FailedError
	if !errors.As(err, &failed) || e.Failed() == nil {
		t.Errorf("Step = %v, want a FailedError", err)
	}
}

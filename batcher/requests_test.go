package batcher

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/toy"
)

// What descends from one opened sequence is one request, running as long as one of its
// sequences runs.
func TestRequestsAreCountedOnceWhateverTheyFork(t *testing.T) {
	var most Stats // of the step with the most sequences
	var e *Engine
	opt := DefaultOptions()
	opt.OnStep = func(StepStats) {
		if e != nil && e.published.stats.Running > most.Running {
			most = e.published.stats
		}
	}
	start(t, &toy.Model{}, 64, 4, opt, func(t *testing.T, r rig) {
		var seqs []*Sequence
		for _, n := range []int{3, 1} {
			root := r.open(1, 2, int32(n))
			forks, err := root.Fork(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			root.Close()
			seqs = append(seqs, forks...)
		}
		synctest.Wait()
		e = r.Engine
		GenerateAll(t.Context(), seqs, slices.Repeat([]sampling.Params{{MaxTokens: 4, IgnoreEOS: true}}, len(seqs)))
		synctest.Wait()
		for _, s := range seqs {
			s.Close()
		}
	})
	if most.Running != 4 || most.RunningRequests != 2 || most.WaitingRequests != 0 {
		t.Errorf("%d sequences of %d requests ran at most, %d waited; want 4 of 2, and none", most.Running, most.RunningRequests, most.WaitingRequests)
	}
	// The lists are sorted by age: two families run, of which one waits too, and two wait.
	a := admission{active: []*Sequence{aged(1, 1), aged(5, 1), aged(3, 3)}, waiting: []*Sequence{aged(6, 1), aged(2, 2), aged(7, 2), aged(8, 3), aged(9, 9)}}
	if running, waiting := a.requests(); running != 2 || waiting != 2 {
		t.Errorf("%d requests run and %d wait, want 2 and 2", running, waiting)
	}
}

// aged is a sequence of that rank.
func aged(id, age uint64) *Sequence { return &Sequence{ticket: ticket{id: id, age: age}} }

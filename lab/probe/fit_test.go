package probe

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/tts/probe"
)

// planted returns a trainer of so many problems whose answers are right where the second feature of a
// model of one layer of 3 is large, with some noise.
func planted(problems int) *Trainer {
	rng := rand.New(rand.NewPCG(1, 2))
	t := &Trainer{read: &models.Probe{Layers: []int{0}}, hidden: 3, n: 4, folds: 1, verifier: "none"}
	for i := range problems {
		p := problem{question: strings.Repeat("q", i)}
		for range 4 {
			a := answer{votes: 1 + rng.IntN(2), key: string(rune('a' + rng.IntN(3))), score: rng.Float64()}
			for range 6 + len(probe.TokenFeatures) {
				a.whole = append(a.whole, 100+5*float32(rng.NormFloat64()))
			}
			a.whole[2] = 7 // says nothing
			a.begun = slices.Clone(a.whole)
			a.right = float64(a.whole[1])-100+rng.NormFloat64() > 0
			p.answers = append(p.answers, a)
		}
		t.problems = append(t.problems, p)
	}
	t.divide(0)
	return t
}

func TestAFitFindsWhatTellsRightFromWrong(t *testing.T) {
	c := &models.Config{Name: "M", Arch: "llama", Layers: 1, Hidden: 3}
	trainer := planted(600)
	p, r, err := trainer.Fit(t.Context(), c, "ab")
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range p.Whole.Mean {
		if (i == 1) != (math.Abs(float64(w)) > 0.3) {
			t.Errorf("feature %d has weight %v", i, w)
		}
	}
	if r.Probe.AUC < 0.95 || r.Other.AUC > 0.6 || r.Probe.ECE > 0.1 || r.Probe.Brier > 0.15 {
		t.Errorf("the report is %+v, the verifier's %+v", r.Probe, r.Other)
	}
	chosen := map[string]float64{}
	for _, c := range r.Chosen {
		chosen[c.By] = c.Right
	}
	if best := chosen["some candidate is right"]; chosen["probe, the highest"] < best-0.05 || chosen["vote"] > best-0.1 {
		t.Errorf("chosen are %v", chosen)
	}
	if p.Of.Name != "M" || p.Record.Problems != 600 || p.Record.AUC != float32(r.Probe.AUC) {
		t.Errorf("the probe says %+v and %+v", p.Of, p.Record)
	}
	again, _, err := planted(600).Fit(t.Context(), c, "ab")
	if err != nil || !slices.Equal(again.Whole.Mean, p.Whole.Mean) || !slices.Equal(again.Step.Last, p.Step.Last) {
		t.Error("a second fit of the same answers is another")
	}
}

func TestAFitNeedsRightAnswersAndWrongOnes(t *testing.T) {
	trainer := planted(100)
	for i := range trainer.problems {
		for k := range trainer.problems[i].answers {
			trainer.problems[i].answers[k].right = false
		}
	}
	if _, _, err := trainer.Fit(t.Context(), &models.Config{Layers: 1, Hidden: 3}, ""); err == nil || !strings.Contains(err.Error(), "0 right and") {
		t.Errorf("Fit = %v", err)
	}
}

func TestTheAUCCountsPairsInTheRightOrder(t *testing.T) {
	list := []scored{{0.9, true, 1}, {0.8, false, 3}, {0.8, true, 1}, {0.1, false, 1}}
	if q := measure(list); math.Abs(q.AUC-3.5/4) > 1e-12 || math.Abs(q.Brier-(0.01+3*0.64+0.04+0.01)/6) > 1e-12 {
		t.Errorf("%+v", q)
	}
}

func TestLayersAreSpacedUpToTheLast(t *testing.T) {
	trainer, err := New(&models.Config{Layers: 28, Hidden: 1536, Vocab: 5, Outputs: 5}, nil, 1)
	if err != nil || !slices.Equal(trainer.read.Layers, []int{4, 10, 15, 21, 27}) {
		t.Errorf("%+v, %v", trainer, err)
	}
	for _, layers := range [][]int{{28}, {-1}, {3, 3}, {5, 2}} {
		if _, err := New(&models.Config{Layers: 28, Hidden: 1536, Vocab: 5, Outputs: 5}, layers, 1); err == nil {
			t.Errorf("layers %v are taken", layers)
		}
	}
}

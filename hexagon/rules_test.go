package hexagon

import (
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models"
)

// ruled is a layer that no rule refuses, of a plan with one before it.
func ruled() (*layerPlan, *layer) {
	d := &layerPlan{m: &models.DenseLayers{Hidden: 64, Heads: 2, KVHeads: 1, HeadDim: 32}, rotations: [2][2]int{{32, 16}}, keyMask: keyMask{32, false}, cap: 50}
	y := &models.DenseLayer{
		Norm:           models.DenseNorm{Weight: make([]float32, 64)},
		DenseAttention: models.DenseAttention{Cap: 50, Rotated: 32, RotationOfDistance: 16},
		DenseFFN:       models.DenseFFN{Width: 64, Unit: models.UnitSiLU},
	}
	s := &stack{parts: make([]*linear, 1)}
	return d, &layer{DenseLayer: y, qkv: s, o: s, gateUp: s, down: s}
}

func TestEachRuleLeavesALayerToTheHostByItsReason(t *testing.T) {
	spoilt := map[string]func(d *layerPlan, l *layer){
		"only the CPU knows":             func(_ *layerPlan, l *layer) { l.DenseLayer = nil },
		"the feed-forward's width":       func(_ *layerPlan, l *layer) { l.Width = 65 },
		"its experts read the same rows": func(d *layerPlan, l *layer) { l.Mixture, d.m.Parallel = true, true },
		"its window differs":             func(_ *layerPlan, l *layer) { l.Window = 64 },
		"the feed-forward's unit":        func(_ *layerPlan, l *layer) { l.Unit = 99 },
		"a sink of attention":            func(_ *layerPlan, l *layer) { l.Sinks = []float32{1e9} },
		"its soft cap differs":           func(_ *layerPlan, l *layer) { l.Cap = 30 },
		"without a norm before them":     func(d *layerPlan, l *layer) { d.m.Parallel, l.Norm.Weight = true, nil },
		"numbers that rotate":            func(_ *layerPlan, l *layer) { l.RotationOfDistance = 17 },
		"its rotation differs":           func(_ *layerPlan, l *layer) { l.RotationOfDistance = 1 },
		"before attention":               func(_ *layerPlan, l *layer) { l.qkv = nil },
		"after attention":                func(_ *layerPlan, l *layer) { l.o = nil },
		"the feed-forward's matrices":    func(_ *layerPlan, l *layer) { l.down = nil },
		"the feed-forward has no gate":   func(_ *layerPlan, l *layer) { l.Ungated = true },
		"vectors cannot take apart":      func(_ *layerPlan, l *layer) { l.qkv = &stack{parts: make([]*linear, 2)} },
	}
	rules := append(append(append([]layerRule{}, layerRules...), stackRules...), attentionRules...)
	if d, l := ruled(); d.refusedBy(rules, l) != "" {
		t.Fatalf("a good layer is refused: %s", d.refusedBy(rules, l))
	}
	for _, r := range rules {
		found := ""
		for part, spoil := range spoilt {
			if !strings.Contains(r.why, part) {
				continue
			}
			found = part
			d, l := ruled()
			if spoil(d, l); d.refusedBy(rules, l) != r.why {
				t.Errorf("a layer for %q is refused by %q", r.why, d.refusedBy(rules, l))
			}
		}
		if found == "" {
			t.Errorf("nothing tests the rule %q", r.why)
		}
	}
}

func TestReasonsPutLayersTogether(t *testing.T) {
	got := strings.Join(Reasons([]Refusal{{"layer", 0, "a"}, {"layer", 1, "a"}, {"layer", 2, "b"}, {"layer", 4, "a"}, {"head", -1, "c"}, {"experts", 3, "a"}}), "; ")
	if want := "layer 0 to 1, 4: a; layer 2: b; head: c; experts 3: a"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

package mixtures

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/lab/npu"
)

func TestPlacementsOfThePapersModelAreModelled(t *testing.T) {
	x, ok := npu.ShapeMixture("phi-3.5-moe")
	if !ok {
		t.Fatal("the shape is gone")
	}
	r, err := Place(x, nil, DefaultPlacementOptions())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Settings {
		if s.Plan.Overflow > r.Options.MostOverflow {
			t.Errorf("prompt %d, chunk %d: %v of the rows overflow", s.Prompt, s.Chunk, s.Plan.Overflow)
		}
	}
	if len(r.Settings) != 6 {
		t.Errorf("%d settings, want 6", len(r.Settings))
	}
	var drawing bytes.Buffer
	if err := r.SVG(&drawing); err != nil || strings.Count(drawing.String(), "<circle") < 24 {
		t.Errorf("the drawing: %v, %.200s", err, &drawing)
	}
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"modelled", "naive", "Table 4"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}

func TestBadPlacementOptionsAreRefused(t *testing.T) {
	for what, change := range map[string]func(*PlacementOptions){
		"no prompts":         func(o *PlacementOptions) { o.Prompts = nil },
		"a prompt of none":   func(o *PlacementOptions) { o.Prompts = []int{0} },
		"a huge prompt":      func(o *PlacementOptions) { o.Prompts = []int{1 << 30} },
		"chunks of none":     func(o *PlacementOptions) { o.Chunks = []int{0} },
		"only larger chunks": func(o *PlacementOptions) { o.Prompts, o.Chunks = []int{64}, []int{128} },
		"no imbalance":       func(o *PlacementOptions) { o.Ratio = 0.5 },
		"too much overflow":  func(o *PlacementOptions) { o.MostOverflow = 2 },
	} {
		o := DefaultPlacementOptions()
		change(&o)
		if o.Check() == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	if err := DefaultPlacementOptions().Check(); err != nil {
		t.Error(err)
	}
}

// The model is one of queues with constant costs; these are its limits, no aims. It copies rows where the paper scatters them,
// and of Qwen3's prompt in seconds and joules the paper does not say how long it is.
func TestThePapersFiguresAreMissedByNoMoreThanIsSaid(t *testing.T) {
	list, fitted := figures(t), 0
	for _, f := range list {
		limit := 2.0
		if f.Kind == npu.Fitted {
			fitted++
		}
		switch {
		case f.Kind == npu.Missing:
			continue
		case strings.Contains(f.What, "gather"):
			limit = 12
		case strings.Contains(f.What, "scatter") || strings.Contains(f.What, "residual"):
			limit = 3000
		case f.Where == "Table 6" || f.Where == "Table 7":
			limit = 31
		case strings.Contains(f.What, "end to end"):
			limit = 4
		case f.Kind == npu.Fitted:
			limit = 1.6
		}
		if f.Ratio > limit || f.Ratio < 1/limit {
			t.Errorf("%s is %.3g, measured %.3g", f.What, f.Modelled, f.Low)
		}
	}
	if len(list) != 167 || fitted != 24 {
		t.Errorf("%d figures, %d of them fitted", len(list), fitted)
	}
}

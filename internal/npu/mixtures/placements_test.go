package mixtures

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/npu"
)

func TestPlacementsOfThePapersModelAreBesideItsFigures(t *testing.T) {
	x, ok := npu.ShapeMixture("phi-3.5-moe")
	if !ok {
		t.Fatal("the shape is gone")
	}
	r, err := Place(x, nil, DefaultPlacementOptions())
	if err != nil {
		t.Fatal(err)
	}
	figures := 0
	for _, s := range r.Settings {
		for _, c := range s.Papers {
			figures++
			// A queue with constant costs is no device: it is right within a factor of three.
			if c.Modelled <= 1 || c.Ratio < 1.0/3 || c.Ratio > 3 {
				t.Errorf("prompt %d, chunk %d: %s is %.2f, measured %.2f", s.Prompt, s.Chunk, c.What, c.Modelled, c.Measured)
			}
		}
		if s.Plan.Overflow > r.Options.MostOverflow {
			t.Errorf("prompt %d, chunk %d: %v of the rows overflow", s.Prompt, s.Chunk, s.Plan.Overflow)
		}
	}
	if figures != 31 || len(r.Settings) != 6 {
		t.Errorf("%d figures of the paper in %d settings, want 31 in 6", figures, len(r.Settings))
	}
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"modelled", "naive by all, CPU cycles", "Table 4"} {
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

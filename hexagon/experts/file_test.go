package experts

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// smallPlan is a plan of 2 layers of 4 experts, of which a token takes 2.
func smallPlan() *Plan {
	p := &Plan{Kind: PlanKind, Shape: Shape{Model: "small", Layers: 2, Experts: 4, Chosen: 2, Hidden: 64, Width: 32},
		Chunk: 64, GroupSize: 2, Sizing: "tiers",
		Device: Device{Name: "small", Rows: 32, Costs: Costs{Launch: 0.2, Read: 60, Device: 6e3, Host: 100}}}
	for range 2 {
		p.Layers = append(p.Layers, Layer{Imbalance: 2, Base: 32, Busiest: 64, Tiers: []int{64, 32}, Groups: []Group{
			{Experts: []int{2, 0}, Capacity: 64, Placement: NPU, Bytes: 100, Expected: Expected{Rows: 100, Padding: 30, Overflow: 2}, Why: "hot"},
			{Experts: []int{1, 3}, Capacity: 32, Placement: CPU, Bytes: 100, Expected: Expected{Rows: 28, Padding: 36}, Why: "cold"},
		}})
	}
	return p
}

func TestAPlanThatWasWrittenIsReadAsItWas(t *testing.T) {
	want, err := json.Marshal(smallPlan())
	if err != nil {
		t.Fatal(err)
	}
	p, err := ReadPlan(bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	if have, _ := json.Marshal(p); !bytes.Equal(have, want) {
		t.Errorf("read %s\nwant %s", have, want)
	}
}

func TestABadPlanIsRefusedWithWhatIsWrong(t *testing.T) {
	for want, change := range map[string]func(p *Plan){
		"its kind is":                           func(p *Plan) { p.Kind = "another" },
		"3 of 2 experts are chosen":             func(p *Plan) { p.Shape.Chosen, p.Shape.Experts = 3, 2 },
		"0 layers of 4 experts":                 func(p *Plan) { p.Shape.Layers = 0 },
		"1024 layers of 4096 experts":           func(p *Plan) { p.Shape.Layers, p.Shape.Experts = 1024, 4096 },
		"experts of 64 by -1 numbers":           func(p *Plan) { p.Shape.Width = -1 },
		"it has 1 layers, want 2":               func(p *Plan) { p.Layers = p.Layers[:1] },
		"chunks of 0 tokens":                    func(p *Plan) { p.Chunk = 0 },
		"groups of 5 experts of 4":              func(p *Plan) { p.GroupSize = 5 },
		"multiples of 0 rows":                   func(p *Plan) { p.Device.Rows = 0 },
		"expert 3 is in no group":               func(p *Plan) { p.Layers[1].Groups[1].Experts = []int{1} },
		"expert 2 is in a group already":        func(p *Plan) { p.Layers[0].Groups[1].Experts = []int{1, 2} },
		"there is no expert 4 of 4":             func(p *Plan) { p.Layers[0].Groups[1].Experts = []int{1, 4} },
		"there is no expert -1 of 4":            func(p *Plan) { p.Layers[0].Groups[1].Experts = []int{1, -1} },
		"group 1: it has 0 experts":             func(p *Plan) { p.Layers[0].Groups[1].Experts = nil },
		"a capacity of 33 is not a multiple":    func(p *Plan) { p.Layers[0].Groups[0].Capacity = 33 },
		"a capacity of 96 is not a multiple":    func(p *Plan) { p.Layers[0].Groups[0].Capacity = 96 },
		"a capacity of 0 is not a multiple":     func(p *Plan) { p.Layers[0].Groups[0].Capacity = 0 },
		`the placement is "gpu"`:                func(p *Plan) { p.Layers[0].Groups[0].Placement = "gpu" },
		"it has 2 experts, more than 1":         func(p *Plan) { p.GroupSize = 1 },
		"101 bytes of weights are more than":    func(p *Plan) { p.Device.GroupBytes = 100; p.Layers[1].Groups[0].Bytes = 101 },
		"imbalance -1":                          func(p *Plan) { p.Layers[0].Imbalance = -1 },
		"3 tiers for 2 groups":                  func(p *Plan) { p.Layers[0].Tiers = []int{3, 2, 1} },
		"-1 expected rows":                      func(p *Plan) { p.Layers[0].Groups[0].Expected.Rows = -1 },
		"a reason of 2000 bytes":                func(p *Plan) { p.Layers[0].Groups[0].Why = strings.Repeat("a", 2000) },
		"a device's name of 1000 and source of": func(p *Plan) { p.Device.Name = strings.Repeat("a", 1000) },
	} {
		p := smallPlan()
		change(p)
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = ReadPlan(bytes.NewReader(text)); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), want) {
			t.Errorf("reading a plan with a fault gives %v, want %q", err, want)
		}
	}
}

func TestAFileThatIsNoPlanIsRefused(t *testing.T) {
	whole, err := json.Marshal(smallPlan())
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                    "EOF",
		"[]":                  "cannot unmarshal array",
		`{"capacity": 3}`:     `unknown field "capacity"`,
		string(whole) + "{}":  "something follows its JSON",
		string(whole[:100]):   "unexpected EOF",
		`{"kind": 1e400}`:     "cannot unmarshal number",
		`{"chunk": 1e30}`:     "cannot unmarshal number",
		`{"layers": [{}, 1]}`: "cannot unmarshal number",
		"null":                "its kind is",
	} {
		if _, err := ReadPlan(strings.NewReader(text)); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadPlan(%.60q) = %v, want %q", text, err, want)
		}
	}
}

func TestAPlanForAnotherModelSaysWhatDiffers(t *testing.T) {
	s := smallPlan().Shape
	other := s
	if other.Model = "renamed"; s.Fits(other) != nil {
		t.Errorf("Fits with another name = %v, want nil", s.Fits(other))
	}
	other.Experts = 8
	if err := s.Fits(other); err == nil || err.Error() != "it is for 4 experts a layer, and the model renamed has 8" {
		t.Errorf("Fits = %v", err)
	}
}

func FuzzReadingAPlan(f *testing.F) {
	p, _ := json.Marshal(smallPlan())
	f.Add(p)
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := ReadPlan(bytes.NewReader(text)); err == nil && p.Check() != nil {
			t.Error("a bad plan was read")
		}
	})
}

package calibration

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/experts"
)

// counted is a calibration of two layers of three experts, of which a token takes two. It has a prompt of 5 tokens and one
// of 2, in chunks of 2 and 4 tokens. steps are how many tokens are counted at a time.
func counted(t *testing.T, steps int) Set {
	t.Helper()
	c, err := NewCounter(experts.Shape{Model: "m", Layers: 2, Experts: 3, Chosen: 2, Hidden: 8, Width: 4}, []int{4, 2, 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, prompt := range [][]int32{{0, 1, 1, 0, 0, 2, 0, 1, 2, 0}, {1, 2, 1, 2}} {
		for layer := range 2 {
			for lo := 0; lo < len(prompt); lo += 2 * steps {
				part := slices.Clone(prompt[lo:min(len(prompt), lo+2*steps)])
				for i := range part {
					part[i] = (part[i] + int32(layer)) % 3
				}
				c.Add(layer, part)
			}
		}
		if err := c.End(); err != nil {
			t.Fatal(err)
		}
	}
	return c.Set("set")
}

func TestRowsAreCountedByChunkWhateverTheSteps(t *testing.T) {
	want := Set{Name: "set", Prompts: 2, Tokens: 7,
		Layers: []Loads{
			{Tokens: []int64{5, 5, 4}, Order: []int{0, 1, 2}, Imbalance: 15. / 14},
			{Tokens: []int64{4, 5, 5}, Order: []int{1, 2, 0}, Imbalance: 15. / 14},
		},
		Chunks: []Split{
			// The first layer's rows of experts 0, 1, 2: 2 2 0, 2 1 1, 1 0 1 | 0 2 2.
			{Size: 2, Count: 4, Layers: [][]Tallies{
				{{{1, 1}, {2, 2}}, {{1, 1}, {2, 2}}, {{1, 2}, {2, 1}}},
				{{{1, 2}, {2, 1}}, {{1, 1}, {2, 2}}, {{1, 1}, {2, 2}}},
			}},
			// 4 3 1, 1 0 1 | 0 2 2.
			{Size: 4, Count: 3, Layers: [][]Tallies{
				{{{1, 1}, {4, 1}}, {{2, 1}, {3, 1}}, {{1, 2}, {2, 1}}},
				{{{1, 2}, {2, 1}}, {{1, 1}, {4, 1}}, {{2, 1}, {3, 1}}},
			}},
		},
	}
	for steps := 1; steps < 7; steps++ {
		if got := counted(t, steps); !reflect.DeepEqual(got, want) {
			t.Errorf("%d tokens a step: %+v\nwant %+v", steps, got, want)
		}
	}
	list := want.Chunks[0].Layers[0][2]
	for capacity, beyond := range []int64{4, 1, 0, 0} {
		if got := list.Beyond(capacity); got != beyond {
			t.Errorf("beyond a capacity of %d: %d rows, want %d", capacity, got, beyond)
		}
	}
}

func TestAPromptThatLayersSawDifferentlyIsRefused(t *testing.T) {
	c, err := NewCounter(experts.Shape{Layers: 2, Experts: 3, Chosen: 1, Hidden: 8, Width: 4}, []int{4})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.End(); err == nil {
		t.Error("a prompt without tokens is counted")
	}
	c.Add(0, []int32{1, 1})
	c.Add(1, []int32{1})
	if err := c.End(); err == nil || !strings.Contains(err.Error(), "layer 1 had 1 tokens") {
		t.Errorf("End = %v", err)
	}
	for _, sizes := range [][]int{nil, {0}, {experts.MostChunk + 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}} {
		if _, err := NewCounter(experts.Shape{Layers: 1, Experts: 3, Chosen: 1, Hidden: 8, Width: 4}, sizes); !errors.Is(err, experts.ErrOptions) {
			t.Errorf("NewCounter with chunks of %v = %v", sizes, err)
		}
	}
}

func TestPopularExpertsOfTwoSetsOverlap(t *testing.T) {
	set := func(name string, tokens ...int64) *Set {
		return &Set{Name: name, Layers: []Loads{newLoads(tokens), newLoads(tokens[1:])}}
	}
	a, b := set("a", 9, 8, 7, 1, 1, 1), set("b", 1, 9, 8, 2, 7, 3)
	got := newOverlap(a, b, 2) // experts 0, 1 and 1, 2; then 0, 1 and 0, 1
	want := Overlap{First: "a", Other: "b", K: 2, Layers: []float64{0.5, 1}, Median: 0.75, Mean: 0.75, Covered: (10. + 17) / (30 + 29)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("overlap %+v, want %+v", got, want)
	}
}

func TestABadCalibrationIsRefusedWithWhatIsWrong(t *testing.T) {
	for want, change := range map[string]func(c *Calibration){
		"its kind is":                    func(c *Calibration) { c.Kind = experts.PlanKind },
		"4 of 3 experts are chosen":      func(c *Calibration) { c.Shape.Chosen = 4 },
		"it has 0 data sets":             func(c *Calibration) { c.Sets = nil },
		"it has 20 data sets":            func(c *Calibration) { c.Sets = make([]Set, 20) },
		"2 prompts of 0 tokens":          func(c *Calibration) { c.Sets[0].Tokens = 0 },
		"9 prompts of 7 tokens":          func(c *Calibration) { c.Sets[0].Prompts = 9 },
		"it has 1 layers, want 2":        func(c *Calibration) { c.Sets[0].Layers = c.Sets[0].Layers[:1] },
		"it has 0 sizes of chunks":       func(c *Calibration) { c.Sets[0].Chunks = nil },
		"layer 1: it has 2 experts":      func(c *Calibration) { c.Sets[0].Layers[1].Tokens = []int64{7, 7} },
		"-1 of 7 tokens chose expert 2":  func(c *Calibration) { c.Sets[0].Layers[0].Tokens = []int64{7, 7, -1} },
		"7 tokens made 15 choices":       func(c *Calibration) { c.Sets[0].Layers[0].Tokens = []int64{5, 5, 5} },
		"its order is not that of":       func(c *Calibration) { c.Sets[0].Layers[0].Order = []int{2, 1, 0} },
		"its imbalance is 3, want":       func(c *Calibration) { c.Sets[0].Layers[0].Imbalance = 3 },
		"chunks of 2 tokens follow":      func(c *Calibration) { c.Sets[0].Chunks[1].Size = 2 },
		"chunks of 0 tokens: the size":   func(c *Calibration) { c.Sets[0].Chunks[0].Size = 0 },
		"3 of them for 7 tokens":         func(c *Calibration) { c.Sets[0].Chunks[0].Count = 3 },
		"layer 0: it has 1 experts":      func(c *Calibration) { c.Sets[0].Chunks[0].Layers[0] = []Tallies{nil} },
		"2 chunks of 1 rows after":       func(c *Calibration) { c.Sets[0].Chunks[0].Layers[0][0] = Tallies{{2, 1}, {1, 2}} },
		"1 chunks of 3 rows after":       func(c *Calibration) { c.Sets[0].Chunks[0].Layers[0][0] = Tallies{{3, 1}} },
		"0 chunks of 1 rows after":       func(c *Calibration) { c.Sets[0].Chunks[0].Layers[0][0] = Tallies{{1, 0}} },
		"4 of 4 chunks have 5 rows":      func(c *Calibration) { c.Sets[0].Chunks[0].Layers[0][2] = Tallies{{1, 3}, {2, 1}} },
		"5 of 4 chunks have 6 rows":      func(c *Calibration) { c.Sets[0].Chunks[0].Layers[0][0] = Tallies{{1, 4}, {2, 1}} },
		"an overlap of the 9 most":       func(c *Calibration) { c.Overlaps = []Overlap{{K: 9}} },
		"an overlap of 2":                func(c *Calibration) { c.Overlaps = []Overlap{{K: 1, Layers: []float64{0, 2}}} },
		"it has 1000 overlaps":           func(c *Calibration) { c.Overlaps = make([]Overlap, 1000) },
		"a name of 1000 bytes":           func(c *Calibration) { c.Sets[0].Name = strings.Repeat("a", 1000) },
		"layer 1, expert 1: 9 chunks of": func(c *Calibration) { c.Sets[0].Chunks[0].Layers[1][1] = Tallies{{1, 9}} },
	} {
		c := &Calibration{Kind: Kind, Shape: experts.Shape{Layers: 2, Experts: 3, Chosen: 2, Hidden: 8, Width: 4}, Sets: []Set{counted(t, 3)}}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		change(c)
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = Read(bytes.NewReader(text)); !errors.Is(err, experts.ErrFile) || !strings.Contains(err.Error(), want) {
			t.Errorf("reading a calibration with a fault gives %v, want %q", err, want)
		}
	}
}

func FuzzReadingACalibration(f *testing.F) {
	f.Add([]byte(`{"kind":"lutra-experts-calibration","shape":{"layers":1,"experts":1,"chosen":1,"hidden":1,"width":1},"sets":[{"prompts":1,"tokens":1,"layers":[{"tokens":[1],"order":[0],"imbalance":1}],"chunks":[{"size":4,"count":1,"layers":[[[[1,1]]]]}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := Read(bytes.NewReader(text)); err == nil && c.Check() != nil {
			t.Error("a bad calibration was read")
		}
	})
}

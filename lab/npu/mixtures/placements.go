package mixtures

import (
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/lab/npu"
	"github.com/lutra-lm/lutra/lab/npu/calibration"
	"github.com/lutra-lm/lutra/lab/npu/moecost"
	"github.com/lutra-lm/lutra/lab/npu/planning"
)

// PlacementOptions say what is modelled.
type PlacementOptions struct {
	Machine      string  `json:"soc"`
	Prompts      []int   `json:"prompts"` // tokens
	Chunks       []int   `json:"chunks"`  // tokens
	Ratio        float64 `json:"ratio"`   // r of the assumed routing
	MostOverflow float64 `json:"most_overflow"`
}

// DefaultPlacementOptions returns the options of the paper's Figures 13 and 14.
func DefaultPlacementOptions() PlacementOptions {
	return PlacementOptions{Machine: "m2-ultra", Prompts: []int{1024, 4096}, Chunks: []int{256, 512, 1024}, Ratio: 2, MostOverflow: 0.22}
}

// Check reports what cannot be modelled.
func (o PlacementOptions) Check() error {
	const most = 1 << 17
	if len(o.Prompts) < 1 || len(o.Chunks) < 1 || len(o.Prompts) > 16 || len(o.Chunks) > 16 {
		return fmt.Errorf("%d prompts and %d chunks: want 1 to 16 of each", len(o.Prompts), len(o.Chunks))
	}
	if slices.Min(o.Prompts) < 1 || slices.Max(o.Prompts) > most {
		return fmt.Errorf("prompts of %v tokens are outside 1 to %d", o.Prompts, most)
	}
	if slices.Min(o.Chunks) < 1 || slices.Max(o.Chunks) > experts.MostChunk {
		return fmt.Errorf("chunks of %v tokens are outside 1 to %d", o.Chunks, experts.MostChunk)
	}
	if slices.Min(o.Chunks) > slices.Max(o.Prompts) {
		return fmt.Errorf("no chunk of %v is within a prompt of %v tokens", o.Chunks, o.Prompts)
	}
	if !(o.Ratio >= 1 && o.Ratio <= 64) {
		return fmt.Errorf("an imbalance of %v is outside 1 to 64", o.Ratio)
	}
	if !(o.MostOverflow >= 0 && o.MostOverflow <= 1) {
		return fmt.Errorf("an overflow of %v is outside 0 to 1", o.MostOverflow)
	}
	return nil
}

// PlacementReport is the object of `lutra-lab npu placements --json`: all of it modelled.
type PlacementReport struct {
	Kind    string           `json:"kind"` // "modelled"
	Model   moecost.Model    `json:"model"`
	Machine *moecost.Machine `json:"machine"`
	Options PlacementOptions `json:"options"`
	Routing string           `json:"routing"` // where it is from
	// Imbalance is the routing's r, a mean over layers.
	Imbalance float64   `json:"imbalance"`
	Settings  []Setting `json:"settings"`
}

// Setting is a prompt's length and the size of its chunks.
type Setting struct {
	Prompt int            `json:"prompt"`
	Chunk  int            `json:"chunk"`
	Plan   experts.Choice `json:"plan"` // of the placement "all"
	Costs  []moecost.Cost `json:"costs"`
}

// Place models a mixture under all placements, with the routing of a calibration, or
// an assumed one where c is nil.
func Place(mixture *npu.Mixture, c *calibration.Calibration, o PlacementOptions) (*PlacementReport, error) {
	m, err := moecost.Named(o.Machine)
	if err != nil {
		return nil, err
	}
	x := moecost.Model{Shape: mixture.Shape, Heads: mixture.Dense.Heads, KVHeads: mixture.Dense.KVHeads, HeadDim: mixture.Dense.HeadDim, Bits: m.Device.WeightBits}
	if x.Bits == 0 {
		x.Bits = mixture.Parts[0][0].Bits
	}
	r := &PlacementReport{Kind: "modelled", Model: x, Machine: m, Options: o}
	if c == nil {
		shape := x.Shape
		shape.Layers = 1 // all layers are alike but for which experts are popular
		if c, err = moecost.Assumed(shape, o.Ratio, 4, slices.Max(o.Prompts), o.Chunks); err != nil {
			return nil, err
		}
		c = repeat(c, x.Layers)
	}
	r.Routing = c.Sets[0].Name
	for _, l := range c.Sets[0].Layers {
		r.Imbalance += l.Imbalance / float64(len(c.Sets[0].Layers))
	}
	for _, prompt := range o.Prompts {
		for _, chunk := range o.Chunks {
			if chunk > prompt {
				continue
			}
			s, err := r.setting(c, mixture, prompt, chunk)
			if err != nil {
				return nil, err
			}
			r.Settings = append(r.Settings, s)
		}
	}
	return r, nil
}

// setting models a prompt in chunks of one size.
func (r *PlacementReport) setting(c *calibration.Calibration, x *npu.Mixture, prompt, chunk int) (Setting, error) {
	s := Setting{Prompt: prompt, Chunk: chunk}
	options := planning.Options{Shape: r.Model.Shape, Device: r.Machine.Device, ExpertBytes: x.ExpertBytes(r.Machine.Device), Reserved: x.DenseBytes(prompt)}
	plan, err := planning.Weigh(c, options, planning.Space{Chunks: []int{chunk}, MostOverflow: r.Options.MostOverflow})
	if err != nil {
		return s, err
	}
	s.Plan = plan.Choice
	set := &c.Sets[0]
	split := &set.Chunks[slices.IndexFunc(set.Chunks, func(x calibration.Split) bool { return x.Size == chunk })]
	for _, name := range hexagon.Placements() {
		p := hexagon.Placement(name)
		cost, err := r.Machine.Prefill(&r.Model, p, moecost.Work{Prompt: prompt, Plan: plan, Split: split})
		if err != nil {
			return s, err
		}
		s.Costs = append(s.Costs, cost)
	}
	return s, nil
}

// cost returns the cost of placement p.
func (s *Setting) cost(p hexagon.Placement) *moecost.Cost {
	return &s.Costs[slices.IndexFunc(s.Costs, func(c moecost.Cost) bool { return c.Placement == p })]
}

// repeat makes a calibration of one layer one of many.
func repeat(c *calibration.Calibration, layers int) *calibration.Calibration {
	out := *c
	out.Shape.Layers = layers
	out.Sets = slices.Clone(c.Sets)
	for i := range out.Sets {
		s := &out.Sets[i]
		s.Layers = slices.Repeat(s.Layers, layers)
		s.Chunks = slices.Clone(s.Chunks)
		for j := range s.Chunks {
			s.Chunks[j].Layers = slices.Repeat(s.Chunks[j].Layers, layers)
		}
	}
	return &out
}

package mixtures

import (
	"errors"
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/lab/npu"
	"github.com/lutra-lm/lutra/lab/npu/moecost"
	"github.com/lutra-lm/lutra/lab/npu/planning"
)

// others are the placements that NPUMoE is measured against.
var others = []hexagon.Placement{hexagon.PlacementCPU, hexagon.PlacementNaive, hexagon.PlacementAttention}

// beside returns the least and the most of a quantity of placements divided by PlacementAll's, over all settings.
func (r *PlacementReport) beside(of func(*moecost.Cost) float64, placements ...hexagon.Placement) (least, most float64) {
	least = math.Inf(1)
	for i := range r.Settings {
		best := of(r.Settings[i].cost(hexagon.PlacementAll))
		for _, p := range placements {
			x := of(r.Settings[i].cost(p)) / best
			least, most = min(least, x), max(most, x)
		}
	}
	return least, most
}

func seconds(c *moecost.Cost) float64 { return c.Seconds }
func joules(c *moecost.Cost) float64  { return c.Joules }

// stage is one of NPUMoE's ablations (§5.8): groups of so many experts, with capacities by a sizing, all of them on the NPU unless resident
// says that the plan chooses.
type stage struct {
	group    int
	sizing   planning.Sizing
	resident bool
}

// cost models a prompt of a report's first setting.
func (s stage) cost(r *PlacementReport, mixture *npu.Mixture) (moecost.Cost, error) {
	at := r.Settings[0]
	c, err := moecost.Assumed(shapeOfOne(r.Model.Shape), r.Options.Ratio, 4, at.Prompt, []int{at.Chunk})
	if err != nil {
		return moecost.Cost{}, err
	}
	c = repeat(c, r.Model.Layers)
	p, err := planning.New(c, planning.Options{Shape: r.Model.Shape, Device: r.Machine.Device, Chunk: at.Chunk, GroupSize: s.group, Sizing: s.sizing,
		ExpertBytes: mixture.ExpertBytes(r.Machine.Device), Reserved: mixture.DenseBytes(at.Prompt)})
	if err != nil {
		return moecost.Cost{}, err
	}
	for i := range p.Layers {
		for j := range p.Layers[i].Groups {
			if !s.resident {
				p.Layers[i].Groups[j].Placement = experts.NPU
			}
		}
	}
	return r.Machine.Prefill(&r.Model, hexagon.PlacementAll, moecost.Work{Prompt: at.Prompt, Plan: p, Split: &c.Sets[0].Chunks[0]})
}

// shapeOfOne returns the shape with a single layer. Layers of an assumed routing are alike.
func shapeOfOne(s experts.Shape) experts.Shape { s.Layers = 1; return s }

// remaining returns what else the paper's text has: Figure 8, ranges over models, its ablations and what a calibration foretells.
func remaining(phi, qwen *PlacementReport, mixture *npu.Mixture) (list []npu.Figure, err error) {
	add := func(where, what string, low, high, modelled float64, kind npu.Kind, note string) {
		f := npu.NewFigure("NPUMoE", where, what, low, high, modelled)
		f.Kind, f.Note = kind, note
		list = append(list, f)
	}
	const unnamed, decodes = "what ran is not named: Phi-3.5-MoE, 1024 in chunks of 256, `naive` and `cpu`", "with 8 tokens decoded; modelled is the prompt alone"
	first := &phi.Settings[0]
	naive, cpu := first.cost(hexagon.PlacementNaive), first.cost(hexagon.PlacementCPU)
	add("Figure 8", "CPU alone, s", 1.45, 1.45, cpu.Seconds, npu.Missing, unnamed)
	add("Figure 8", "CPU and NPU, s", 2.66, 2.66, naive.Seconds, npu.Missing, unnamed)
	add("Figure 8", "CPU and NPU by CPU alone", 2.66/1.45, 2.66/1.45, naive.Seconds/cpu.Seconds, npu.HeldOut, unnamed)
	launching := naive.Launches*phi.Machine.Device.Costs.Launch/1e3 + naive.Loading
	add("§1, §5.3", "share of launching graphs, at worst", 0.6, 1, launching/naive.Seconds, npu.Inequality, "launches and loads of `naive`")

	o := DefaultPlacementOptions()
	o.Machine = "m2-max"
	small, _ := npu.ShapeMixture("phi-tiny-moe")
	tiny, err := Place(small, nil, o)
	if err != nil {
		return nil, err
	}
	const placements = "the placements are not named: `cpu` and `attention`"
	for _, x := range []struct {
		what        string
		of          func(*moecost.Cost) float64
		least, most float64
	}{{"time", seconds, 1.11, 1.87}, {"energy", joules, 1.70, 2.68}} {
		least, most := tiny.beside(x.of, hexagon.PlacementCPU, hexagon.PlacementAttention)
		add("§5.2", "phi-tiny-moe on M2 Max, least "+x.what+" of others by `all`", x.least, x.least, least, npu.HeldOut, placements)
		add("§5.2", "phi-tiny-moe on M2 Max, most "+x.what+" of others by `all`", x.most, x.most, most, npu.HeldOut, placements)
	}
	for _, x := range []struct {
		what                  string
		of                    func(*moecost.Cost) float64
		naive, cpu, attention float64
		where                 string
	}{{"time", seconds, 3.86, 1.26, 1.19, "§5.2, §5.3"}, {"energy", joules, 3.89, 1.84, 1.95, "§5.2, §5.4"}} {
		for i, measured := range []float64{x.cpu, x.naive, x.attention} {
			modelled, _ := qwen.beside(x.of, others[i])
			add(x.where, fmt.Sprintf("qwen3-30b-a3b, end to end: %s of `%s` by `all`", x.what, others[i]), measured, measured, modelled, npu.Missing, decodes)
		}
	}
	least, most := phi.beside(seconds, hexagon.PlacementNaive) // memory has one power
	add("§5.4", "phi-3.5-moe, energy of memory of `naive` by `all`, least", 4.44, 4.44, least, npu.HeldOut, "")
	add("§5.4", "phi-3.5-moe, energy of memory of `naive` by `all`, most", 5.69, 5.69, most, npu.HeldOut, "")
	last := &phi.Settings[len(phi.Settings)-1]
	add("§5.8", "phi-3.5-moe, 4096 in chunks of 1024: least time of others by `all`", 1.44, 1.44, last.cost(hexagon.PlacementAttention).Seconds/last.cost(hexagon.PlacementAll).Seconds, npu.HeldOut, "§5.3 has 1.56")

	group := first.Plan.GroupSize
	tiers := planning.Sizing{Headroom: 1}
	base, err1 := stage{1, planning.Sizing{Uniform: 128}, false}.cost(phi, mixture)
	tiered, err2 := stage{1, tiers, false}.cost(phi, mixture)
	grouped, err3 := stage{group, tiers, false}.cost(phi, mixture)
	resident, err4 := stage{group, tiers, true}.cost(phi, mixture)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	const ablation = "model, prompt and chunk are not named: Phi-3.5-MoE, 1024 in chunks of 256; its fixed capacity is taken to be 128"
	add("§5.8", "graphs of one expert and one capacity by all techniques, time", 2.89, 2.89, base.Seconds/resident.Seconds, npu.HeldOut, ablation)
	add("§5.8", "tiers and groups by all techniques, time", 1.09, 1.09, grouped.Seconds/resident.Seconds, npu.HeldOut, ablation)
	add("§5.8", "graphs of one expert and one capacity by tiers and groups, energy", 3.74, 3.74, base.Joules/grouped.Joules, npu.HeldOut, ablation)
	add("§5.8", "tiers by tiers and groups, energy", 1.31, 1.31, tiered.Joules/grouped.Joules, npu.HeldOut, ablation)
	add("§5.8", "tiers and groups, energy", 998.4, 998.4, 0, npu.Missing, "its unit is not named")
	add("§5.8", "graphs of a layer without groups", 16, 16, float64(phi.Model.Experts), npu.Derived, "the model's experts")
	add("§5.8", "share of padded tokens", 0.3535, 0.3535, first.Plan.Padding, npu.HeldOut, "routing is assumed; so is the chunk of 256")
	add("§5.8", "CPU cycles with padding, by those without", 1.25, 1.36, 0, npu.Missing, "")
	add("§5.8", "time with padding, by that without", 1.27, 1.29, 0, npu.Missing, "")
	const routing = "routing is assumed, not traced"
	for _, x := range []struct {
		what  string
		share float64
	}{{"of the 4 busiest experts, foretold in prompts", .86}, {"of the 8 busiest experts, foretold in prompts", .94}, {"of busy experts, foretold by other texts in prompts", .652}, {"of busy experts, foretold by other texts in decoding", .77}} {
		add("§5.8", "phi-3.5-moe, share "+x.what, x.share, x.share, 0, npu.Missing, routing)
	}
	for _, x := range []struct {
		what      string
		low, high float64
	}{{"time of the NPU by a GPU's", 1.26, 5.4}, {"energy of a GPU by the NPU's", 1.87, 4.48}, {"power of a GPU by the NPU's", 5.65, 9.41}} {
		add("§5.8", x.what, x.low, x.high, 0, npu.Missing, "Tables 8 and 9")
	}
	return list, nil
}

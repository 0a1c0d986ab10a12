package mixtures

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/lab/npu"
)

// figure is by how much a placement needs more than "all", as NPUMoE measured on M2 Ultra.
type figure struct {
	model         string
	prompt, chunk int
	placement     hexagon.Placement
	seconds       float64 // time to the first token; 0: not in the text
	joules        float64
	cycles        float64
	where         string
}

// measured are the figures of the paper's text; those in drawings alone are not here. For
// Qwen3 it names no chunk: 256 is taken.
var measured = []figure{
	{"phi-3.5-moe", 1024, 256, hexagon.PlacementCPU, 2.07, 2.01, 3.78, "§5.3, §5.8, §5.5"},
	{"phi-3.5-moe", 1024, 256, hexagon.PlacementNaive, 5.55, 6.30, 3.61, "§5.3, §5.8, §5.5"},
	{"phi-3.5-moe", 1024, 256, hexagon.PlacementAttention, 1.95, 0, 2.98, "§5.3, §5.5"},
	{"phi-3.5-moe", 1024, 512, hexagon.PlacementCPU, 1.32, 3.19, 2.45, "§5.3, §5.4, §5.5"},
	{"phi-3.5-moe", 1024, 512, hexagon.PlacementNaive, 3.44, 7.37, 3.20, "§5.3, §5.4, §5.5"},
	{"phi-3.5-moe", 1024, 512, hexagon.PlacementAttention, 1.33, 3.43, 1.78, "§5.3, §5.4, §5.5"},
	{"phi-3.5-moe", 4096, 512, hexagon.PlacementCPU, 1.58, 1.81, 0, "§5.3, §5.4"},
	{"phi-3.5-moe", 4096, 512, hexagon.PlacementNaive, 3.85, 4.71, 0, "§5.3, §5.4"},
	{"phi-3.5-moe", 4096, 512, hexagon.PlacementAttention, 1.50, 1.86, 0, "§5.3, §5.4"},
	{"phi-3.5-moe", 4096, 1024, hexagon.PlacementCPU, 1.72, 2.30, 0, "§5.3, §5.4"},
	{"phi-3.5-moe", 4096, 1024, hexagon.PlacementNaive, 3.70, 5.23, 5.54, "§5.3, §5.4, §5.5"},
	{"phi-3.5-moe", 4096, 1024, hexagon.PlacementAttention, 1.56, 2.49, 2.21, "§5.3, §5.4, §5.5"},
	{"qwen3-30b-a3b", 1024, 256, hexagon.PlacementCPU, 1.99, 3.33, 0, "Tables 6, 7"},
	{"qwen3-30b-a3b", 1024, 256, hexagon.PlacementAttention, 2.00, 3.19, 0, "Tables 6, 7"},
}

// Figures returns what NPUMoE's text has of M2 Ultra, beside what is modelled with assumed
// routing.
func Figures() ([]npu.Figure, error) {
	phi, _ := npu.ShapeMixture("phi-3.5-moe")
	qwen, _ := npu.ShapeMixture("qwen3-30b-a3b")
	o := DefaultPlacementOptions()
	all, err1 := Place(phi, nil, o)
	o.Prompts, o.Chunks = []int{1024}, []int{256}
	one, err2 := Place(qwen, nil, o)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	reports := map[string]*PlacementReport{"phi-3.5-moe": all, "qwen3-30b-a3b": one}
	list, err := blocks(all)
	if err != nil {
		return nil, err
	}
	list = append(list, wholes(one)...)
	for _, f := range measured {
		r := reports[f.model]
		i := slices.IndexFunc(r.Settings, func(s Setting) bool { return s.Prompt == f.prompt && s.Chunk == f.chunk })
		s := &r.Settings[i]
		c, best := s.cost(f.placement), s.cost(hexagon.PlacementAll)
		first := f.prompt == 1024 && f.model == "phi-3.5-moe" // constants of the CPU are fitted to these
		for _, x := range []struct {
			what              string
			paper, mine, best float64
			fitted            bool
		}{
			{"time", f.seconds, c.Seconds, best.Seconds, first && f.placement == hexagon.PlacementCPU},
			{"energy", f.joules, c.Joules, best.Joules, f.model == "qwen3-30b-a3b"}, // Table 7 chose all powers
			{"CPU cycles", f.cycles, c.Cycles, best.Cycles, first},
		} {
			if x.paper > 0 {
				what := fmt.Sprintf("%s, %d in chunks of %d: %s of `%s` by `all`", f.model, f.prompt, f.chunk, x.what, f.placement)
				g := npu.NewFigure("NPUMoE", f.where, what, x.paper, x.paper, x.mine/x.best)
				if g.Kind = kind(x.fitted); f.where == "Tables 6, 7" && !x.fitted {
					g.Kind = npu.Derived // of the times of wholes
				}
				list = append(list, g)
			}
		}
	}
	return list, nil
}

func kind(fitted bool) npu.Kind {
	if fitted {
		return npu.Fitted
	}
	return npu.HeldOut
}

// blocks returns the figures of a single layer of a report's first setting: Tables 4 and 5.
func blocks(r *PlacementReport) (list []npu.Figure, err error) {
	add := func(what, where string, measured, modelled float64, fitted bool) {
		f := npu.NewFigure("NPUMoE", where, what, measured, measured, modelled)
		f.Kind = kind(fitted)
		list = append(list, f)
	}
	for _, p := range []struct {
		placement hexagon.Placement
		ms        float64
		fitted    bool
	}{{hexagon.PlacementCPU, 969.53, true}, {hexagon.PlacementNaive, 3369.86, true}, {hexagon.PlacementAll, 530.91, false}} {
		c := r.Settings[0].cost(p.placement)
		add(fmt.Sprintf("experts of a layer, `%s`, ms", p.placement), "Table 4", p.ms, 1e3*(c.Experts+c.Loading)/float64(r.Model.Layers-1), p.fitted)
	}
	// Scattering and adding of rows, which take half of what the paper's blocks take, are copies here; ANEMLL's experts are
	// on the CPU.
	for _, p := range []struct {
		placement hexagon.Placement
		ms        float64
	}{{hexagon.PlacementCPU, 2315.83}, {hexagon.PlacementNaive, 4706.42}, {hexagon.PlacementAttention, 2330.87}, {hexagon.PlacementAll, 2165.46}} {
		c := r.Settings[0].cost(p.placement)
		add(fmt.Sprintf("block of experts, `%s`, end to end, ms", p.placement), "Table 4", p.ms, 1e3*(c.Experts+c.Loading+c.Copies)/float64(r.Model.Layers-1), false)
	}
	anemll := r.Settings[0].cost(hexagon.PlacementAttention)
	add("experts of a layer, `attention`, ms", "Table 4", 983.05, 1e3*(anemll.Experts+anemll.Loading)/float64(r.Model.Layers-1), false)
	for _, t := range []struct {
		group, capacity int
		ms              float64
	}{{1, 32, .31}, {1, 64, .23}, {1, 128, .16}, {4, 32, .27}, {4, 64, .19}, {8, 32, .26}, {8, 64, .18}, {8, 96, .15}, {8, 128, .14}, {8, 192, .15}, {8, 256, .16}} {
		row, err := r.Machine.Row(&r.Model, t.group, t.capacity)
		if err != nil {
			return nil, err
		}
		add(fmt.Sprintf("a row of %d experts with room for %d, ms", t.group, t.capacity), "Table 5", t.ms, 1e3*row, t.capacity <= 128)
	}
	return list, nil
}

// wholes returns the figures of Qwen3 in seconds and joules: Tables 6 and 7. The paper does not name the prompt, for which
// 1024 tokens are taken.
func wholes(r *PlacementReport) (list []npu.Figure) {
	for _, t := range []struct {
		placement                           hexagon.Placement
		seconds, experts, attention, joules float64
	}{{hexagon.PlacementAll, 0.572, 0.464, 0.086, 3.80}, {hexagon.PlacementCPU, 1.139, 0.978, 0.095, 12.67}, {hexagon.PlacementAttention, 1.144, 0.988, 0.090, 12.13}} {
		c := r.Settings[0].cost(t.placement)
		for _, x := range []struct {
			what, where    string
			measured, mine float64
		}{{"s", "Table 6", t.seconds, c.Seconds}, {"experts, s", "Table 6", t.experts, c.Experts + c.Loading}, {"attention, s", "Table 6", t.attention, c.Attention}, {"J", "Table 7", t.joules, c.Joules}} {
			f := npu.NewFigure("NPUMoE", x.where, fmt.Sprintf("qwen3-30b-a3b, a prompt, `%s`, %s", t.placement, x.what), x.measured, x.measured, x.mine)
			f.Kind, f.Note = kind(x.what == "J"), "a prompt of 1024 tokens is taken" // Table 7 chose all powers
			list = append(list, f)
		}
	}
	return list
}

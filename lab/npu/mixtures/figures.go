package mixtures

import (
	"errors"
	"fmt"
	"math"
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
	rest, err := remaining(all, one, phi)
	if err != nil {
		return nil, err
	}
	list = append(list, rest...)
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
	add := func(what, where string, measured, modelled float64, kind npu.Kind, note string) {
		f := npu.NewFigure("NPUMoE", where, what, measured, measured, modelled)
		f.Kind, f.Note = kind, note
		list = append(list, f)
	}
	const experts, copies = "the experts are on the CPU, as `cpu`'s", "as `cpu`'s: the model copies the same rows"
	layers := float64(r.Model.Layers - 1)
	for _, p := range []struct {
		placement                                        hexagon.Placement
		gather, padding, experts, scatter, residual, end float64
		ofExperts, ofCopies                              npu.Kind
		noteOfExperts, noteOfCopies                      string
	}{
		{hexagon.PlacementCPU, 3.62, 0, 969.53, 901.06, 440.62, 2315.83, npu.Fitted, npu.HeldOut, "", ""},
		{hexagon.PlacementNaive, 1.95, 1.62, 3369.86, 896.76, 435.23, 4706.42, npu.Fitted, npu.Derived, "", copies},
		{hexagon.PlacementAttention, 3.73, 0, 983.05, 902.87, 440.22, 2330.87, npu.Derived, npu.Derived, experts, copies},
		{hexagon.PlacementAll, 1.24, 0.37, 530.91, 775.52, 398.34, 2165.46, npu.HeldOut, npu.HeldOut, "", ""},
	} {
		c := r.Settings[0].cost(p.placement)
		what := func(row string) string { return fmt.Sprintf("block of experts, `%s`, %s, ms", p.placement, row) }
		// Of the bytes that copies move, a gather has 4 of 16, a write back as many, and the addition in float32 the rest.
		ms, copied := 1e3*(c.Experts+c.Loading)/layers, 1e3*c.Copies/layers
		add(what("experts"), "Table 4", p.experts, ms, p.ofExperts, p.noteOfExperts)
		add(what("gather"), "Table 4", p.gather, copied/4, p.ofCopies, p.noteOfCopies)
		add(what("scatter"), "Table 4", p.scatter, copied/4, p.ofCopies, p.noteOfCopies)
		add(what("residual addition"), "Table 4", p.residual, copied/2, p.ofCopies, p.noteOfCopies)
		add(what("router"), "Table 4", 1, 0, npu.Missing, "")
		if p.padding > 0 {
			add(what("padding"), "Table 4", p.padding, 0, npu.Missing, "")
		}
		add(what("end to end"), "Table 4", p.end, ms+copied, npu.Derived, "the sum of its rows")
	}
	const queue = "the model's launches are one after the other"
	power := r.Machine.NPUPower.Value + r.Machine.WaitPower.Value + r.Machine.MemoryPower.Value
	for _, t := range []struct {
		group, capacity            int
		ms, joules, beside, theirs float64 // one after the other, and side by side
	}{
		{1, 32, .31, 1.43, .13, .99}, {1, 64, .23, 1.17, .08, .62}, {1, 128, .16, .89, .07, 1.66}, {4, 32, .27, 1.22, .14, 1.00}, {4, 64, .19, .98, .10, .94},
		{8, 32, .26, 1.16, .15, .97}, {8, 64, .18, .93, .11, .79}, {8, 96, .15, .88, .10, .85}, {8, 128, .14, .96, .10, .74}, {8, 192, .15, .92, .15, .96}, {8, 256, .16, .99, .16, .98},
	} {
		row, err := r.Machine.Row(&r.Model, t.group, t.capacity)
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("a row of %d experts with room for %d, ", t.group, t.capacity)
		add(what+"ms", "Table 5", t.ms, 1e3*row, kind(t.capacity <= 128), "")
		add(what+"mJ", "Table 5", t.joules, 1e3*row*power, npu.HeldOut, "Table 7 chose all powers")
		add(what+"in parallel, ms", "Table 5", t.beside, 1e3*row, npu.Missing, queue)
		add(what+"in parallel, mJ", "Table 5", t.theirs, 1e3*row*power, npu.Missing, queue)
	}
	const shapes = "a graph of several shapes; the rows are not named"
	add("a row of an expert with room for 1 to 512, ms", "Table 5", .25, 0, npu.Missing, shapes)
	add("a row of an expert with room for 1 to 512, mJ", "Table 5", 1.96, 0, npu.Missing, shapes)
	// The sizes of what Tables 8 and 9 measure are not named; a GPU is not modelled.
	const sizes = "sizes are not named: a layer of Phi-3.5-MoE, a prompt of 1024 in chunks of 256"
	c, chunks := r.Settings[0].cost(hexagon.PlacementAll), 4.0
	attention, block := c.Attention/float64(r.Model.Layers)/chunks, c.Seconds/layers
	add("a kernel of attention, NPU, ms", "Table 8", 38.27, 1e3*attention, npu.Missing, sizes)
	add("a kernel of attention, NPU, mJ", "Table 8", 275.70, 1e3*attention*power, npu.Missing, sizes)
	add("a kernel of attention, NPU, W", "Table 8", 7.10, power, npu.HeldOut, "Table 7 chose all powers")
	add("attention and experts, s", "Table 9", 1.26, block, npu.Missing, sizes)
	add("attention and experts, J", "Table 9", 12.21, c.Joules/layers, npu.Missing, sizes)
	add("attention and experts, W", "Table 9", 9.61, c.Joules/c.Seconds, npu.HeldOut, "Table 7 chose all powers")
	for _, g := range []struct {
		what, where string
		measured    float64
	}{{"a kernel of attention, GPU, ms", "Table 8", 7.09}, {"a kernel of attention, GPU, mJ", "Table 8", 515.60}, {"a kernel of attention, GPU, W", "Table 8", 66.80},
		{"attention and experts, GPU, s", "Table 9", 0.99}, {"attention and experts, GPU, J", "Table 9", 54.72}, {"attention and experts, GPU, W", "Table 9", 54.29}} {
		add(g.what, g.where, g.measured, 0, npu.Missing, "")
	}
	cpu := r.Settings[0].cost(hexagon.PlacementCPU)
	add("attention, the NPU's time by the CPU's", "§5.3", 1.276, c.Attention/cpu.Attention, npu.HeldOut, "")
	least, most := math.Inf(1), 0.0
	for i := range r.Settings {
		j := 1e3 * r.Settings[i].cost(hexagon.PlacementAll).PerToken
		least, most = min(least, j), max(most, j)
	}
	add("phi-3.5-moe, least energy of a token, mJ", "§5.4", 52, least, npu.HeldOut, "")
	add("phi-3.5-moe, most energy of a token, mJ", "§5.4", 137, most, npu.HeldOut, "")
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
			f.Kind, f.Note = npu.HeldOut, "a prompt of 1024 tokens is taken"
			switch {
			case x.what == "J": // which chose all powers
				f.Kind = npu.Fitted
			case x.what == "s" || t.placement == hexagon.PlacementAttention: // the sum of its parts; and the parts are another placement's
				f.Kind = npu.Derived
			}
			list = append(list, f)
		}
	}
	return list
}

package moecost

import (
	"math"
	"testing"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/lab/npu/planning"
)

// small is a mixture of the shape of Phi-3.5-MoE with few layers.
func small() Model {
	return Model{Shape: experts.Shape{Model: "small", Layers: 3, Experts: 16, Chosen: 2, Hidden: 4096, Width: 6400}, Heads: 32, KVHeads: 8, HeadDim: 128, Bits: 16}
}

func machine(t *testing.T, id string) *Machine {
	t.Helper()
	m, err := Named(id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func work(t *testing.T, x Model, m *Machine, prompt int, sizing planning.Sizing) Work {
	t.Helper()
	c, err := Assumed(x.Shape, 2, 2, prompt, []int{256})
	if err != nil {
		t.Fatal(err)
	}
	bytes := make([]int64, x.Layers)
	for i := range bytes {
		bytes[i] = x.ExpertBytes()
	}
	p, err := planning.New(c, planning.Options{Shape: x.Shape, Device: m.Device, Chunk: 256, GroupSize: 4, Sizing: sizing, ExpertBytes: bytes})
	if err != nil {
		t.Fatal(err)
	}
	return Work{Prompt: prompt, Plan: p, Split: &c.Sets[0].Chunks[0]}
}

func prefill(t *testing.T, m *Machine, x Model, p hexagon.Placement, w Work) Cost {
	t.Helper()
	c, err := m.Prefill(&x, p, w)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheFittedRowsAreThoseOfTheirTables(t *testing.T) {
	m, x := machine(t, "m2-ultra"), small()
	near := func(what string, got, want, within float64) {
		t.Helper()
		if math.Abs(got/want-1) > within {
			t.Errorf("%s: %.4g, the paper has %.4g", what, got, want)
		}
	}
	// NPUMoE, Table 5, serial execution: ms a row for 16 experts in groups of G with C rows.
	for _, f := range []struct {
		group, capacity int
		ms              float64
	}{{1, 32, 0.31}, {1, 64, 0.23}, {1, 128, 0.16}, {4, 32, 0.27}, {4, 64, 0.19}, {8, 32, 0.26}, {8, 64, 0.18}, {8, 128, 0.14}} {
		row, err := m.Row(&x, f.group, f.capacity)
		if err != nil {
			t.Fatal(err)
		}
		near("a row", 1e3*row, f.ms, 0.1)
	}
	// Table 4: the 2048 rows of a prompt of 1024 tokens on the CPU, in four chunks.
	near("rows on the CPU", 2048*m.hostRow(&x)+4*16*m.hostRead(&x), 0.970, 0.05)
}

func TestAPlanTakesLessThanOtherPlacements(t *testing.T) {
	x := small()
	for _, id := range planning.Devices() {
		m, x := machine(t, id), x
		if m.Device.WeightBits == 0 {
			x.Bits = 4
		}
		w := work(t, x, m, 1024, planning.Sizing{Headroom: 1})
		best := prefill(t, m, x, hexagon.PlacementAll, w)
		for _, p := range []hexagon.Placement{hexagon.PlacementCPU, hexagon.PlacementNaive, hexagon.PlacementAttention} {
			if c := prefill(t, m, x, p, w); c.Seconds <= best.Seconds || c.Cycles <= best.Cycles {
				t.Errorf("%s: %s takes %.3g s and %.3g cycles, a plan %.3g and %.3g", id, p, c.Seconds, c.Cycles, best.Seconds, best.Cycles)
			}
		}
	}
}

func TestCostsAddUp(t *testing.T) {
	m, x := machine(t, "m2-ultra"), small()
	w := work(t, x, m, 1024, planning.Sizing{Uniform: 64})
	for _, name := range hexagon.Placements() {
		p := hexagon.Placement(name)
		c := prefill(t, m, x, p, w)
		if sum := c.Attention + c.Experts + c.Loading + c.Copies; math.Abs(c.Seconds-sum) > 1e-9 {
			t.Errorf("%s: %v s of %v", p, c.Seconds, sum)
		}
		if c.CPU+c.Loading > c.Seconds+1e-9 || c.NPU > c.Seconds+1e-9 {
			t.Errorf("%s: a unit is busy longer than it takes: %+v", p, c)
		}
		if p == hexagon.PlacementCPU && (c.Launches != 0 || c.NPU != 0) {
			t.Errorf("%s uses the NPU: %+v", p, c)
		}
		if c.PerToken*1024 != c.Joules {
			t.Errorf("%s: %v J a token, %v in all", p, c.PerToken, c.Joules)
		}
		groups := 0.0
		for i := range x.Layers - 1 { // the last is the CPU's
			for _, g := range w.Plan.Layers[i].Groups {
				if g.Placement == experts.NPU {
					groups++
				}
			}
		}
		if want := 4 * (groups + float64(x.Layers)); p == hexagon.PlacementAll && c.Launches != want { // 4 chunks
			t.Errorf("%v launches, want %v", c.Launches, want)
		}
	}
	if one, two := prefill(t, m, x, hexagon.PlacementAll, w), prefill(t, m, x, hexagon.PlacementAll, Work{2048, w.Plan, w.Split}); math.Abs(two.NPU/one.NPU-2) > 0.1 {
		t.Errorf("the NPU is busy %v times as long with twice the prompt", two.NPU/one.NPU)
	}
}

func TestWhatCannotBeModelledIsRefused(t *testing.T) {
	m, x := machine(t, "m2-ultra"), small()
	w := work(t, x, m, 1024, planning.Sizing{Uniform: 64})
	other, bits := x, x
	other.Experts, bits.Bits = 8, 3
	for what, f := range map[string]func() error{
		"no placement":    func() error { _, err := m.Prefill(&x, "moon", w); return err },
		"no prompt":       func() error { _, err := m.Prefill(&x, hexagon.PlacementAll, Work{0, w.Plan, w.Split}); return err },
		"another model":   func() error { _, err := m.Prefill(&other, hexagon.PlacementAll, w); return err },
		"no such weights": func() error { _, err := m.Prefill(&bits, hexagon.PlacementAll, w); return err },
		"other chunks": func() error {
			s := *w.Split
			s.Size = 512
			_, err := m.Prefill(&x, hexagon.PlacementAll, Work{1024, w.Plan, &s})
			return err
		},
		"no machine": func() error { _, err := Named("abacus"); return err },
	} {
		if f() == nil {
			t.Errorf("%s: modelled", what)
		}
	}
}

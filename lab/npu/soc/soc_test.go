package soc

import (
	"math"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/layout"
)

func machine(t *testing.T, id string) *Machine {
	t.Helper()
	c, err := Named(id)
	if err != nil {
		t.Fatal(err)
	}
	return NewMachine(c)
}

func TestEveryConstantHasASourceAndAUnit(t *testing.T) {
	for _, c := range Chips() {
		for _, n := range c.Numbers() {
			switch n.Source {
			case TMan, Scaling, Others, Emulated, Fitted, Assumed:
			default:
				t.Errorf("%s, %s: no source", c.Name, n.Name)
			}
			if !(n.Value > 0) || n.Unit == "" || n.Note == "" {
				t.Errorf("%s, %s: %+v", c.Name, n.Name, n.Number)
			}
			if measured := n.Source == TMan || n.Source == Scaling; measured && c.ID != "8gen3" && n.Name != "TCM" && n.Name != "addresses" {
				t.Errorf("%s, %s: the papers measured 8 Gen 3 alone", c.Name, n.Name)
			}
		}
	}
}

// Nothing is fitted to these rates.
func TestModelledTimesAreNotFarFromWhatThePapersMeasure(t *testing.T) {
	m, x := machine(t, "8gen3"), bitnet
	c := m.Decode(&x, 1, 1024)
	if got := 1 / c.Seconds; got < 49.1 || got > 1.8*49.1 {
		t.Errorf("decode is modelled as %.1f tokens/s; T-MAN measures 49.1", got)
	}
	c = m.Prefill(&x, 1024)
	measured := 5.01 / 0.0080 // with attention that has no kernel of its own
	if got := 1024 / c.Seconds; got < measured || got > 2.5*measured {
		t.Errorf("prefill is modelled as %.0f tokens/s; T-MAN measures %.0f", got, measured)
	}
}

func TestMoreWorkNeverTakesLess(t *testing.T) {
	m, x := machine(t, "8gen3"), bitnet
	last := 0.0
	for batch := 1; batch <= 64; batch++ {
		c := m.Decode(&x, batch, 512)
		if c.Seconds < last-1e-12 {
			t.Errorf("a batch of %d takes %v s, one less %v", batch, c.Seconds, last)
		}
		last = c.Seconds
	}
	short := m.Decode(&x, 4, 128)
	long := m.Decode(&x, 4, 4096)
	if long.Seconds <= short.Seconds {
		t.Error("a longer context is free")
	}
}

func TestBatchesMoveFromLookupToTheTileUnit(t *testing.T) {
	m, x := machine(t, "8gen3"), bitnet
	few := hexagon.LookupRows(layout.Ternary, false)
	if last, next := m.Path(x.Matrices[2], few), m.Path(x.Matrices[2], few+1); last != ByLookup || next != ByTiles {
		t.Errorf("%d rows by %s, one more by %s", few, last, next)
	}
	one := m.Decode(&x, 1, 512)
	sixteen := m.Decode(&x, 16, 512)
	if sixteen.Seconds > 8*one.Seconds {
		t.Errorf("sixteen rows take %.1f times one row's time", sixteen.Seconds/one.Seconds)
	}
}

func TestAPipelineIsAtLeastAsFastAsItsParts(t *testing.T) {
	m := machine(t, "8gen3")
	x := Matrix{Name: "w", M: 4096, K: 4096, Bits: 4, Group: 64, Offsets: true, Count: 1}
	over, err := m.Tiled(x, 128, true)
	if err != nil {
		t.Fatal(err)
	}
	apart, err := m.Tiled(x, 128, false)
	if err != nil {
		t.Fatal(err)
	}
	slowest := max(over.DMA, over.Vector, over.Tiles)
	if over.Seconds < slowest || apart.Seconds < over.Seconds || math.Abs(apart.Seconds-(over.DMA+over.Vector+over.Tiles)) > 1e-9 {
		t.Errorf("overlapped %v, apart %v, slowest part %v", over.Seconds, apart.Seconds, slowest)
	}
}

func TestTCMRegionsDoNotOverlapAndFit(t *testing.T) {
	m := machine(t, "8gen3")
	for _, x := range []Matrix{{M: 4096, K: 14336, Bits: 4, Group: 64}, {M: 256, K: 256, Bits: 2, Group: 256}, {M: 6912, K: 2560, Bits: 2, Group: 2560}, {M: 151936, K: 4096, Bits: 4, Group: 64}} {
		l, err := m.Plan(x, 128)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, r := range l.Regions {
			if r.Begin < at || r.Bytes < 1 {
				t.Errorf("%+v: region %+v begins before %d", x, r, at)
			}
			at = r.Begin + r.Bytes
		}
		if at > int(m.TCM.Value) || l.Free < 0 {
			t.Errorf("%+v takes %d bytes", x, at)
		}
	}
}

func TestSlowerRoutesTakeLonger(t *testing.T) {
	m, x := machine(t, "8gen3"), Matrix{M: 4096, K: 4096, Bits: 4, Group: 64}
	last := 0.0
	for _, r := range Routes() {
		m.Route = Route(r)
		if c := m.Lookup(x, 1); c.DMA <= last {
			t.Errorf("by %s: %v s, want more than %v", r, c.DMA, last)
		} else {
			last = c.DMA
		}
	}
}

// What a plan says of BitNet-2B is what executed.
func TestStepsOfTheModelThatExecutedAreScaledByOne(t *testing.T) {
	m, x := machine(t, "8gen3"), bitnet
	near := func(what string, got, want Cost, within float64) {
		t.Helper()
		for _, v := range [][2]float64{{got.Seconds, want.Seconds}, {got.DMA, want.DMA}, {got.Vector, want.Vector}, {got.Tiles, want.Tiles}} {
			if math.Abs(v[0]-v[1]) > within*v[1] {
				t.Errorf("%s: %+v, executed %+v", what, got, want)
				return
			}
		}
	}
	run := func(s Step) Cost {
		e, err := ExecutedStep(s)
		if err != nil {
			t.Fatal(err)
		}
		return m.Run(e.Whole(x.Layers))
	}
	for _, batch := range ExecutedBatches[:4] { // layers and head by lookups
		near("a batch", m.Decode(&x, batch, ExecutedContext), run(Step{bitnet.Name, batch, 1, ExecutedContext, ByLookup}), 1e-6)
	}
	m.Tiles = true
	for _, batch := range executedTiles[:2] { // attention is of the steps by lookups
		near("a batch by tiles", m.Decode(&x, batch, ExecutedContext), run(Step{bitnet.Name, batch, 1, ExecutedContext, ByTiles}), 0.01)
	}
	m.Tiles = false
	sum := Cost{}
	for _, context := range executedContexts {
		c := run(Step{bitnet.Name, 1, Chunk, context, ByTiles})
		near("a chunk", m.Step(&x, []Work{{Chunk, context}}, 0), c, 1e-6)
		sum.Add(c.times(4))
	}
	prompt, token := m.Prefill(&x, 1024), m.Step(&x, []Work{{Chunk, 1024}}, 1).less(m.Step(&x, []Work{{Chunk, 1024}}, 0))
	near("a prompt", prompt.less(token), sum, 1e-6)
}

// Between what executed, and for other shapes, a step takes more where there is more of it.
func TestScaledStepsGrowWithWhatTheyHave(t *testing.T) {
	m := machine(t, "8gen3")
	least := m.Decode(&bitnet, 1, ExecutedContext)
	for what, change := range map[string]func(*Model){
		"layers":      func(x *Model) { x.Layers *= 2 },
		"heads":       func(x *Model) { x.Heads, x.KVHeads = 2*x.Heads, 2*x.KVHeads },
		"bits":        func(x *Model) { x.Matrices[2].Bits = 4 },
		"a wide head": func(x *Model) { x.Matrices[4].M *= 2 },
		"the CPU":     func(x *Model) { x.Matrices[3].Host = true },
	} {
		x := bitnet
		x.Matrices = slices.Clone(x.Matrices)
		change(&x)
		if c := m.Decode(&x, 1, ExecutedContext); c.Seconds < 1.05*least.Seconds || c.Seconds > 2.1*least.Seconds {
			t.Errorf("%s: %.4g s, BitNet-2B's take %.4g", what, c.Seconds, least.Seconds)
		}
	}
	if c := m.Beside(&bitnet, []Work{{1, ExecutedContext}}, 1); c.Seconds > 0.5*least.Seconds || c.DMA > 0.2*least.DMA {
		t.Errorf("beside products: %+v of %+v", c, least)
	}
}

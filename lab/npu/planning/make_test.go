package planning

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/lab/npu/calibration"
)

// phi is Phi-3.5-MoE, in fp16 on the Neural Engine (NPUMoE, Table 1).
var phi = experts.Shape{Model: "phi-3.5-moe", Layers: 3, Experts: 16, Chosen: 2, Hidden: 4096, Width: 6400}

// drawn is a calibration of prompts whose tokens choose experts at random, the e-th
// expert of a layer with a weight of decay to the e-th power.
func drawn(t testing.TB, shape experts.Shape, decay float64, prompts, tokens int, seeds ...uint64) *calibration.Calibration {
	t.Helper()
	var sets []calibration.Set
	for i, seed := range seeds {
		r := rand.New(rand.NewPCG(1, seed))
		c, err := calibration.NewCounter(shape, []int{64, 256, 512})
		if err != nil {
			t.Fatal(err)
		}
		for range prompts {
			for layer := range shape.Layers {
				for range tokens {
					var chosen []int32
					for len(chosen) < shape.Chosen {
						e := int(math.Log(1-r.Float64()*(1-math.Pow(decay, float64(shape.Experts)))) / math.Log(decay))
						if e = (e*5 + layer) % shape.Experts; !slices.Contains(chosen, int32(e)) {
							chosen = append(chosen, int32(e))
						}
					}
					c.Add(layer, chosen)
				}
			}
			if err := c.End(); err != nil {
				t.Fatal(err)
			}
		}
		sets = append(sets, c.Set([]string{"first", "second", "third"}[i]))
	}
	cal, err := calibration.New(shape, sets)
	if err != nil {
		t.Fatal(err)
	}
	return cal
}

// options are for one plan of a shape in fp16.
func options(s experts.Shape, device string, sizing Sizing) Options {
	d, err := NamedDevice(device)
	if err != nil {
		panic(err)
	}
	o := Options{Shape: s, Device: d, Chunk: 256, GroupSize: 8, Sizing: sizing}
	for range s.Layers {
		o.ExpertBytes = append(o.ExpertBytes, int64(3*s.Hidden*s.Width*2))
	}
	return o
}

func newPlan(t testing.TB, c *calibration.Calibration, o Options) *experts.Plan {
	t.Helper()
	p, err := New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTiersAreThePapers(t *testing.T) {
	for _, c := range []struct {
		what                   string
		chunk, chosen, experts int
		ratio                  float64
		rows, base, busiest    int
		tiers                  []int
	}{
		{"the example of §4.1", 256, 1, 8, 2, 16, 32, 64, []int{64, 48, 32}},
		{"Phi-3.5-MoE: the capacities of §5.1, four times the base for the most popular", 256, 2, 16, 4, 16, 32, 128, []int{128, 64, 32}},
		{"Phi-3.5-MoE, balanced", 256, 2, 16, 1, 16, 32, 32, []int{32}},
		{"Qwen3-30B-A3B", 256, 8, 128, 4, 16, 16, 64, []int{64, 32, 16}},
		{"Qwen3-30B-A3B on tiles of 32 rows", 256, 8, 128, 4, 32, 16, 64, []int{64, 32}},
		{"no expert has more than a chunk", 64, 2, 4, 4, 16, 32, 64, []int{64, 48, 32}},
		{"less than a row each", 16, 1, 64, 8, 16, 1, 2, []int{16}},
	} {
		base, busiest, tiers := Tiers(c.chunk, c.chosen, c.experts, c.ratio, c.rows)
		if base != c.base || busiest != c.busiest || !slices.Equal(tiers, c.tiers) {
			t.Errorf("%s: base %d, busiest %d, tiers %v, want %d, %d, %v", c.what, base, busiest, tiers, c.base, c.busiest, c.tiers)
		}
	}
}

func TestAnExpertGetsTheLeastTierThatItsRowsFit(t *testing.T) {
	for rows, want := range map[float64]int{0: 32, 32: 32, 32.5: 64, 64: 64, 100: 128, 1000: 128} {
		if got := tierOf([]int{128, 64, 32}, rows); got != want {
			t.Errorf("an expert of %v rows gets %d, want %d", rows, got, want)
		}
	}
}

func TestCostsFitThePapersTable5(t *testing.T) {
	bytes := int64(3 * phi.Hidden * phi.Width * 2)
	for _, c := range []struct {
		group, capacity int
		measured        float64 // ms a row
	}{{1, 32, .31}, {1, 64, .23}, {1, 128, .16}, {4, 32, .27}, {4, 64, .19}, {8, 32, .26}, {8, 64, .18}, {8, 96, .15}, {8, 128, .14}} {
		rows := c.group * c.capacity
		if got := launchTime(&apple, int64(c.group)*bytes, rows, rowMACs(phi)) / float64(rows); math.Abs(got/c.measured-1) > 0.07 {
			t.Errorf("%d×%d takes %.3f ms a row, measured %v", c.group, c.capacity, got, c.measured)
		}
	}
	if got := hostTime(&apple, 4*16*float64(bytes), 2048, rowMACs(phi)); math.Abs(got/969.53-1) > 0.05 {
		t.Errorf("the CPU takes %.1f ms for the rows of Table 4, measured 969.53", got)
	}
}

func TestEveryExpertIsInOneGroupAndCapacitiesFollowPopularity(t *testing.T) {
	for _, shape := range []experts.Shape{phi, {Layers: 2, Experts: 5, Chosen: 1, Hidden: 64, Width: 64}, {Layers: 2, Experts: 48, Chosen: 6, Hidden: 64, Width: 64}} {
		for _, decay := range []float64{0.7, 0.9, 0.9999} {
			c := drawn(t, shape, decay, 4, 300, 7)
			for _, sizing := range Sizings() {
				for _, group := range []int{1, 4, 5} {
					o := options(shape, "8gen3", sizing)
					o.GroupSize = group
					p := newPlan(t, c, o) // which checks that each is in one group
					for i, l := range p.Layers {
						var order []int
						last := math.MaxInt
						for _, g := range l.Groups {
							order = append(order, g.Experts...)
							if g.Capacity > last || !slices.Contains(l.Tiers, g.Capacity) {
								t.Fatalf("layer %d: capacity %d after %d, of tiers %v", i, g.Capacity, last, l.Tiers)
							}
							last = g.Capacity
						}
						if !slices.Equal(order, c.Sets[0].Layers[i].Order) {
							t.Fatalf("layer %d: groups in the order %v, want %v", i, order, c.Sets[0].Layers[i].Order)
						}
					}
				}
			}
		}
	}
}

func TestOverflowFallsAndPaddingGrowsWithCapacity(t *testing.T) {
	c := drawn(t, phi, 0.85, 6, 700, 3)
	last := experts.Choice{Overflow: 2, Padding: -1}
	for _, capacity := range []int{16, 32, 48, 64, 128, 256} {
		o := options(phi, "m2-ultra", Sizing{Uniform: capacity})
		o.Device.Costs = experts.Costs{Read: 1e6, Device: 1e6, Host: 1e-3} // all on the NPU
		got := newPlan(t, c, o).Choice
		if got.Host != 0 || got.Overflow >= last.Overflow && last.Overflow > 0 || got.Padding <= last.Padding {
			t.Errorf("capacity %d: %+v after %+v", capacity, got, last)
		}
		last = got
	}
	if last.Overflow != 0 {
		t.Errorf("with room for a whole chunk %v overflows", last.Overflow)
	}
}

func TestWhatAPlanExpectsIsWhatItsChunksDid(t *testing.T) {
	shape := experts.Shape{Layers: 2, Experts: 4, Chosen: 1, Hidden: 32, Width: 32}
	c, err := calibration.NewCounter(shape, []int{64})
	if err != nil {
		t.Fatal(err)
	}
	prompt := func(tokens ...int) {
		for e, n := range tokens {
			c.Add(0, slices.Repeat([]int32{int32(e)}, n))
			c.Add(1, slices.Repeat([]int32{int32(e)}, n))
		}
		if err := c.End(); err != nil {
			t.Fatal(err)
		}
	}
	prompt(20, 44, 0, 0)  // a chunk
	prompt(0, 60, 10, 10) // a chunk with 60 and 4, one with 6 and 10
	cal, err := calibration.New(shape, []calibration.Set{c.Set("two")})
	if err != nil {
		t.Fatal(err)
	}
	o := options(shape, "8gen3", Sizing{Uniform: 32})
	o.Chunk, o.GroupSize, o.Device.Costs = 64, 2, experts.Costs{Read: 1e9, Device: 1e-6 * 3 * 32 * 32, Host: 0.25e-6 * 3 * 32 * 32} // 1 and 4 ms a row
	p := newPlan(t, cal, o)
	want := []experts.Group{ // of three chunks
		{Experts: []int{1, 0}, Expected: experts.Expected{Rows: 124. / 3, Overflow: 40. / 3, Padding: 64 - 84./3}},
		{Experts: []int{2, 3}, Expected: experts.Expected{Rows: 20. / 3}},
	}
	for i, w := range want {
		g := p.Layers[0].Groups[i]
		if !slices.Equal(g.Experts, w.Experts) || math.Abs(g.Expected.Rows-w.Expected.Rows)+math.Abs(g.Expected.Overflow-w.Expected.Overflow)+math.Abs(g.Expected.Padding-w.Expected.Padding) > 1e-9 {
			t.Errorf("group %d: %v %+v, want %v %+v", i, g.Experts, g.Expected, w.Experts, w.Expected)
		}
	}
	if hot, cold := p.Layers[0].Groups[0], p.Layers[0].Groups[1]; hot.Placement != experts.NPU || cold.Placement != experts.CPU || !strings.HasPrefix(hot.Why, "hot") || !strings.HasPrefix(cold.Why, "cold") {
		t.Errorf("groups are placed %s, %q and %s, %q", hot.Placement, hot.Why, cold.Placement, cold.Why)
	}
	// Of the last layer each prompt wants one row.
	for i, rows := range []float64{124. / 144 * 2 / 3, 20. / 144 * 2 / 3} {
		if g := p.Layers[1].Groups[i]; g.Placement != experts.CPU || math.Abs(g.Expected.Rows-rows) > 1e-9 || g.Expected.Padding != 0 {
			t.Errorf("the last layer's group %d is %+v, want %v rows on the CPU", i, g, rows)
		}
	}
	equal := func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }
	if got := p.Choice; !equal(got.Launches, 3./144) || !equal(got.Overflow, 40./146) || !equal(got.Host, 22./146) || !equal(got.Padding, (192-84.)/192) || !equal(got.Cost, (192+4*62.)/144) {
		t.Errorf("the plan does %+v", got)
	}
}

// The paper leaves groups as small as 2×8 to the CPU altogether; by the times that it measured
// a launch pays for them where they are filled.
func TestGroupsThatFewRowsChooseGoToTheCPU(t *testing.T) {
	bytes := int64(3 * phi.Hidden * phi.Width * 2)
	for _, c := range []struct {
		experts, capacity int
		used              float64 // of the capacity
		want              experts.Placement
	}{{2, 8, 0.05, experts.CPU}, {4, 16, 0.02, experts.CPU}, {4, 16, 1, experts.NPU}, {8, 64, 0.65, experts.NPU}} {
		g := experts.Group{Experts: make([]int, c.experts), Capacity: c.capacity, Bytes: int64(c.experts) * bytes, Expected: experts.Expected{Rows: c.used * float64(c.experts*c.capacity)}}
		p := &experts.Plan{Layers: []experts.Layer{{Groups: []experts.Group{g}}}}
		o := options(phi, "m2-ultra", Sizing{})
		place(p, &o, true)
		if got := p.Layers[0].Groups[0].Placement; got != c.want {
			t.Errorf("%d×%d, filled to %v: %s, want %s", c.experts, c.capacity, c.used, got, c.want)
		}
	}
}

func TestAGroupLargerThanAGraphIsSplit(t *testing.T) {
	c := drawn(t, phi, 0.9999, 4, 512, 5) // balanced: one tier
	o := options(phi, "m2-ultra", Sizing{Uniform: 64})
	o.GroupSize = 16 // 2.5 GB: the paper's graphs of all experts fall back to the CPU
	p := newPlan(t, c, o)
	for i, l := range p.Layers {
		if len(l.Groups) != 2 || len(l.Groups[0].Experts) != 8 || l.Groups[0].Bytes > o.Device.GroupBytes {
			t.Errorf("layer %d has groups %+v, want two of 8 experts", i, l.Groups)
		}
	}
	o.Device.GroupBytes = o.ExpertBytes[0] - 1
	for _, g := range newPlan(t, c, o).Layers[0].Groups {
		if g.Placement != experts.CPU || !strings.Contains(g.Why, "larger than a graph") {
			t.Errorf("an expert larger than a graph: %s, %q", g.Placement, g.Why)
		}
	}
}

func TestWhereMemoryIsShortTheHottestGroupsHaveIt(t *testing.T) {
	c := drawn(t, phi, 0.85, 4, 512, 5)
	o := options(phi, "m2-ultra", Sizing{Uniform: 64})
	o.GroupSize, o.Reserved = 4, 100
	o.Device.Costs.Read = 1e6
	o.Device.Bytes = 5*4*o.ExpertBytes[0] + o.Reserved
	p := newPlan(t, c, o)
	least, most, on := math.Inf(1), 0.0, 0
	for _, l := range p.Layers {
		for _, g := range l.Groups {
			switch {
			case g.Placement == experts.NPU:
				on++
				least = min(least, g.Expected.Rows)
			case strings.Contains(g.Why, "others have the device's memory"):
				most = max(most, g.Expected.Rows)
			}
		}
	}
	if on != 5 || p.Bytes != 5*4*o.ExpertBytes[0] || most == 0 || most > least {
		t.Errorf("%d groups with at least %v rows are on the device in %d bytes, others have up to %v", on, least, p.Bytes, most)
	}
	o.ExpertBytes[1] = 0
	for _, g := range newPlan(t, c, o).Layers[1].Groups {
		if g.Placement != experts.CPU || !strings.Contains(g.Why, "does not hold") {
			t.Errorf("experts that the device does not hold: %s, %q", g.Placement, g.Why)
		}
	}
}

func TestTheChosenPlanIsOnTheFront(t *testing.T) {
	c := drawn(t, phi, 0.85, 4, 700, 3, 4)
	for _, most := range []float64{0, 0.02, MostOverflow, 1} {
		p, err := Weigh(c, options(phi, "m2-ultra", Sizing{Headroom: 1}), Space{MostOverflow: most})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Others) != 3*3*6 || !p.Choice.Front || !slices.Contains(p.Others, p.Choice) || len(p.Checks) != 1 {
			t.Fatalf("of %d plans %+v is chosen, %d checks", len(p.Others), p.Choice, len(p.Checks))
		}
		for _, o := range p.Others {
			if dominates(&o, &p.Choice) {
				t.Errorf("%+v is better than the chosen %+v", o, p.Choice)
			}
			if o.Front && o.Overflow <= most && (o.Cost < p.Choice.Cost || p.Choice.Overflow > most) {
				t.Errorf("with at most %v overflow %+v is chosen, not %+v", most, p.Choice, o)
			}
		}
	}
}

func TestWhereNoLaunchPaysAllIsLeftToTheCPU(t *testing.T) {
	o := options(phi, "m2-ultra", Sizing{Headroom: 1})
	o.Device.Costs.Launch = 1e6
	p, err := Weigh(drawn(t, phi, 0.85, 2, 300, 3), o, Space{MostOverflow: MostOverflow})
	if err != nil {
		t.Fatal(err)
	}
	if first := p.Choice; first.Host != 1 || p.Bytes != 0 || !strings.Contains(p.Why, "all experts are the CPU") {
		t.Errorf("%+v is chosen: %s", p.Choice, p.Why)
	}
}

func TestWithoutACalibrationAllExpertsAreEqual(t *testing.T) {
	o := options(phi, "m2-ultra", Sizing{Headroom: 1})
	o.Ratio = 2
	p := newPlan(t, nil, o)
	for _, l := range p.Layers {
		if len(l.Groups) != 2 || l.Groups[0].Capacity != 64 || l.Groups[1].Placement != experts.NPU || !slices.Equal(l.Groups[1].Experts, []int{8, 9, 10, 11, 12, 13, 14, 15}) {
			t.Errorf("a layer has %+v", l)
		}
	}
	if got := p.Choice.Launches * 256; got != 6 {
		t.Errorf("%v launches a chunk, want 6", got)
	}
}

func TestWhatCannotBePlannedIsRefused(t *testing.T) {
	c := drawn(t, phi, 0.9, 1, 100, 1)
	for want, change := range map[string]func(o *Options){
		"it is for 3 layers":        func(o *Options) { o.Shape.Layers = 2; o.ExpertBytes = o.ExpertBytes[:2] },
		"no chunks of 100 tokens":   func(o *Options) { o.Chunk = 100 },
		"groups of 0 experts":       func(o *Options) { o.GroupSize = 0 },
		"an imbalance of 0.5":       func(o *Options) { o.Ratio = 0.5 },
		"an imbalance of NaN":       func(o *Options) { o.Ratio = math.NaN() },
		"a capacity of 0 or a":      func(o *Options) { o.Sizing = Sizing{} },
		"bytes of the experts of 2": func(o *Options) { o.ExpertBytes = o.ExpertBytes[:2] },
		"-1 bytes are reserved":     func(o *Options) { o.Reserved = -1 },
		"multiples of 0 rows":       func(o *Options) { o.Device.Rows = 0 },
		"chunks of 1048576 tokens":  func(o *Options) { o.Chunk = 1 << 20 },
		"a device whose costs are":  func(o *Options) { o.Device.Costs.Read = math.NaN() },
		"a device whose launches":   func(o *Options) { o.Device.Costs.Launch = -0.5 },
	} {
		o := options(phi, "m2-ultra", Sizing{Headroom: 1})
		change(&o)
		if _, err := New(c, o); !errors.Is(err, experts.ErrOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want %q", err, want)
		}
	}
	if _, err := Weigh(c, options(phi, "m2-ultra", Sizing{}), Space{MostOverflow: 2}); !errors.Is(err, experts.ErrOptions) {
		t.Errorf("Weigh with an overflow of 2 = %v", err)
	}
}

func TestAPlanOfACalibrationSurvivesItsFile(t *testing.T) {
	c := drawn(t, phi, 0.9, 2, 300, 1, 2)
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	read, err := calibration.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	o := options(phi, "m2-ultra", Sizing{Headroom: 1})
	want, _ := json.Marshal(newPlan(t, c, o))
	if got, _ := json.Marshal(newPlan(t, read, o)); !bytes.Equal(got, want) {
		t.Errorf("the plan of what was written differs:\n%s\n%s", got, want)
	}
	if p, err := experts.ReadPlan(bytes.NewReader(want)); err != nil || len(p.Checks) != 1 {
		t.Errorf("the plan's file: %v", err)
	}
}

func FuzzPlanningByACalibration(f *testing.F) {
	f.Add([]byte(`{"kind":"lutra-experts-calibration","shape":{"layers":1,"experts":1,"chosen":1,"hidden":1,"width":1},"sets":[{"prompts":1,"tokens":1,"layers":[{"tokens":[1],"order":[0],"imbalance":1}],"chunks":[{"size":4,"count":1,"layers":[[[[1,1]]]]}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := calibration.Read(bytes.NewReader(text))
		if err != nil || len(c.Sets) > 1 {
			return
		}
		o := options(c.Shape, "8gen3", Sizing{Headroom: 1})
		o.Chunk, o.GroupSize = c.Sets[0].Chunks[0].Size, 1
		if _, err := New(c, o); err != nil {
			t.Errorf("no plan of a calibration that was read: %v", err)
		}
	})
}

package hexagon

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// tinyExperts is a small mixture of random weights.
var tinyExperts = synthetic.Shape{Name: "tiny experts", Hidden: 256, FFN: 512, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 320, Context: 1024,
	RopeBase: 10000, TiedEmbedding: true, Arch: synthetic.Qwen3MoE, Experts: synthetic.Experts{Count: 12, Used: 3, FFN: 256}}

// tinyShape is the shape of the mixture that these tests plan.
var tinyShape = experts.Shape{Model: "tiny experts", Layers: 2, Experts: 12, Chosen: 3, Hidden: 256, Width: 256}

// fileOf builds a model once, of which any number can be loaded.
func fileOf(shape synthetic.Shape, blocks gguf.Type) func() (*gguf.File, error) {
	return sync.OnceValues(func() (*gguf.File, error) {
		return synthetic.Build(shape, synthetic.Options{Blocks: blocks, Head: gguf.F16, Seed: 7})
	})
}

// someTokens are random tokens.
func someTokens(n int) []int32 {
	r, tokens := rand.New(rand.NewPCG(uint64(n), 9)), make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(r.IntN(320))
	}
	return tokens
}

// mixtureOn is the model on a device in Go, and its backend.
func mixtureOn(t testing.TB, p *pool.Pool, opt Options, load func() (*gguf.File, error)) (*models.Bundle, *Backend) {
	t.Helper()
	b := onDevice(t, "hexagon-go", opt, p, load)
	return b, b.Backend().(*Backend)
}

// capacityPlan has groups of so many experts, all with the same capacity; of experts from
// cold on the CPU has those.
func capacityPlan(chunk, group, capacity, cold int) *experts.Plan {
	p := uniform(tinyShape, chunk, group, 1)
	for i := range p.Layers {
		for j := range p.Layers[i].Groups {
			g := &p.Layers[i].Groups[j]
			if g.Capacity = capacity; g.Experts[0] >= cold {
				g.Placement = experts.CPU
			}
		}
	}
	return p
}

const allHot = math.MaxInt

func TestWithRoomForAllRowsExpertsOnTheDeviceHaveTheCPUsBits(t *testing.T) {
	sweep.Full(t)
	p := newPool(t)
	for _, blocks := range []gguf.Type{gguf.TQ1_0, gguf.TQ2_0}[sweep.Of(t, 1, 0):] {
		load := fileOf(tinyExperts, blocks)
		cpu := onDevice(t, "", Options{}, p, load)
		for _, placement := range []Placement{PlacementCPU, PlacementNaive} {
			bundle, b := mixtureOn(t, p, Options{Path: PathInt8, Placement: placement}, load)
			for _, n := range []int{300, 64, 5} { // more than a chunk, less, and none
				want, before := newFeeder(t, cpu.Model).feed(n, someTokens(n)...), b.Counts()
				if got := newFeeder(t, bundle.Model).feed(n, someTokens(n)...); !slices.Equal(got, want) {
					t.Errorf("%v, %d tokens, placement %s: NMSE %.3g against the CPU, want the same bits", blocks, n, placement, nmse(got, want))
				}
				if c := b.Counts(); placement == PlacementNaive && n >= leastChunk && (c.Computed != before.Computed+int64(n*3*2) || c.Overflow+c.Cold != 0) {
					t.Errorf("%d tokens: %+v after %+v, want all rows on the device", n, c, before)
				}
			}
		}
	}
}

func TestTheHostComputesWhatOverflowsToTheDevicesBits(t *testing.T) {
	sweep.Full(t)
	p := newPool(t)
	for i, blocks := range []gguf.Type{gguf.TQ2_0, gguf.Q4_K} {
		load, tokens := fileOf(tinyExperts, blocks), someTokens(100)
		paths := []Path{PathLookup, PathTiles}
		if !sweep.All(t) {
			paths = paths[i : i+1]
		}
		for _, path := range paths {
			run := func(plan *experts.Plan) ([]float32, experts.Counts) {
				bundle, b := mixtureOn(t, p, Options{Path: path, Plan: plan}, load)
				return newFeeder(t, bundle.Model).feed(len(tokens), tokens...), b.Counts()
			}
			want, c := run(capacityPlan(160, 4, 160, allHot))
			if c.Overflow != 0 || c.Computed != int64(len(tokens)*3*2) {
				t.Fatalf("without a bound: %+v", c)
			}
			for _, plan := range []*experts.Plan{
				capacityPlan(64, 5, 16, allHot), capacityPlan(64, 12, 1, allHot), // less than any expert gets
				capacityPlan(256, 3, 32, allHot),
			}[:sweep.Of(t, 2, 3)] {
				got, c := run(plan)
				if !slices.Equal(got, want) {
					t.Errorf("%v, %s, capacity %d in chunks of %d: NMSE %.3g against unlimited capacity, want the same bits", blocks, path, plan.Layers[0].Groups[0].Capacity, plan.Chunk, nmse(got, want))
				}
				if c.Overflow == 0 || c.Routed != c.Computed+c.Overflow || c.Padded != c.Launches*int64(plan.GroupSize*plan.Layers[0].Groups[0].Capacity)-c.Computed && 12%plan.GroupSize == 0 {
					t.Errorf("capacity %d: %+v does not add up", plan.Layers[0].Groups[0].Capacity, c)
				}
			}
		}
	}
}

func TestColdExpertsHaveTheCPUsBits(t *testing.T) {
	sweep.Full(t)
	p := newPool(t)
	load, tokens := func() (*gguf.File, error) { // whose head is the CPU's, too
		return synthetic.Build(tinyExperts, synthetic.Options{Blocks: gguf.TQ2_0, Head: gguf.F32, Seed: 7})
	}, someTokens(sweep.Of(t, 70, 200))
	cpu := onDevice(t, "", Options{}, p, load)
	want := newFeeder(t, cpu.Model).feed(len(tokens), tokens...)
	for _, cold := range []int{0, 4, 8} {
		plan := capacityPlan(256, 4, 256, cold)
		plan.Layers[1] = uniform(tinyShape, 256, 12, 256).Layers[0] // no cold expert
		bundle, b := mixtureOn(t, p, Options{Path: PathInt8, Plan: plan}, load)
		b.opt.Placement = PlacementNaive // attention on the CPU, but by that plan
		if got := newFeeder(t, bundle.Model).feed(len(tokens), tokens...); !slices.Equal(got, want) {
			t.Errorf("%d hot experts: NMSE %.3g against the CPU, want the same bits", cold, nmse(got, want))
		}
		if c := b.Counts(); c.Cold+c.Computed != c.Routed || (c.Cold == 0) || c.Cold > int64(len(tokens)*3) {
			t.Errorf("%d hot experts: %+v", cold, c)
		}
	}
}

func TestEveryPlacementAgreesWithTheCPU(t *testing.T) {
	p := newPool(t)
	shape := tinyExperts
	shape.Experts.Count, shape.Experts.Used = 4, 4 // routing cannot differ
	load, tokens := fileOf(shape, gguf.TQ2_0), someTokens(50)
	of := tinyShape
	of.Experts, of.Chosen = 4, 4
	plan := uniform(of, 64, defaultGroup, 64) // the emulator computes padding, too
	want := newFeeder(t, onDevice(t, "", Options{}, p, load).Model).feed(len(tokens), tokens...)
	for _, kind := range []string{"hexagon-go", "hexagon-qemu"} {
		for _, name := range Placements() {
			t.Run(kind+"/"+name, func(t *testing.T) {
				bundle := onDevice(t, kind, Options{Placement: Placement(name), Plan: plan}, p, load)
				f := newFeeder(t, bundle.Model)
				if e := nmse(f.feed(len(tokens), tokens...), want); !(e <= cpuNoise) {
					t.Errorf("NMSE %.3g against the CPU, want %.3g at most", e, cpuNoise)
				}
				b := bundle.Backend().(*Backend)
				c, runs := b.Counts(), b.Work().Runs
				if onDevice := name == "naive" || name == "all"; (c.Launches > 0) != onDevice || (c.Computed > 0) != onDevice || c.Chunks != 1 || c.Tokens != 50 {
					t.Errorf("%+v", c)
				}
				if dense := name == "attention" || name == "all"; (c.Synced > 0) != dense {
					t.Errorf("%d runs of attention and of other matrices", c.Synced)
				}
				f.feed(1, 5)
				if d := b.Counts(); b.Work().Runs != runs || d.Launches != c.Launches || d.Synced != c.Synced {
					t.Errorf("a token after the prompt runs on the device: %+v, then %+v", c, d)
				}
			})
		}
	}
}

func TestANeighbourChangesNoAnswerOfAMixture(t *testing.T) {
	p := newPool(t)
	prompts := [][]int32{someTokens(70), someTokens(1), someTokens(33), someTokens(31), someTokens(130)}[:sweep.Of(t, 3, 5)]
	for _, opt := range []Options{{Path: PathLookup}, {Path: PathTiles, Plan: capacityPlan(64, 4, 16, 8)}, {Path: PathInt8, Plan: capacityPlan(64, 4, 16, 8)}} {
		b, _ := mixtureOn(t, p, opt, fileOf(tinyExperts, gguf.TQ2_0))
		var alone [][]float32
		for _, prompt := range prompts {
			alone = append(alone, slices.Clone(newFeeder(t, b.Model).feed(len(prompt), prompt...)))
		}
		f := newFeeder(t, b.Model)
		f.batch.Reset()
		for _, prompt := range prompts {
			s := f.cache.Open(nil)
			if err := s.Grow(len(prompt)); err != nil {
				t.Fatal(err)
			}
			f.batch.Add(s, 0, len(prompt), prompt...)
		}
		if err := b.Model.Forward(&f.batch, f.cache); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(f.batch.Logits, slices.Concat(alone...)) {
			t.Errorf("%s: logits are others in a crowd", opt.Path)
		}
	}
}

func TestAPromptThatOverflowsIsTheSameHoweverManyOfItsChunksAStepHas(t *testing.T) {
	b, backend := mixtureOn(t, newPool(t), Options{Path: PathLookup, Plan: capacityPlan(64, 4, 16, allHot)}, fileOf(tinyExperts, gguf.TQ2_0))
	tokens := someTokens(230)
	at, want := newFeeder(t, b.Model), newFeeder(t, b.Model).feed(1, tokens...)
	at.feed(0, tokens[:128]...)
	at.feed(0, tokens[128:192]...)
	if got := at.feed(1, tokens[192:]...); !slices.Equal(got, want) {
		t.Errorf("NMSE %.3g between two ways of cutting a prompt", nmse(got, want))
	}
	if c := backend.Counts(); c.Overflow == 0 {
		t.Errorf("nothing overflows: %+v", c)
	}
}

var sequences = [4]*kv.Sequence{new(kv.Sequence), new(kv.Sequence), new(kv.Sequence), new(kv.Sequence)}

func TestChunksHaveRowsOfSeveralPromptsAndNoShortRuns(t *testing.T) {
	rows := func(spans ...[3]int) (list []models.RowPos) { // sequence, first position, tokens
		for _, s := range spans {
			for i := range s[2] {
				list = append(list, models.RowPos{Seq: sequences[s[0]], Pos: s[1] + i})
			}
		}
		return list
	}
	describe := func(of []int32) string { // runs of equal chunks
		var s []string
		for lo, hi := 0, 0; lo < len(of); lo = hi {
			for hi = lo; hi < len(of) && of[hi] == of[lo]; hi++ {
			}
			s = append(s, fmt.Sprintf("%d×%d", of[lo], hi-lo))
		}
		return strings.Join(s, " ")
	}
	for _, c := range []struct {
		rows []models.RowPos
		want string
		n    int
	}{
		{rows([3]int{0, 0, 100}), "1×64 2×36", 100},
		{rows([3]int{0, 40, 100}), "1×64 2×36", 100},
		{rows([3]int{0, 0, 40}, [3]int{1, 0, 40}), "1×64 2×16", 80},
		{rows([3]int{0, 9, 1}, [3]int{1, 0, 31}, [3]int{2, 7, 15}), "0×47", 0},
		{rows([3]int{0, 9, 1}, [3]int{1, 0, 32}, [3]int{2, 7, 2}, [3]int{3, 0, 32}), "0×1 1×32 0×2 1×32", 64},
		{nil, "", 0},
	} {
		var w chunkWork
		if n := w.divide(c.rows, 64); n != c.n || describe(w.of) != c.want {
			t.Errorf("%d rows: %d in chunks %s, want %d in %s", len(c.rows), n, describe(w.of), c.n, c.want)
		}
	}
}

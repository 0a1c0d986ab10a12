package hexagon

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// tinyExperts is a small mixture of random weights.
var tinyExperts = synthetic.Shape{Name: "tiny experts", Hidden: 256, FFN: 512, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 320, Context: 1024,
	RopeBase: 10000, TiedEmbedding: true, Arch: synthetic.Qwen3MoE, Experts: synthetic.Experts{Count: 12, Used: 3, FFN: 256}}

func expertsFile(t testing.TB, blocks gguf.Type) func() (*gguf.File, error) {
	return func() (*gguf.File, error) {
		return synthetic.Build(tinyExperts, synthetic.Options{Blocks: blocks, Head: gguf.F16, Seed: 7})
	}
}

var tinyShape = experts.Shape{Model: "tiny experts", Layers: 2, Experts: 12, Chosen: 3, Hidden: 256, Width: 256}

// someTokens are random tokens.
func someTokens(n int) []int32 {
	r, tokens := rand.New(rand.NewPCG(3, 9)), make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(r.IntN(320))
	}
	return tokens
}

// mixtureOn is the model on hexagon-go, and its backend.
func mixtureOn(t testing.TB, p *pool.Pool, opt Options, load func() (*gguf.File, error)) (*models.Bundle, *Backend) {
	t.Helper()
	b := onDevice(t, "hexagon-go", opt, p, load)
	return b, b.Backend().(*Backend)
}

func TestWithRoomForAllRowsAMixtureHasTheCPUsBits(t *testing.T) {
	p := newPool(t)
	for _, blocks := range []gguf.Type{gguf.TQ1_0, gguf.TQ2_0} {
		load := expertsFile(t, blocks)
		tokens := someTokens(300)
		want := newFeeder(t, onDevice(t, "", Options{}, p, load).Model).feed(len(tokens), tokens...)
		for _, placement := range []Placement{PlacementCPU, PlacementNaive} {
			bundle, b := mixtureOn(t, p, Options{Path: PathInt8, Placement: placement}, load)
			got := newFeeder(t, bundle.Model).feed(len(tokens), tokens...)
			if !slices.Equal(got, want) {
				t.Errorf("%v, placement %s: NMSE %.3g against the CPU, want the same bits", blocks, placement, nmse(got, want))
			}
			t.Logf("%s: %+v", placement, b.Counts())
		}
	}
}

func TestEveryPlacementIsNearTheCPUAndCountsWhatItDoes(t *testing.T) {
	p := newPool(t)
	load := expertsFile(t, gguf.TQ2_0)
	tokens := someTokens(300)
	want := newFeeder(t, onDevice(t, "", Options{}, p, load).Model).feed(len(tokens), tokens...)
	for _, name := range Placements() {
		for _, path := range []Path{PathAuto, PathLookup, PathTiles} {
			t.Run(fmt.Sprintf("%s/%s", name, path), func(t *testing.T) {
				bundle, b := mixtureOn(t, p, Options{Path: path, Placement: Placement(name)}, load)
				got := newFeeder(t, bundle.Model).feed(len(tokens), tokens...)
				if e := nmse(got, want); !(e <= cpuNoise) {
					t.Errorf("NMSE %.3g against the CPU, want %.3g at most", e, cpuNoise)
				}
				c := b.Counts()
				t.Logf("%+v", c)
				if c.Routed != c.Computed+c.Overflow+c.Pruned+c.Cold || c.Routed+c.Decoded != int64(len(tokens)*3*2) {
					t.Errorf("rows do not add up: %+v", c)
				}
			})
		}
	}
}

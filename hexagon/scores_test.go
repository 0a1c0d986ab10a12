package hexagon

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// Sinks above all scores and below, and of both signs; caps that change what is attended to; in
// one chunk of keys and in several, with a window.
func TestSinksAndSoftCapsAreTheDevices(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	b, _ := started(t, newRefDevice, Options{})
	for _, longest := range []int{longestChunk, 32} {
		for _, window := range []int{0, 40} {
			for _, limit := range []float32{0, 0.5} {
				b.attention.tcm.longest = longest
				a := newAttending(t, r, kv.F16, 6, kv.Shape{Layers: 1, Heads: 2, HeadDim: 32}, []int{5, 70}, 2)
				a.Cap, a.Window = limit, window
				for _, sinks := range [][]float32{nil, {0, 2, -1, 100, -1e30, 1e-9}} {
					if a.Sinks = sinks; !b.Attend(&a.Attention) || b.Err() != nil {
						t.Fatalf("the device does not do it: %v", b.Err())
					}
					if worst := a.worst(); !(worst <= 5e-3) {
						t.Errorf("chunks of %d, window %d, cap %v, sinks %v: outputs differ by up to %v", longest, window, limit, sinks, worst)
					}
				}
			}
		}
	}
	a := newAttending(t, r, kv.F16, 2, kv.Shape{Layers: 1, Heads: 1, HeadDim: 32}, []int{5}, 1)
	for _, s := range []float32{1e5, float32(math.Inf(1)), float32(math.NaN())} {
		if a.Sinks = []float32{0, s}; b.Attend(&a.Attention) {
			t.Errorf("a sink of %v is the device's", s)
		}
	}
}

// A prompt of gpt-oss: attention with sinks and windows, and experts, are the device's.
func TestAPromptOfAMixtureWithSinksIsAttendedToByTheDevice(t *testing.T) {
	p := newPool(t)
	shape := tinyExperts
	shape.Arch, shape.Experts = synthetic.GPTOSS, synthetic.Experts{Count: 4, Used: 4, FFN: 256} // routing cannot differ
	load, tokens := fileOf(shape, gguf.Q8_0), someTokens(150)
	want := newFeeder(t, onDevice(t, "", Options{}, p, load).Model).feed(1, tokens...)
	bundle, b := mixtureOn(t, p, Options{}, load)
	if e := nmse(newFeeder(t, bundle.Model).feed(1, tokens...), want); !(e <= cpuNoise) {
		t.Errorf("NMSE against the CPU's logits is %.3g", e)
	}
	if n := b.Work().Queries; n < int64(shape.Heads*len(tokens)) {
		t.Errorf("the device attends to %d queries", n)
	}
}

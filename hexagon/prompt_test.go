package hexagon

import (
	"math"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// A prompt's chunk is a request; what its rows move is what goes in and comes out of the layers.
func TestAPromptOfADenseModelIsOneRequest(t *testing.T) {
	p := newPool(t)
	prompt := make([]int32, 128)
	for i := range prompt {
		prompt[i] = int32(5 + i*7%900)
	}
	var logits [3][]float32
	var runs, moved [2]int64
	for i, kind := range []string{"hexagon-go", "hexagon-go", ""} {
		b := onDevice(t, kind, Options{}, p, embeddedFile("lutra-tiny-s"))
		f := newFeeder(t, b.Model)
		if kind == "" {
			logits[i] = slices.Clone(f.feed(1, prompt...))
			continue
		}
		d := backendOf(t, b)
		if i == 1 {
			d.plan.layers = nil
		}
		before := d.Work()
		logits[i] = slices.Clone(f.feed(1, prompt...))
		after := d.Work()
		runs[i], moved[i] = after.Runs-before.Runs, after.Written+after.Read-before.Written-before.Read
		t.Logf("%d requests, %d packets, %d bytes", runs[i], after.Packets-before.Packets, moved[i])
	}
	if runs[0] != 1 || runs[1] < 15 || 4*moved[0] > moved[1] {
		t.Errorf("%d requests and %d bytes; with the host between products %d and %d", runs[0], moved[0], runs[1], moved[1])
	}
	if e := nmse(logits[0], logits[1]); !(e <= deviceNoise) {
		t.Errorf("NMSE between whole layers and single products is %.3g", e)
	}
	if e := nmse(logits[0], logits[2]); !(e <= cpuNoise) {
		t.Errorf("NMSE against the CPU is %.3g", e)
	}
}

// A prompt's rows by tiles of bytes have the bits that they have one by one.
func TestPromptsInInt8HaveTheBitsOfLookups(t *testing.T) {
	p := newPool(t)
	prompt := make([]int32, 70)
	for i := range prompt {
		prompt[i] = int32(5 + i*7%900)
	}
	b := onDevice(t, "hexagon-go", Options{Path: PathInt8}, p, embeddedFile("lutra-tiny-s"))
	d := backendOf(t, b)
	byTiles := slices.Clone(newFeeder(t, b.Model).feed(1, prompt...))
	tiled := d.Work().Tiled
	for _, l := range d.plan.matrices {
		if l.bytes {
			l.bytes, l.lookups = false, math.MaxInt
		}
	}
	if byLookups := newFeeder(t, b.Model).feed(1, prompt...); !slices.Equal(byTiles, byLookups) {
		t.Errorf("NMSE %.3g, want the same bits", nmse(byTiles, byLookups))
	}
	if again := d.Work().Tiled - tiled; tiled < 70 || again >= tiled {
		t.Errorf("%d rows of products by tiles, then %d", tiled, again)
	}
}

// By tiles alone a row's logits are the same bits whatever is computed with it: alone, in a prompt
// whose heads have tiles of their own, beside another sequence, in halves of a matrix in fp16, in requests
// between which the device gives keys back, and behind a window, whose first keys others see.
func TestRowsByTilesDoNotDependOnOthersInTheirRequest(t *testing.T) {
	sweep.Full(t)
	p := newPool(t)
	for kind, arch := range map[gguf.Type]synthetic.Arch{gguf.Q4_0: synthetic.Gemma2, gguf.F16: synthetic.Llama} {
		shape := smallShape
		shape.Arch = arch
		b := onDevice(t, "hexagon-go", Options{Path: PathTiles}, p, windowed(synthesized(t, shape, kind), arch, 9))
		d := backendOf(t, b)
		if d.plan.layers == nil || d.plan.layers.layers[0] == nil {
			t.Fatalf("%v: no layer is whole", kind)
		}
		d.attention.tcm.longest = 32
		tokens := make([]int32, 40)
		for i := range tokens {
			tokens[i] = int32(3 + i*31%290)
		}
		var want []float32
		size := d.plan.layers.at.qkv.size
		for round, each := range []int{40, 5, 33, 20} {
			if round == 3 { // of one layer
				size = uint32(each) * d.plan.layers.at.qkvStride
			}
			d.plan.layers.at.qkv.size = size
			f := newFeeder(t, b.Model)
			var logits []float32
			before := d.Work().Runs
			for lo := 0; lo < len(tokens); lo += each {
				logits = slices.Clone(f.feed(1, tokens[lo:min(len(tokens), lo+each)]...))
			}
			steps := (len(tokens) + each - 1) / each
			if round == 3 {
				steps *= smallShape.Layers
			}
			if n := int(d.Work().Runs - before); n != steps {
				t.Errorf("%v, %d tokens a step: %d requests", kind, each, n)
			}
			if want == nil {
				want = logits
			}
			if !slices.Equal(logits, want) {
				t.Errorf("%v, %d tokens a step: NMSE %.3g", kind, each, nmse(logits, want))
			}
		}
	}
}

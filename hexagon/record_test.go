package hexagon

import (
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

func backendOf(t *testing.T, b *models.Bundle) *Backend {
	t.Helper()
	d, ok := b.Backend().(*Backend)
	if !ok {
		t.Fatal("the model is on no device")
	}
	return d
}

// A step of one row is a run of all layers and the head, whose fp16 the tile unit multiplies;
// its bytes are the same at any context of a chunk.
func TestAStepOfADenseModelIsOneRequest(t *testing.T) {
	p := newPool(t)
	b := onDevice(t, "hexagon-go", Options{}, p, embeddedFile("lutra-tiny-l"))
	d, cpu := backendOf(t, b), newFeeder(t, onDevice(t, "", Options{}, p, embeddedFile("lutra-tiny-l")).Model)
	f := newFeeder(t, b.Model)
	prompt := make([]int32, 40)
	for i := range prompt {
		prompt[i] = int32(5 + i*7%900)
	}
	row := f.feed(1, prompt...)
	cpu.feed(1, prompt...)
	var moved []int64
	for range 70 {
		before := d.Work()
		token := int32(vector.Argmax(row))
		row = f.feed(1, token)
		want := cpu.feed(1, token)
		after := d.Work()
		if n := after.Runs - before.Runs; n != 1 {
			t.Fatalf("position %d: %d requests", f.seq.Len(), n)
		}
		if n := after.Packets - before.Packets; n > 512 { // two messages
			t.Fatalf("position %d: %d packets", f.seq.Len(), n)
		}
		if e := nmse(row, want); !(e <= cpuNoise) {
			t.Fatalf("position %d: NMSE against the CPU's logits is %.3g", f.seq.Len(), e)
		}
		if f.seq.Len()%32 != 1 { // then each layer's list grows by an entry
			moved = append(moved, after.Written+after.Read-before.Written-before.Read)
		}
	}
	t.Logf("%d to %d bytes a token", slices.Min(moved), slices.Max(moved))
	if slices.Max(moved) > slices.Min(moved)+8192 { // each step looks at another product's row
		t.Errorf("%d to %d bytes a token", slices.Min(moved), slices.Max(moved))
	}
}

// synthesized writes a random model of a shape.
func synthesized(t *testing.T, s synthetic.Shape, kind gguf.Type) func() (*gguf.File, error) {
	t.Helper()
	return func() (*gguf.File, error) {
		return synthetic.Build(s, synthetic.Options{Blocks: kind, Head: kind, Seed: 4})
	}
}

var smallShape = synthetic.Shape{Name: "small", Hidden: 256, FFN: 512, Layers: 2, Heads: 6, KVHeads: 2, HeadDim: 64, Vocab: 300, Context: 512, RopeBase: 10000, Arch: synthetic.Llama}

// windowed has layers with windows see that many keys.
func windowed(load func() (*gguf.File, error), arch synthetic.Arch, window int) func() (*gguf.File, error) {
	return func() (*gguf.File, error) {
		f, err := load()
		if key := string(arch) + ".attention.sliding_window"; err == nil && f.Metadata[key] != nil {
			f.Metadata[key] = uint32(window)
		}
		return f, err
	}
}

// Norms ahead of matrices, ReLU², heads of two tiles, soft caps of scores and of logits, windows that hide
// keys, LayerNorm that both half layers read, and the head of the vocabulary, by all layers whole, by the host between products, and by the CPU. Chunks of keys are short, so
// that tiles gather several.
func TestWholeLayersComputeWhatTheHostDoesBetweenProducts(t *testing.T) {
	sweep.Full(t)
	p := newPool(t)
	for _, arch := range []synthetic.Arch{synthetic.Llama, synthetic.BitNet, synthetic.Gemma2, synthetic.Cohere2} {
		shape := smallShape
		if shape.Arch = arch; arch == synthetic.BitNet {
			shape.HeadDim = 128
		}
		load := windowed(synthesized(t, shape, gguf.Q4_0), arch, 20)
		tokens := make([]int32, 40)
		for i := range tokens {
			tokens[i] = int32(3 + i*31%290)
		}
		var logits [3][]float32
		for i, kind := range []string{"hexagon-go", "hexagon-go", ""} {
			b := onDevice(t, kind, Options{Lookups: len(tokens)}, p, load)
			if kind != "" {
				d := backendOf(t, b)
				if d.attention.tcm.longest = 32; i == 1 {
					d.plan.layers = nil
				} else if d.plan.layers == nil {
					t.Fatalf("%s: no layer is whole", arch)
				}
			}
			f := newFeeder(t, b.Model)
			logits[i] = slices.Concat(slices.Clone(f.feed(5, tokens[:15]...)), slices.Clone(f.feed(1, tokens[15])), f.feed(24, tokens[16:]...))
			if kind != "" {
				if n := backendOf(t, b).Work().Runs; (n < 10) != (i == 0) {
					t.Errorf("%s: %d requests", arch, n)
				}
			}
		}
		if e := nmse(logits[0], logits[1]); !(e <= deviceNoise) {
			t.Errorf("%s: NMSE between whole layers and single products is %.3g", arch, e)
		}
		if e := nmse(logits[0], logits[2]); !(e <= 20*cpuNoise) { // four bits by activations of eight
			t.Errorf("%s: NMSE against the CPU is %.3g", arch, e)
		}
	}
}

// Where the device cannot keep the keys of all layers at once, a step takes several runs; where
// not even a layer's, or where adapters or caches of other numbers come in, the host has it.
func TestLayersForWhichThereIsNoRoomAreComputedInTurnOrByTheHost(t *testing.T) {
	p := newPool(t)
	const slot = 2 * 4 * 2048 // KV heads, tiles of keys and values
	load := synthesized(t, smallShape, gguf.Q4_0)
	var first []float32
	for _, c := range []struct {
		keys      int
		runs      int64 // of a step at a context of 70 tokens: three slots a layer
		atLeast   bool
		different bool // bits: the host's arithmetic
	}{{0, 1, false, false}, {4 * slot, 2, false, false}, {2 * slot, 6, true, true}} {
		b := onDevice(t, "hexagon-go", Options{Path: PathLookup, Keys: c.keys}, p, load)
		d, f := backendOf(t, b), newFeeder(t, b.Model)
		for i := range 70 {
			f.feed(1, int32(3+i*31%290))
		}
		before := d.Work().Runs
		logits := f.feed(1, 77)
		if n := d.Work().Runs - before; n != c.runs && !(c.atLeast && n > c.runs) {
			t.Errorf("%d bytes of keys: %d requests", c.keys, n)
		}
		if first == nil {
			first = slices.Clone(logits)
		}
		if slices.Equal(first, logits) == c.different || nmse(logits, first) > deviceNoise {
			t.Errorf("%d bytes of keys: NMSE %.3g", c.keys, nmse(logits, first))
		}
	}
}

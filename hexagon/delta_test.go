package hexagon

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// deltaShape has delta nets in layers 0 to 2 and 4, and gated attention in layer 3.
var deltaShape = synthetic.Shape{Name: "delta", Hidden: 256, FFN: 288, Layers: 5, Heads: 2, KVHeads: 1, HeadDim: 128, Vocab: 300, Context: 512, RopeBase: 10000, Arch: synthetic.Qwen35,
	Delta: synthetic.Delta{KeyHeads: 2, ValueHeads: 4, Width: 32}}

// A token of a model with delta nets is a request, as is a chunk of a prompt; states stay on the device, and come back.
func TestAStepOfDeltaNetsIsOneRequest(t *testing.T) {
	runs, written, read := wholeLayers(t, deltaShape)
	if runs[0] != 1 || runs[1] < 20 {
		t.Errorf("%d requests a token; with the host between products %d", runs[0], runs[1])
	}
	const state = 4 * 4 * 32 * 32
	if written[0] >= state {
		t.Errorf("%d bytes are written: states that the device has are written again", written[0])
	}
	if n := read[0] - 4*state; n < 0 || n > 40_000 {
		t.Errorf("%d bytes are read: those of four states, and %d", read[0], n)
	}
}

// withHalves is a file some of whose matrices are in fp16.
func withHalves(t *testing.T, load func() (*gguf.File, error), names ...string) func() (*gguf.File, error) {
	return func() (*gguf.File, error) {
		f, err := load()
		if err != nil {
			return nil, err
		}
		tensors := slices.Clone(f.Tensors)
		for i := range tensors {
			x := &tensors[i]
			if !slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(x.Name, name+".weight") }) {
				continue
			}
			numbers := make([]float32, x.Len())
			if err := x.Dequantize(numbers, 0); err != nil {
				return nil, err
			}
			var halves []byte
			for _, v := range numbers {
				halves = binary.LittleEndian.AppendUint16(halves, layout.F16(v))
			}
			tensors[i] = gguf.Tensor{Name: x.Name, Type: gguf.F16, Dims: x.Dims, Data: halves}
		}
		var buf bytes.Buffer
		if err := gguf.Write(&buf, f.Metadata, tensors); err != nil {
			return nil, err
		}
		return gguf.Parse(buf.Bytes())
	}
}

// Products of q, k, v and z, of both gates, of queries, keys and values need not be one: files have gates in fp16, and
// other values than queries.
func TestDeltaNetsOfSeveralProductsAreWholeLayers(t *testing.T) {
	p := newPool(t)
	for _, names := range [][]string{{"ssm_alpha", "ssm_beta"}, {"ssm_alpha", "attn_gate", "attn_v"}} {
		load := withHalves(t, synthesized(t, deltaShape, gguf.Q4_0), names...)
		cpu := newFeeder(t, onDevice(t, "", Options{}, p, load).Model)
		want := append(slices.Clone(cpu.feed(1, someText(40)...)), cpu.feed(1, 9)...)
		b := onDevice(t, "hexagon-go", Options{}, p, load)
		d := backendOf(t, b)
		before, f := d.Work(), newFeeder(t, b.Model)
		got := append(slices.Clone(f.feed(1, someText(40)...)), f.feed(1, 9)...)
		if n := d.Work().Runs - before.Runs; n != 2 {
			t.Errorf("%v in fp16: a prompt and a token are %d requests", names, n)
		}
		if e := nmse(got, want); !(e <= 20*cpuNoise) {
			t.Errorf("%v in fp16: NMSE against the CPU is %.3g", names, e)
		}
	}
}

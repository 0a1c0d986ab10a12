package npu

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/lab/npu/soc"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

func plan(t *testing.T, x soc.Model, o Options) *Plan {
	t.Helper()
	p, err := NewPlan(x, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func named(t *testing.T, name string) soc.Model {
	t.Helper()
	x, ok := Shape(name)
	if !ok {
		t.Fatalf("no shape %s", name)
	}
	return x
}

func TestEveryShapeIsPlannedOnEveryChip(t *testing.T) {
	for i, name := range Shapes() {
		for k, chip := range soc.IDs() {
			if (i+k)%sweep.Of(t, 3, 1) != 0 {
				continue
			}
			o := DefaultOptions()
			o.Chip, o.Prompt = chip, 200
			p := plan(t, named(t, name), o)
			for _, c := range p.Chips {
				last := 0.0
				for _, b := range append([]Bound{c.Prefill}, c.Decode...) {
					if !(b.TokensPerSecond > 0) || !(b.JoulesPerToken > 0) || b.Seconds < max(b.DMA, b.Vector, b.Tiles, b.Host)-1e-12 {
						t.Errorf("%s on %s: %+v", name, c.Name, b)
					}
				}
				for _, b := range c.Decode {
					if b.Seconds < last {
						t.Errorf("%s on %s: a batch of %d is faster than a smaller one", name, c.Name, b.Tokens)
					}
					last = b.Seconds
				}
			}
		}
	}
}

func TestAFileIsPlannedAsItsShape(t *testing.T) {
	f, err := embedded.Open("lutra-tiny-s")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x, err := FromFile("lutra-tiny-s", f)
	if err != nil {
		t.Fatal(err)
	}
	want := named(t, "tiny")
	if x.Layers != want.Layers || x.Heads != want.Heads || x.KVHeads != want.KVHeads || x.HeadDim != want.HeadDim || len(x.Matrices) != len(want.Matrices) {
		t.Errorf("the file gives %+v\nits shape %+v", x, want)
	}
	for _, m := range x.Matrices {
		i := slices.IndexFunc(want.Matrices, func(w soc.Matrix) bool { return w.Name == m.Name })
		if i < 0 {
			t.Errorf("%s is in no shape", m.Name)
			continue
		}
		w := want.Matrices[i]
		if head := m.Input == soc.Logits; m.Host || head && m.Bits != 16 || m.Count != w.Count || !head && m != w {
			t.Errorf("the file has %+v, its shape %+v", m, w)
		}
	}
}

// Layers of LFM2 without attention have matrices of their own names, and no heads.
func TestShortConvolutionsArePlanned(t *testing.T) {
	s := synthetic.Shape{Name: "conv", Hidden: 256, FFN: 512, Layers: 4, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 300, Context: 512, RopeBase: 1e4, Arch: synthetic.LFM2}
	f, err := synthetic.Build(s, synthetic.Options{Blocks: gguf.Q4_0, Head: gguf.Q4_0})
	if err != nil {
		t.Fatal(err)
	}
	x, err := FromFile("conv", f)
	if err != nil {
		t.Fatal(err)
	}
	if x.Layers != 1 || x.Convs != 3 || x.KVHeads != 2 {
		t.Errorf("%d layers with attention of %d KV heads, %d with convolutions; want 1 of 2, and 3", x.Layers, x.KVHeads, x.Convs)
	}
	for name, rows := range map[string]int{"shortconv.in_proj": 768, "shortconv.out_proj": 256} {
		if i := slices.IndexFunc(x.Matrices, func(m soc.Matrix) bool { return m.Name == name && m.M == rows && m.Count == 3 }); i < 0 {
			t.Errorf("no %s of %d rows among %+v", name, rows, x.Matrices)
		}
	}
	o := DefaultOptions()
	o.Context = 256
	plan(t, x, o)
}

// Layers of Qwen3.5 without attention have states, which come and go with every token.
func TestDeltaNetsArePlanned(t *testing.T) {
	s := synthetic.Shape{Name: "delta", Hidden: 256, FFN: 512, Layers: 4, Heads: 2, KVHeads: 1, HeadDim: 128, Vocab: 300, Context: 512, RopeBase: 1e4, Arch: synthetic.Qwen35,
		Delta: synthetic.Delta{KeyHeads: 2, ValueHeads: 4, Width: 128}}
	f, err := synthetic.Build(s, synthetic.Options{Blocks: gguf.Q4_0, Head: gguf.Q4_0})
	if err != nil {
		t.Fatal(err)
	}
	x, err := FromFile("delta", f)
	if err != nil {
		t.Fatal(err)
	}
	if x.Layers != 1 || x.Deltas != 3 || x.State != 4*4*128*128 {
		t.Errorf("%d layers with attention, %d with states of %d bytes; want 1, and 3 of %d", x.Layers, x.Deltas, x.State, 4*4*128*128)
	}
	m := soc.NewMachine(soc.Chips()[0])
	with := m.Decode(&x, 2, 64)
	x.State = 0
	without := m.Decode(&x, 2, 64)
	if least := 2 * 3 * 2 * 4 * 4 * 128 * 128 / 100e9; with.Seconds < without.Seconds+least {
		t.Errorf("a token of two sequences takes %.3g s, without states %.3g", with.Seconds, without.Seconds)
	}
	o := DefaultOptions()
	o.Context = 256
	plan(t, x, o)
}

func TestARewardModelHasNoVocabularyToMultiply(t *testing.T) {
	f, err := embedded.Open("lutra-tiny-prm")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x, err := FromFile("prm", f)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range x.Matrices {
		if m.Input == soc.Logits {
			t.Errorf("it has %+v", m)
		}
	}
	if x.Layers != 5 || x.KVBytes() == 0 || len(x.Matrices) != 7 {
		t.Errorf("%d layers with attention and %d matrices, want 5 and 7: %+v", x.Layers, len(x.Matrices), x)
	}
	plan(t, x, DefaultOptions())
}

func TestFilesThatAreNoModelsAreRefused(t *testing.T) {
	for name, f := range map[string]*gguf.File{
		"nothing":   {Metadata: gguf.Metadata{}},
		"no heads":  {Metadata: gguf.Metadata{"general.architecture": "llama", "llama.attention.head_count": int64(0)}},
		"odd heads": {Metadata: gguf.Metadata{"general.architecture": "llama", "llama.attention.head_count": int64(5), "llama.attention.head_count_kv": int64(2)}},
		"no width":  {Metadata: gguf.Metadata{"general.architecture": "llama", "llama.attention.head_count": int64(4)}},
		"no matrix": {Metadata: gguf.Metadata{"general.architecture": "llama", "llama.attention.head_count": int64(4), "llama.embedding_length": int64(64)}},
	} {
		if _, err := FromFile(name, f); err == nil {
			t.Errorf("%s is planned", name)
		}
	}
}

func TestWhatCannotBePlannedIsRefused(t *testing.T) {
	x := named(t, "tiny")
	for _, change := range []func(*Options){
		func(o *Options) { o.Prompt = 0 }, func(o *Options) { o.Context = 1 << 30 }, func(o *Options) { o.Clock = -1 }, func(o *Options) { o.Clock = math.NaN() },
		func(o *Options) { o.CyclesPerPacket = 1e9 }, func(o *Options) { o.Chip = "6502" },
	} {
		o := DefaultOptions()
		change(&o)
		if _, err := NewPlan(x, o); err == nil {
			t.Errorf("%+v is planned", o)
		}
	}
	if err := (Change{Bits: 3}).Apply(&x); err == nil {
		t.Error("three bits are stored")
	}
}

func TestClockAndCyclesAreInputs(t *testing.T) {
	x := named(t, "bitnet-2b")
	o := DefaultOptions()
	o.Clock, o.CyclesPerPacket = 2.44, 6
	slow := plan(t, x, o).Chips[1].Decode[0]
	fast := plan(t, x, DefaultOptions()).Chips[1].Decode[0]
	if r := slow.Vector / fast.Vector; r < 2.9 || r > 3 { // barriers take what they took
		t.Errorf("three times the cycles take %v times the vector time", r)
	}
	if slow.DMA != fast.DMA {
		t.Error("DMA depends on the clock")
	}
}

func TestThePlanSaysThatItIsModelled(t *testing.T) {
	p := plan(t, named(t, "bitnet-2b"), DefaultOptions())
	var text, svg, js bytes.Buffer
	if err := errors.Join(p.Print(&text), p.SVG(&svg), json.NewEncoder(&js).Encode(p)); err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]string{"text": text.String(), "drawing": svg.String(), "JSON": js.String()} {
		if !strings.Contains(out, "modelled") {
			t.Errorf("the %s does not", name)
		}
	}
	for d := xml.NewDecoder(&svg); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheExaminationFindsTheGoDeviceAndNamesTheRest(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("DSP_LIBRARY_PATH", t.TempDir())
	list := Examine(t.Context())
	var out bytes.Buffer
	if err := PrintFindings(&out, list); err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		switch f.Part {
		case "pure-Go device":
			if !f.Found {
				t.Error("it lacks the pure-Go device")
			}
		case "qemu-hexagon", "clang-19", "skel library":
			if f.Found || f.Detail == "" {
				t.Errorf("%s: %+v, with nothing on PATH", f.Part, f)
			}
		}
		if !strings.Contains(out.String(), f.Part) {
			t.Errorf("%s is not printed", f.Part)
		}
	}
}

// The packets of BitNet-2B's steps executed in batches and for a prompt; between its first and last chunk attention grows evenly.
func TestAPlanOfTheModelThatExecutedSaysWhatExecuted(t *testing.T) {
	o := DefaultOptions()
	o.Context = tmanContext
	p := plan(t, named(t, stepModel), o)
	chip, _ := soc.Named(o.Chip)
	m := soc.NewMachine(chip)
	run := func(x *soc.Executed, err error) float64 {
		if err != nil {
			t.Fatal(err)
		}
		return m.Run(x.Whole(p.Model.Layers)).Seconds
	}
	i := slices.IndexFunc(p.Chips, func(b Bounds) bool { return b.ID == o.Chip })
	for _, b := range p.Chips[i].Decode {
		if !slices.Contains(soc.ExecutedBatches, b.Tokens) {
			continue
		}
		if want := run(soc.ExecutedBatch(b.Tokens)); math.Abs(b.Seconds-want) > 1e-3*want { // paths may change behind the layers
			t.Errorf("a batch of %d is planned as %v s, executed %v", b.Tokens, b.Seconds, want)
		}
	}
	chunk := func(context int) float64 {
		return run(soc.ExecutedStep(soc.Step{Model: stepModel, Batch: 1, Rows: soc.Chunk, Context: context, Path: soc.ByTiles}))
	}
	want := 4 * (chunk(soc.Chunk) + chunk(promptTokens))
	if got := p.Chips[i].Prefill.Seconds; got < want || got > 1.003*want { // with logits of a token
		t.Errorf("a prompt is planned as %v s, executed %v", got, want)
	}
}

package synthetic

import (
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"
	"testing"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

func TestTheSameSeedGivesTheSameFile(t *testing.T) {
	shape, err := Named("tiny")
	if err != nil {
		t.Fatal(err)
	}
	file := func(seed uint64) []byte {
		var b bytes.Buffer
		opt := DefaultOptions()
		opt.Seed = seed
		if err := Write(&b, shape, opt); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	if a := file(1); !bytes.Equal(a, file(1)) || bytes.Equal(a, file(2)) {
		t.Errorf("files of seeds 1, 1 and 2: want the first two equal and the third different")
	}
}

func TestWeightsHaveTheirTypesCodesAndDeviation(t *testing.T) {
	shape, err := Named("tiny")
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []gguf.Type{gguf.F32, gguf.F16, gguf.BF16, gguf.Q8_0, gguf.Q4_0, gguf.MXFP4, gguf.NVFP4, gguf.Q4_K, gguf.Q6_K, gguf.TQ1_0, gguf.TQ2_0, gguf.Q1_0, gguf.Q2_0, gguf.PQ2_0, gguf.PTQ1_0,
		gguf.Q5_1, gguf.Q5_K, gguf.IQ4_XS} {
		f, err := Build(shape, Options{Blocks: typ, Head: typ, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		for name, std := range map[string]float64{"token_embd.weight": 2. / 16, "blk.2.ffn_down.weight": 1 / math.Sqrt(768)} {
			x := f.Tensor(name)
			v := make([]float32, x.Len())
			if err := x.Dequantize(v, 0); err != nil {
				t.Fatal(err)
			}
			sum, squares, values := 0.0, 0.0, map[float32]bool{}
			for _, w := range v {
				sum += float64(w)
				squares += float64(w) * float64(w)
				values[w] = true
			}
			n := float64(len(v))
			if got := math.Sqrt(squares / n); math.Abs(got-std) > 0.05*std {
				t.Errorf("%v: %s has deviation %g, want %g", typ, name, got, std)
			}
			// Codes reach one step further down than up: half a step of bias at most.
			if bias := math.Abs(sum / n); bias > std*math.Sqrt(12)/32+0.02*std {
				t.Errorf("%v: %s has mean %g at deviation %g", typ, name, sum/n, std)
			}
			few := map[gguf.Type]int{gguf.TQ1_0: 3, gguf.TQ2_0: 3, gguf.Q1_0: 4, gguf.Q2_0: 5, gguf.PQ2_0: 5, gguf.PTQ1_0: 5}[typ]
			if few != 0 && len(values) != few || few == 0 && len(values) < 16 {
				t.Errorf("%v: %s has %d different values", typ, name, len(values))
			}
		}
	}
}

func TestTheTokenizerReadsBackAnyBytes(t *testing.T) {
	shape, err := Named("tiny")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Build(shape, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tokenizer.New(f.Metadata); err != nil {
		t.Fatalf("the tokenizer is refused: %v", err)
	}
	tokens, _ := f.Metadata.Strings("tokenizer.ggml.tokens")
	seen := map[string]bool{}
	for _, s := range tokens {
		seen[s] = true
	}
	if len(tokens) != shape.Vocab || len(seen) != shape.Vocab {
		t.Errorf("%d tokens, %d different, want %d", len(tokens), len(seen), shape.Vocab)
	}
	for b, want := range map[int]string{'A': "A", ' ': "Ġ", '\n': "Ċ", 0: "Ā", 0xff: "ÿ", 0xad: "Ń"} {
		if tokens[b] != want {
			t.Errorf("byte %#x is token %q, want %q", b, tokens[b], want)
		}
	}
}

func TestEveryArchitectureLoads(t *testing.T) {
	shape, err := Named("tiny")
	if err != nil {
		t.Fatal(err)
	}
	pool := pool.New(1)
	defer pool.Close()
	for _, shape.Arch = range []Arch{Llama, BitNet, Gemma2, Cohere2, LFM2} {
		f, err := Build(shape, DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		b, err := models.LoadFile(f, models.LoadOptions{Pool: pool})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Model.Config(); got.Arch != string(shape.Arch) || got.Layers != shape.Layers || got.Packings != "I2" {
			t.Errorf("%s loads as %+v", shape.Arch, got)
		}
	}
	shape.Layers, shape.Delta = 4, Delta{KeyHeads: 2, ValueHeads: 2, Width: 32} // of Qwen35MoE
	shape.Spaces = Spaces{"M*-E", 4, 16, 2, 32}                                 // of NemotronHMoE
	for _, shape.Arch = range []Arch{GPTOSS, Qwen2MoE, Qwen35MoE, LFM2MoE, NemotronHMoE} {
		shape.Experts = Experts{Count: 4, Used: 2, FFN: 64, Shared: 64, Dense: 1}
		if shape.Arch != LFM2MoE {
			shape.Experts.Dense = 0
		}
		f, err := Build(shape, Options{Blocks: gguf.MXFP4, Head: gguf.Q8_0, Finer: gguf.Q8_0})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := models.LoadFile(f, models.LoadOptions{Pool: pool}); err != nil || b.Model.Config().Arch != string(shape.Arch) || b.Model.Config().DenseLayers != shape.Experts.Dense {
			t.Errorf("%s loads as %+v, %v", shape.Arch, b, err)
		}
	}
	shape.Arch = "mamba"
	if _, err := Build(shape, DefaultOptions()); !errors.Is(err, ErrOptions) {
		t.Errorf("Build(mamba) = %v, want ErrOptions", err)
	}
}

func TestEveryNamedShapeIsAModel(t *testing.T) {
	for _, s := range Shapes() {
		types := []gguf.Type{gguf.TQ1_0, gguf.TQ2_0}
		if s.Arch == GPTOSS || s.onePart() {
			types = []gguf.Type{gguf.MXFP4, gguf.Q8_0} // their rows are no whole blocks of others
		}
		for _, typ := range types {
			if _, err := s.sources(Options{Blocks: typ, Head: gguf.Q4_0}); err != nil {
				t.Errorf("%s in %v: %v", s.Name, typ, err)
			}
		}
	}
	if _, err := Named("huge"); !errors.Is(err, ErrOptions) {
		t.Errorf("Named(huge) = %v, want ErrOptions", err)
	}
}

func TestImpossibleModelsAreRefused(t *testing.T) {
	tiny, err := Named("tiny")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Shape, *Options){
		"no layers":                func(s *Shape, _ *Options) { s.Layers = 0 },
		"a vocabulary below bytes": func(s *Shape, _ *Options) { s.Vocab = 255 },
		"uneven KV heads":          func(s *Shape, _ *Options) { s.KVHeads = 3 },
		"rows of partial blocks":   func(s *Shape, _ *Options) { s.Hidden = 128 },
		"an unknown type":          func(_ *Shape, o *Options) { o.Head = 99 },
		"a type without filler":    func(_ *Shape, o *Options) { o.Head = gguf.IQ1_M },
	} {
		s, o := tiny, DefaultOptions()
		change(&s, &o)
		if err := Write(io.Discard, s, o); !errors.Is(err, ErrOptions) {
			t.Errorf("Write with %s = %v, want ErrOptions", name, err)
		}
		if f, err := Build(s, o); f != nil || !errors.Is(err, ErrOptions) {
			t.Errorf("Build with %s = %v, want ErrOptions", name, err)
		}
	}
}

func TestWritingTakesNoMemoryThatGrowsWithTheModel(t *testing.T) {
	s, err := Named("tiny")
	if err != nil {
		t.Fatal(err)
	}
	s.FFN, s.Layers = 8192, 8 // 55 million weights, 14 MB
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := Write(io.Discard, s, DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("writing 14 MB allocated %d bytes", got)
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, s := range Shapes() {
		if s.Vocab > 1024 && s.Name != "falcon3-1b" {
			continue // as falcon3-1b, longer
		}
		for _, typ := range []gguf.Type{gguf.TQ1_0, gguf.TQ2_0} {
			b.Run(s.Name+"/"+typ.String(), func(b *testing.B) {
				for b.Loop() {
					if err := Write(io.Discard, s, Options{Blocks: typ, Head: gguf.Q6_K}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

package models

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// recurrentShape is a small model whose last layer is recurrent.
var recurrentShape = synthetic.Shape{
	Name: "recurrent", Hidden: 64, FFN: 96, Layers: 6, Heads: 2, KVHeads: 1, HeadDim: 32, Vocab: 300, Context: 512,
	RopeBase: 10000, TiedEmbedding: true, Arch: synthetic.Qwen35, Delta: synthetic.Delta{KeyHeads: 2, ValueHeads: 4, Width: 16},
}

// spacesShape is one whose layers are state spaces, attention or feed-forwards.
var spacesShape = synthetic.Shape{
	Name: "spaces", Hidden: 64, FFN: 96, Layers: 6, Heads: 2, KVHeads: 1, HeadDim: 32, Vocab: 300, Context: 512,
	RopeBase: 10000, Arch: synthetic.NemotronH, Spaces: synthetic.Spaces{Pattern: "M-*MM-", Heads: 4, HeadDim: 12, Groups: 2, Len: 20},
}

// aloneShape is one whose layers are state spaces, so that nothing has keys and values.
var aloneShape = synthetic.Shape{
	Name: "alone", Hidden: 64, FFN: 96, Layers: 3, Heads: 2, KVHeads: 1, HeadDim: 32, Vocab: 300, Context: 512,
	RopeBase: 10000, Arch: synthetic.Mamba2, Spaces: synthetic.Spaces{Pattern: "MMM", Heads: 4, HeadDim: 12, Groups: 2, Len: 20},
}

// convShape is one whose layers are short convolutions but for every third.
var convShape = synthetic.Shape{
	Name: "conv", Hidden: 64, FFN: 96, Layers: 5, Heads: 2, KVHeads: 1, HeadDim: 32, Vocab: 300, Context: 512,
	RopeBase: 10000, TiedEmbedding: true, Arch: synthetic.LFM2,
}

// recurrentShapes are one of each kind of recurrent layers.
var recurrentShapes = []synthetic.Shape{recurrentShape, spacesShape, aloneShape, convShape}

// recurrentModel writes a model of shape s and returns its path.
func recurrentModel(t testing.TB, s synthetic.Shape, kind gguf.Type) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(synthetic.Write(f, s, synthetic.Options{Blocks: kind, Head: kind, Seed: 4}), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestARecurrentModelGivesEverySequenceTheBitsItGetsAlone(t *testing.T) {
	wider := recurrentShape
	wider.Layers = 4 // the last one has attention
	wider.Hidden, wider.FFN, wider.HeadDim, wider.Delta.Width = 128, 128, 64, 32
	for _, c := range []struct {
		shape synthetic.Shape
		kinds []gguf.Type
	}{
		{recurrentShape, []gguf.Type{gguf.F16, gguf.Q8_0}},
		{wider, []gguf.Type{gguf.Q1_0, gguf.PQ2_0}},
		{spacesShape, []gguf.Type{gguf.F16}},
		{aloneShape, []gguf.Type{gguf.F16}},
	} {
		shape := c.shape
		n := 24
		if testing.Short() { // for emulators: the layers' states are the same behind other packings
			c.kinds, n = c.kinds[:1], 9
		}
		for _, kind := range c.kinds {
			t.Run(fmt.Sprintf("%s, %d layers of %v", shape.Arch, shape.Layers, kind), func(t *testing.T) {
				path := recurrentModel(t, shape, kind)
				together(t, path, kv.F16, conversations(t, path, kv.F16, n), false)
			})
		}
	}
}

func TestPiecesOfAPromptHaveTheBitsOfTheWhole(t *testing.T) {
	for _, shape := range recurrentShapes {
		m := openModel(t, recurrentModel(t, shape, gguf.F16), LoadOptions{})
		tokens := make([]int32, 70)
		for i := range tokens {
			tokens[i] = int32(i * 37 % 300)
		}
		want := slices.Clone(newRunner(t, m, kv.F16).feed(len(tokens), tokens...))
		width := m.Config().Outputs
		for _, size := range []int{1, 3, 16, 33} {
			r := newRunner(t, m, kv.F16)
			for at := 0; at < len(tokens); at += size {
				end := min(len(tokens), at+size)
				got := r.feed(end-at, tokens[at:end]...)
				compareBits(t, fmt.Sprintf("%s: pieces of %d from %d", shape.Arch, size, at), got, want[at*width:end*width])
			}
		}
	}
}

func TestForksAndCutSequencesOfARecurrentModelGoOnAsIfAlone(t *testing.T) {
	for _, shape := range recurrentShapes {
		t.Run(string(shape.Arch), func(t *testing.T) { forksAndCuts(t, shape) })
	}
}

func forksAndCuts(t *testing.T, shape synthetic.Shape) {
	m := openModel(t, recurrentModel(t, shape, gguf.F16), LoadOptions{})
	alone := func(tokens []int32) []float32 {
		return slices.Clone(newRunner(t, m, kv.F16).feed(1, tokens...))
	}
	prompt := tokensOf(40, 7)
	r := newRunner(t, m, kv.F16)
	r.feed(1, prompt...)
	r.seq.Seal(prompt)
	fork := *r
	fork.seq, fork.b = r.seq.Fork(), Batch{}
	a, b := append(slices.Clone(prompt), 1, 2), append(slices.Clone(prompt), 9, 8)
	r.feed(1, 1)
	fork.feed(1, 9)
	compareBits(t, "parent", r.feed(1, 2), alone(a))
	compareBits(t, "fork", fork.feed(1, 8), alone(b))
	r.seq.Truncate(36) // the checkpoint stands after 32
	if n := r.seq.Len(); n != 32 {
		t.Fatalf("cut to 36 tokens the sequence holds %d, want 32", n)
	}
	compareBits(t, "cut", r.feed(1, append(slices.Clone(prompt[32:36]), 5)...), alone(append(slices.Clone(prompt[:36]), 5)))
	r.seq.Truncate(3)
	if n := r.seq.Len(); n != 0 {
		t.Fatalf("cut to 3 tokens the sequence holds %d, want none", n)
	}
	compareBits(t, "begun anew", r.feed(1, 4, 4), alone([]int32{4, 4}))
	again := *r
	again.seq, again.b = r.kv.Open(prompt[:39]), Batch{}
	if n := again.seq.Len(); n != 32 {
		t.Fatalf("%d tokens of the prompt are found, want 32", n)
	}
	compareBits(t, "prefix", again.feed(1, prompt[32:]...), alone(prompt))
	if err := r.kv.Check(r.seq, fork.seq, again.seq); err != nil {
		t.Error(err)
	}
}

// TestGuessesThatAreTakenBackLeaveNoTrace computes several sequences at once, with guesses of which some are wrong, at
// every place in the chunks of a gated delta net.
func TestGuessesThatAreTakenBackLeaveNoTrace(t *testing.T) {
	for _, shape := range recurrentShapes {
		t.Run(string(shape.Arch), func(t *testing.T) {
			m := openModel(t, recurrentModel(t, shape, gguf.F16), LoadOptions{})
			for _, kind := range kvTypes(m, kv.F16, kv.Int4) {
				takeBackGuesses(t, m, kind)
			}
		})
	}
}

func takeBackGuesses(t *testing.T, m Model, kind kv.Type) {
	cache, err := kv.New(m.Config().KV(), kv.Options{Type: kind, BlockLen: 16, Blocks: 256, States: 40})
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	const streams, length = 3, 110
	var seqs [streams]*kv.Sequence
	var tokens [streams][]int32
	var want [streams][]float32
	for i := range seqs {
		seqs[i], tokens[i] = cache.Open(nil), tokensOf(length+20, 3+i)
		want[i] = slices.Clone(newRunner(t, m, kind).feed(length, tokens[i][:length]...))
	}
	width, random := m.Config().Outputs, rand.New(rand.NewPCG(1, 2))
	var b Batch
	for seqs[0].Len() < length || seqs[1].Len() < length || seqs[2].Len() < length {
		var keep []int
		var of []int
		b.Reset()
		for i, s := range seqs {
			at := s.Len()
			if at >= length || random.IntN(4) == 0 {
				continue
			}
			guesses := min(random.IntN(20), cache.Ahead(s), length-1-at)
			right := random.IntN(guesses + 1)
			if err := errors.Join(s.Grow(1+guesses), s.Guess(guesses)); err != nil {
				t.Fatal(err)
			}
			ids := slices.Clone(tokens[i][at : at+1+guesses])
			for k := 1 + right; k < len(ids); k++ {
				ids[k] = (ids[k] + 1) % 300
			}
			b.Add(s, at, len(ids), ids...)
			of, keep = append(of, i), append(keep, 1+right)
		}
		if len(of) == 0 {
			continue
		}
		if err := m.Forward(&b, cache); err != nil {
			t.Fatal(err)
		}
		m.TakeBack(&b, keep)
		row := 0
		for j, i := range of {
			at := int(b.Positions[b.Spans[j].Start])
			compareBits(t, fmt.Sprintf("KV %v: sequence %d from %d, %d of %d guesses", kind, i, at, keep[j]-1, b.Spans[j].Out-1),
				b.Logits[row*width:(row+keep[j])*width], want[i][at*width:(at+keep[j])*width])
			row += b.Spans[j].Out
			if seqs[i].Truncate(at + keep[j]); seqs[i].Len() != at+keep[j] {
				t.Fatalf("KV %v: %d tokens are left of %d", kind, seqs[i].Len(), at+keep[j])
			}
			seqs[i].Seal(tokens[i])
		}
		if err := cache.Check(seqs[:]...); err != nil {
			t.Fatal(err)
		}
	}
	for i := range seqs { // the checkpoint was not made of guesses
		again := newRunner(t, m, kind)
		again.kv, again.seq = cache, cache.Open(tokens[i][:100])
		if n := again.seq.Len(); n != 64 {
			t.Errorf("%d tokens of sequence %d are found, want 64", n, i)
		}
		compareBits(t, "from the checkpoint", again.feed(1, tokens[i][64:100]...), want[i][99*width:100*width])
	}
}

// tokensOf is n tokens that seed chooses.
func tokensOf(n, seed int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32((i*i + seed*i + seed) % 300)
	}
	return tokens
}

func TestASpanMustGoOnWhereTheRecurrentStateStands(t *testing.T) {
	m := openModel(t, recurrentModel(t, recurrentShape, gguf.F16), LoadOptions{})
	r := newRunner(t, m, kv.F16)
	r.feed(1, 1, 2, 3)
	for what, pos := range map[string]int{"again": 2, "from the start": 0} {
		r.b.Reset()
		r.b.Add(r.seq, pos, 1, 3)
		if err := m.Forward(&r.b, r.kv); !errors.Is(err, ErrBatch) {
			t.Errorf("a token computed %s: %v", what, err)
		}
	}
	if err := r.seq.Grow(2); err != nil {
		t.Fatal(err)
	}
	r.b.Reset()
	r.b.Add(r.seq, 4, 1, 3)
	if err := m.Forward(&r.b, r.kv); !errors.Is(err, ErrBatch) {
		t.Errorf("a token left out: %v", err)
	}
	r.seq.Fork()
	r.b.Reset()
	r.b.Add(r.seq, 3, 1, 3)
	if err := m.Forward(&r.b, r.kv); !errors.Is(err, ErrBatch) {
		t.Errorf("a state that a fork shares: %v", err)
	}
}

func TestAWarmStepOfARecurrentModelAllocatesNothing(t *testing.T) {
	sweep.NoEmulator(t)
	for _, shape := range recurrentShapes {
		m := openModel(t, recurrentModel(t, shape, gguf.F16), oneThread(t))
		r := newRunner(t, m, kv.F16)
		r.feed(1, tokensOf(40, 3)...)
		if n := testing.AllocsPerRun(30, func() { r.feed(1, 5) }); n != 0 {
			t.Errorf("%s: %v allocations a step", shape.Arch, n)
		}
	}
}

func TestARecurrentModelThatCannotRunIsRefusedByName(t *testing.T) {
	sweep.NoEmulator(t)
	path := recurrentModel(t, recurrentShape, gguf.F16)
	pool := pool.New(1)
	defer pool.Close()
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{"qwen35.full_attention_interval", uint32(7), "none of 6 layers has attention"},
		{"qwen35.full_attention_interval", uint32(0), "full_attention_interval is 0"},
		{"qwen35.full_attention_interval", uint32(2), "blk.1.attn_q.weight is missing"},
		{"qwen35.ssm.state_size", uint32(24), "ssm.state_size is 24, want a multiple of 16"},
		{"qwen35.ssm.state_size", uint32(1 << 31), "ssm.state_size is 2147483648"},
		{"qwen35.ssm.conv_kernel", uint32(1), "ssm.conv_kernel is 1"},
		{"qwen35.ssm.conv_kernel", uint32(3), "blk.0.ssm_conv1d.weight has shape [4 128], want [3 128]"},
		{"qwen35.ssm.group_count", uint32(3), "4 value heads do not share 3 key heads"},
		{"qwen35.ssm.group_count", nil, "ssm.group_count is missing"},
		{"qwen35.ssm.time_step_rank", uint32(1 << 19), "ssm.inner_size is 64: 524288 value heads"},
		{"qwen35.ssm.inner_size", uint32(128), "4 value heads of 16 are 64"},
		{"qwen35.expert_count", uint32(8), "mixtures of experts are not supported"},
		{"prism.hadamard.version", uint32(1), `prism.hadamard.transform is "", want`},
		{"prism.hadamard.version", uint32(2), "prism.hadamard.version is 2 with prism.hadamard.tied_output false"},
		{"prism.hadamard.scheme", "x", "prism.hadamard.scheme is not supported"},
	} {
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Metadata[c.key] = c.value; c.value == nil {
			delete(f.Metadata, c.key)
		}
		if _, err := loadModel(f, LoadOptions{Pool: pool}); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s = %v: loading gave %v, want an error that says %q", c.key, c.value, err, c.want)
		}
		f.Close()
	}
}

func TestLayersThatPredictFurtherAheadAreLeftOut(t *testing.T) {
	path := rotated(t, recurrentModel(t, recurrentShape, gguf.F32), true, true)
	whole := newRunner(t, openModel(t, path, LoadOptions{}), kv.F16).feed(1, 1, 2, 3)
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Metadata["qwen35.block_count"], f.Metadata["qwen35.nextn_predict_layers"] = uint32(7), uint32(1)
	more := f.Tensors[2]
	more.Name = "blk.6.nextn.eh_proj.weight"
	names, _ := f.Metadata.Strings("prism.hadamard.weight_names")
	f.Metadata["prism.hadamard.weight_names"] = append(slices.Clone(names), more.Name)
	md, tensors := maps.Clone(f.Metadata), append(slices.Clone(f.Tensors), more)
	var b strings.Builder
	if err := gguf.Write(&b, md, tensors); err != nil {
		t.Fatal(err)
	}
	g, err := gguf.Parse([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	pool := pool.New(1)
	defer pool.Close()
	m, err := loadModel(g, LoadOptions{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	compareBits(t, "without the predictor", newRunner(t, m, kv.F16).feed(1, 1, 2, 3), whole)
}

func FuzzRecurrentShapes(f *testing.F) {
	path := recurrentModel(f, recurrentShape, gguf.F16)
	pool := pool.New(1)
	f.Cleanup(pool.Close)
	f.Add(uint32(4), uint32(16), uint32(2), uint32(4), uint32(64), uint32(4))
	f.Add(uint32(1<<20), uint32(1<<10), uint32(1<<20), uint32(1<<20), uint32(1<<20), uint32(8))
	f.Fuzz(func(t *testing.T, interval, width, keys, values, inner, taps uint32) {
		file, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		maps.Copy(file.Metadata, gguf.Metadata{
			"qwen35.full_attention_interval": interval, "qwen35.ssm.state_size": width, "qwen35.ssm.group_count": keys,
			"qwen35.ssm.time_step_rank": values, "qwen35.ssm.inner_size": inner, "qwen35.ssm.conv_kernel": taps,
		})
		m, err := loadModel(file, LoadOptions{Pool: pool})
		if err != nil {
			if !errors.Is(err, ErrModel) {
				t.Error(err)
			}
			return
		}
		defer m.close()
		newRunner(t, m, kv.F16).feed(1, 1, 2, 3)
	})
}

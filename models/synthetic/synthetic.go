// Package synthetic makes models of a given shape with random weights, for
// measuring speed without any download: same seed, same file.
//
//	Shape + Options ──Write──▶ GGUF (streamed, tensor by tensor)
//	                └─Build──▶ *gguf.File in memory
//
// The block matrices are ternary unless asked otherwise, scaled so that
// activations and logits have the size of a trained model's. The tokenizer has
// one token a byte, a few special ones, and names for the rest of the
// vocabulary. What the model says is noise; how fast it says it is real.
package synthetic

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/lutra-lm/lutra/models/gguf"
)

// ErrOptions says that a shape or the options cannot be a model.
var ErrOptions = errors.New("synthetic: bad options")

// Shape is the size of a model.
type Shape struct {
	Name          string
	Hidden, FFN   int
	Layers        int
	Heads         int
	KVHeads       int
	HeadDim       int
	Vocab         int
	Context       int
	RopeBase      float32
	TiedEmbedding bool // the embedding is the output matrix too
	Arch          Arch
	Delta         Delta
	Experts       Experts // in place of the feed-forward
	Spaces        Spaces
	Predicts      bool // one layer more predicts a token further ahead, of Qwen35 and Qwen35MoE
}

// Delta is the size of the gated delta nets of Qwen35 and Qwen35MoE, three layers of four.
type Delta struct{ KeyHeads, ValueHeads, Width int }

// taps and attentionInterval are the same in every model of that architecture.
const (
	taps              = 4
	convTaps          = 3 // of LFM2
	attentionInterval = 4
)

// Arch is an architecture, by its general.architecture.
type Arch string

// The architectures of synthetic models.
const (
	Llama    Arch = "llama"
	BitNet   Arch = "bitnet-b1.58" // with two more norms a layer
	Qwen35   Arch = "qwen35"       // gated delta nets, and gated attention in every fourth layer
	Qwen3MoE Arch = "qwen3moe"     // mixtures of experts
	GPTOSS   Arch = "gpt-oss"      // the same with biases and sinks, and windows in every other layer
	Gemma2   Arch = "gemma2"       // soft caps, norms of what is added, windows in every other layer
	LFM2     Arch = "lfm2"         // short convolutions, and attention in every third layer
	LFM2MoE  Arch = "lfm2moe"      // the same with mixtures behind some feed-forwards
	Qwen2MoE Arch = "qwen2moe"     // mixtures with an expert that all tokens take, behind a gate
	// Qwen35MoE is Qwen35 with the mixtures of Qwen2MoE.
	Qwen35MoE Arch = "qwen35moe"
	Cohere2   Arch = "cohere2" // LayerNorm, of which both half layers read one, and windows in three layers of four
	// NemotronH has layers of one part each, as Spaces says; NemotronHMoE with mixtures.
	NemotronH    Arch = "nemotron_h"
	NemotronHMoE Arch = "nemotron_h_moe"
	Mamba2       Arch = "mamba2" // state spaces alone
)

// Shapes lists the named shapes.
//
//   - tiny: the shape of the embedded small model.
//   - falcon3-1b: tiiuae/Falcon3-1B-Instruct, as published in 1.58 bits.
//   - falcon3-draft: an eighth of it, of the same vocabulary, to draft for it.
//   - bitnet-2b: the sizes of microsoft/bitnet-b1.58-2B-4T as a Llama, which
//     other engines run too.
//   - bitnet-2b-4t: the same model in its own architecture, with its extra norms
//     and squared ReLU.
//   - bonsai-1.7b, bonsai-8b: the sizes of prism-ml's Bonsai, which are
//     Qwen3's, as a Llama.
//   - qwen3-30b-a3b: Qwen3-30B-A3B, 128 experts a layer of which a token takes 8.
//   - gpt-oss-20b: 32 experts a layer of which a token takes 4. As published in
//     MXFP4, the experts alone are of the blocks' type, all else of the head's.
//   - qwen35-0.8b, qwen35-27b: Qwen3.5-0.8B, and 27B, which Bonsai 27B is made of; with
//     -mtp, with their layer that predicts a token further ahead.
//   - nemotron-nano-9b: the sizes of NVIDIA-Nemotron-Nano-9B-v2.
//   - nemotron-3-nano-30b: the sizes of NVIDIA-Nemotron-3-Nano-30B-A3B.
func Shapes() []Shape {
	return []Shape{
		{"tiny", 256, 768, 3, 8, 4, 32, 1024, 1024, 10000, true, Llama, Delta{}, Experts{}, Spaces{}, false},
		{"falcon3-1b", 2048, 8192, 18, 8, 4, 256, 131072, 8192, 1000042, false, Llama, Delta{}, Experts{}, Spaces{}, false},
		{"falcon3-draft", 512, 1536, 6, 8, 4, 64, 131072, 8192, 1000042, true, Llama, Delta{}, Experts{}, Spaces{}, false},
		{"bitnet-2b", 2560, 6912, 30, 20, 5, 128, 128256, 4096, 500000, true, Llama, Delta{}, Experts{}, Spaces{}, false},
		{"bitnet-2b-4t", 2560, 6912, 30, 20, 5, 128, 128256, 4096, 500000, true, BitNet, Delta{}, Experts{}, Spaces{}, false},
		{"bonsai-1.7b", 2048, 6144, 28, 16, 8, 128, 151936, 32768, 1000000, true, Llama, Delta{}, Experts{}, Spaces{}, false},
		{"bonsai-8b", 4096, 12288, 36, 32, 8, 128, 151936, 65536, 1000000, false, Llama, Delta{}, Experts{}, Spaces{}, false},
		{"qwen35-0.8b", 1024, 3584, 24, 8, 2, 256, 248320, 262144, 1e7, true, Qwen35, Delta{16, 16, 128}, Experts{}, Spaces{}, false},
		{"qwen35-0.8b-mtp", 1024, 3584, 24, 8, 2, 256, 248320, 262144, 1e7, true, Qwen35, Delta{16, 16, 128}, Experts{}, Spaces{}, true},
		{"qwen35-27b", 5120, 17408, 64, 24, 4, 256, 248320, 262144, 1e7, false, Qwen35, Delta{16, 48, 128}, Experts{}, Spaces{}, false},
		{"qwen35-27b-mtp", 5120, 17408, 64, 24, 4, 256, 248320, 262144, 1e7, false, Qwen35, Delta{16, 48, 128}, Experts{}, Spaces{}, true},
		{"qwen3-30b-a3b", 2048, 6144, 48, 32, 4, 128, 151936, 32768, 1000000, false, Qwen3MoE, Delta{}, Experts{Count: 128, Used: 8, FFN: 768}, Spaces{}, false},
		{"gpt-oss-20b", 2880, 2880, 24, 64, 8, 64, 201088, 131072, 150000, false, GPTOSS, Delta{}, Experts{Count: 32, Used: 4, FFN: 2880}, Spaces{}, false},
		{"nemotron-nano-9b", 4480, 15680, 56, 40, 8, 128, 131072, 131072, 10000, false, NemotronH, Delta{}, Experts{},
			Spaces{"M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-", 128, 80, 8, 128}, false},
		{"nemotron-3-nano-30b", 2688, 1856, 52, 32, 2, 128, 131072, 262144, 10000, false, NemotronHMoE, Delta{}, Experts{Count: 128, Used: 6, FFN: 1856, Shared: 3712},
			Spaces{"MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", 64, 64, 8, 128}, false},
	}
}

// Named returns the shape of that name.
func Named(name string) (Shape, error) {
	known := ""
	for _, s := range Shapes() {
		if s.Name == name {
			return s, nil
		}
		known += " " + s.Name
	}
	return Shape{}, fmt.Errorf("%w: no shape %q (have%s)", ErrOptions, name, known)
}

// Options say how the weights are stored.
type Options struct {
	Blocks gguf.Type // the matrices of the layers
	Head   gguf.Type // embedding and output matrix
	// Finer is the type of attn_v and ffn_down in the layers to which llama.cpp's Q4_K_M gives more bits than to
	// others; F32: Blocks.
	Finer gguf.Type
	Seed  uint64
}

// DefaultOptions returns the options of a ternary model as published: TQ2_0 layers and a
// head of 6 bits.
func DefaultOptions() Options { return Options{Blocks: gguf.TQ2_0, Head: gguf.Q6_K, Seed: 1} }

// Write writes a model of shape s. Weights are made while they are written, so
// memory does not grow with the model. It reports ErrOptions when the shape is
// no model or a row is no whole number of blocks.
func Write(w io.Writer, s Shape, opt Options) error {
	sources, err := s.sources(opt)
	if err != nil {
		return err
	}
	return gguf.WriteFrom(w, s.metadata(), sources)
}

// Size returns how many bytes the tensors of such a file take.
func Size(s Shape, opt Options) (bytes int64, err error) {
	sources, err := s.sources(opt)
	for _, t := range sources {
		n, err := t.Type.Size(t.Dims)
		if err != nil {
			return 0, err
		}
		bytes += int64(n)
	}
	return bytes, err
}

// Build makes the model in memory.
func Build(s Shape, opt Options) (*gguf.File, error) {
	sources, err := s.sources(opt)
	if err != nil {
		return nil, err
	}
	size := 64*s.Vocab + 1<<16 // header, generously
	for _, t := range sources {
		n, err := t.Type.Size(t.Dims)
		if err != nil {
			return nil, err
		}
		size += n + 32
	}
	buf := bytes.NewBuffer(make([]byte, 0, size))
	if err := gguf.WriteFrom(buf, s.metadata(), sources); err != nil {
		return nil, err
	}
	return gguf.Parse(buf.Bytes())
}

func (s *Shape) validate() error {
	for _, n := range []int{s.Hidden, s.FFN, s.Layers, s.Heads, s.KVHeads, s.HeadDim, s.Context} {
		if n < 1 || n > 1<<20 {
			return fmt.Errorf("%w: shape %+v: sizes must be 1 to 2^20", ErrOptions, *s)
		}
	}
	if s.Vocab < vocabLen || s.Vocab > 1<<24 {
		return fmt.Errorf("%w: a vocabulary of %d, want at least %d", ErrOptions, s.Vocab, vocabLen)
	}
	if known := []Arch{Llama, BitNet, Qwen35, Qwen35MoE, Qwen3MoE, GPTOSS, Gemma2, Cohere2, LFM2, LFM2MoE, Qwen2MoE, NemotronH, NemotronHMoE, Mamba2}; !slices.Contains(known, s.Arch) {
		return fmt.Errorf("%w: architecture %q is none of %q", ErrOptions, s.Arch, known)
	}
	if e := s.Experts; s.mixes() && (e.Used < 1 || e.Used > e.Count || e.Count > 1<<12 || e.FFN < 1 || max(e.FFN, e.Shared) > 1<<20 || min(e.Shared, e.Dense) < 0) {
		return fmt.Errorf("%w: shape %+v: %d of %d experts of %d", ErrOptions, *s, e.Used, e.Count, e.FFN)
	}
	if d := s.Delta; s.nets() && (d.KeyHeads < 1 || d.ValueHeads < 1 || d.Width < 1 || max(d.KeyHeads, d.ValueHeads, d.Width) > 1<<12) {
		return fmt.Errorf("%w: shape %+v: %d key heads and %d value heads of %d", ErrOptions, *s, d.KeyHeads, d.ValueHeads, d.Width)
	}
	if s.Predicts && !s.nets() {
		return fmt.Errorf("%w: no layer of architecture %q predicts", ErrOptions, s.Arch)
	}
	if err := s.validateSpaces(); err != nil {
		return err
	}
	if s.Heads%s.KVHeads != 0 || s.HeadDim%2 != 0 {
		return fmt.Errorf("%w: %d heads of %d elements over %d KV heads", ErrOptions, s.Heads, s.HeadDim, s.KVHeads)
	}
	return nil
}

// sources lists the tensors in the order a model reads them.
func (s *Shape) sources(opt Options) ([]gguf.Source, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	b, mixing := builder{seed: opt.Seed}, opt.Blocks
	if s.Arch == GPTOSS {
		mixing = opt.Head
	}
	headStd := 2 / math.Sqrt(float64(s.Hidden)) // logits of standard deviation 2
	b.matrix("token_embd.weight", opt.Head, s.Vocab, s.Hidden, headStd)
	for i := range s.allLayers() {
		finer, down := mixing, opt.Blocks
		if opt.Finer != gguf.F32 && s.finer(i) {
			finer, down = opt.Finer, opt.Finer
		}
		block := func(name string, rows, cols int) {
			t := mixing
			if name == "attn_v" || name == "ffn_down" {
				t = finer
			}
			b.matrix(fmt.Sprintf("blk.%d.%s.weight", i, name), t, rows, cols, 1/math.Sqrt(float64(cols)))
		}
		b.ones(fmt.Sprintf("blk.%d.attn_norm.weight", i), s.Hidden)
		if s.onePart() {
			s.part(&b, i, block, opt.Blocks, down)
			continue
		}
		switch {
		case s.nets() && (i+1)%attentionInterval != 0 && i < s.Layers:
			s.deltaNet(&b, i, block)
		case s.short() && !s.attends(i):
			block("shortconv.in_proj", 3*s.Hidden, s.Hidden)
			b.matrix(fmt.Sprintf("blk.%d.shortconv.conv.weight", i), gguf.F32, s.Hidden, convTaps, 1/math.Sqrt(convTaps))
			block("shortconv.out_proj", s.Hidden, s.Hidden)
		default:
			s.attention(&b, i, block)
		}
		if i == s.Layers {
			s.predictor(&b, i, block)
		}
		for _, norm := range s.norms() {
			b.ones(fmt.Sprintf("blk.%d.%s.weight", i, norm), s.Hidden)
		}
		if s.mixes() && i >= s.Experts.Dense {
			s.experts(&b, i, opt.Blocks, down)
			continue
		}
		block("ffn_gate", s.FFN, s.Hidden)
		block("ffn_up", s.FFN, s.Hidden)
		block("ffn_down", s.Hidden, s.FFN)
	}
	if s.short() {
		b.ones("token_embd_norm.weight", s.Hidden)
	} else {
		b.ones("output_norm.weight", s.Hidden)
	}
	if !s.TiedEmbedding {
		b.matrix("output.weight", opt.Head, s.Vocab, s.Hidden, headStd)
	}
	return b.list, b.err
}

// allLayers counts the layers, with the one that predicts.
func (s *Shape) allLayers() int {
	if s.Predicts {
		return s.Layers + 1
	}
	return s.Layers
}

// predictor adds what layer i, which predicts, has besides.
func (s *Shape) predictor(b *builder, i int, block func(name string, rows, cols int)) {
	block("nextn.eh_proj", s.Hidden, 2*s.Hidden)
	for _, norm := range []string{"enorm", "hnorm", "shared_head_norm"} {
		b.ones(fmt.Sprintf("blk.%d.nextn.%s.weight", i, norm), s.Hidden)
	}
}

// norms names the norms of a layer after its attention.
func (s *Shape) norms() []string {
	switch s.Arch {
	case Qwen35, Qwen35MoE, GPTOSS:
		return []string{"post_attention_norm"}
	case Gemma2:
		return []string{"post_attention_norm", "ffn_norm", "post_ffw_norm"}
	case Cohere2:
		return nil
	}
	return []string{"ffn_norm"}
}

// attention adds the attention of layer i.
func (s *Shape) attention(b *builder, i int, block func(name string, rows, cols int)) {
	q, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	switch s.Arch {
	case Qwen35, Qwen35MoE:
		block("attn_q", 2*q, s.Hidden) // a gate a query
		b.ones(fmt.Sprintf("blk.%d.attn_q_norm.weight", i), s.HeadDim)
		b.ones(fmt.Sprintf("blk.%d.attn_k_norm.weight", i), s.HeadDim)
	case Qwen3MoE, LFM2, LFM2MoE:
		block("attn_q", q, s.Hidden)
		b.ones(fmt.Sprintf("blk.%d.attn_q_norm.weight", i), s.HeadDim)
		b.ones(fmt.Sprintf("blk.%d.attn_k_norm.weight", i), s.HeadDim)
	default:
		block("attn_q", q, s.Hidden)
	}
	block("attn_k", kv, s.Hidden)
	block("attn_v", kv, s.Hidden)
	if s.Arch == BitNet {
		b.ones(fmt.Sprintf("blk.%d.attn_sub_norm.weight", i), q)
		b.ones(fmt.Sprintf("blk.%d.ffn_sub_norm.weight", i), s.FFN)
	}
	block("attn_output", s.Hidden, q)
	if s.Arch == GPTOSS {
		for name, n := range map[string]int{"attn_sinks.weight": s.Heads, "attn_q.bias": q, "attn_k.bias": kv, "attn_v.bias": kv, "attn_output.bias": s.Hidden} {
			b.numbers(fmt.Sprintf("blk.%d.%s", i, name), n, 0)
		}
	}
}

// finer tells whether llama.cpp's Q4_K_M gives layer i more bits (its use_more_bits).
func (s *Shape) finer(i int) bool {
	eighth := s.Layers / 8
	return i < eighth || i >= 7*s.Layers/8 || (i-eighth)%3 == 2
}

// short tells whether layers have short convolutions.
func (s *Shape) short() bool { return s.Arch == LFM2 || s.Arch == LFM2MoE }

// attends tells whether layer i of an LFM2 has attention.
func (s *Shape) attends(i int) bool { return i%3 == 2 }

// nets tells whether layers have gated delta nets.
func (s *Shape) nets() bool { return s.Arch == Qwen35 || s.Arch == Qwen35MoE }

// deltaNet adds the delta net of layer i.
func (s *Shape) deltaNet(b *builder, i int, block func(name string, rows, cols int)) {
	d := s.Delta
	values := d.ValueHeads * d.Width
	channels := 2*d.KeyHeads*d.Width + values
	block("attn_qkv", channels, s.Hidden)
	block("attn_gate", values, s.Hidden)
	block("ssm_beta", d.ValueHeads, s.Hidden)
	block("ssm_alpha", d.ValueHeads, s.Hidden)
	b.matrix(fmt.Sprintf("blk.%d.ssm_conv1d.weight", i), gguf.F32, channels, taps, 1/math.Sqrt(taps))
	b.numbers(fmt.Sprintf("blk.%d.ssm_a", i), d.ValueHeads, -0.125) // a memory of about ten tokens
	b.numbers(fmt.Sprintf("blk.%d.ssm_dt.bias", i), d.ValueHeads, 0)
	b.ones(fmt.Sprintf("blk.%d.ssm_norm.weight", i), d.Width)
	block("ssm_out", s.Hidden, values)
}

// builder collects tensors; the first failure sticks.
type builder struct {
	seed uint64
	list []gguf.Source
	err  error
}

// matrix adds random weights W[rows][cols] of standard deviation std.
func (b *builder) matrix(name string, t gguf.Type, rows, cols int, std float64) {
	b.tensor(name, t, std, cols, rows)
}

// tensor adds random weights of a shape, the length of a row first.
func (b *builder) tensor(name string, t gguf.Type, std float64, dims ...int) {
	cols, rows := dims[0], 1
	for _, d := range dims[1:] {
		rows *= d
	}
	if _, err := t.Size(dims); err != nil && b.err == nil {
		b.err = fmt.Errorf("%w: tensor %s: %w", ErrOptions, name, err)
	}
	fill, err := filler(t, std)
	if err != nil && b.err == nil {
		b.err = err
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	b.list = append(b.list, gguf.Source{Name: name, Type: t, Dims: dims, Write: func(w io.Writer) error {
		r := rand.NewPCG(b.seed, h.Sum64())
		row := make([]byte, cols/t.BlockLen()*t.BlockBytes())
		for range rows {
			for i := 0; i < len(row); i += t.BlockBytes() {
				fill(row[i:i+t.BlockBytes()], r)
			}
			if _, err := w.Write(row); err != nil {
				return err
			}
		}
		return nil
	}})
}

// ones adds a norm's weights.
func (b *builder) ones(name string, n int) { b.numbers(name, n, 1) }

// numbers adds n times the same number.
func (b *builder) numbers(name string, n int, x float32) { b.array(name, x, n) }

// array adds a tensor that holds the same number throughout, the length of a row first.
func (b *builder) array(name string, x float32, dims ...int) {
	n := 1
	for _, d := range dims {
		n *= d
	}
	b.list = append(b.list, gguf.Source{Name: name, Type: gguf.F32, Dims: dims, Write: func(w io.Writer) error {
		_, err := w.Write(bytes.Repeat(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)), n))
		return err
	}})
}

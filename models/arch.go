package models

import (
	"maps"
	"slices"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// variant is what an architecture changes of the decoder. The zero value,
// with an activation, is Llama. A further architecture of the kind is a further
// row of architectures.
type variant struct {
	rope           ropeOrder
	noRopeInterval int  // every so many layers one does not rotate; 0: all do
	headNorm       bool // queries and keys: RMSNorm of each head ahead of the rotation
	subNorm        bool // RMSNorm of what attn_output and ffn_down read
	scales         bool // matrices may have a factor of their own, *.scale
	fused          bool // q, k and v are stored as one matrix, gate and up as another
	ownFreqs       bool // rope_freqs.weight, if any, repeats the frequencies and divides nothing
	glu            gatedUnit

	postNorm       bool // RMSNorm of what attention and feed-forward add
	embedScale     bool // embeddings are multiplied by √Hidden
	capped         bool // scores and logits may be soft-capped
	globalInterval int  // every so many layers one sees all keys, the others a window; 0: all do
	delta          bool // layers are gated delta nets, but for every so many, full_attention_interval
	outputGate     bool // attn_q holds [query, gate] a head; what attn_output reads is gated
	lateNorm       bool // the feed-forward's norm is called post_attention_norm
	encoder        bool // the graph is that of encoder.go
	modern         bool // of an encoder: norms ahead of each half layer, and windows of keys in most layers
	fusedQKV       bool // q, k and v are stored as one matrix
	positions      bool // of an encoder: positions have embeddings of their own
	alibi          bool // of an encoder: positions lower the scores of far keys
	downBias       bool // ffn_down has one
	mlp            bool // of an encoder: the feed-forward has no gate, but biases
	wideNorm       bool // queries and keys: RMSNorm of all heads together ahead of the rotation
	mayFuse        bool // q, k and v may be stored as one matrix, and their biases as one
	normBias       bool // norms of the residual stream add a bias, and so does the head
	multipliers    bool // of embeddings, scores, what layers add, and logits
	yesNo          bool // a reranker of this architecture answers yes or no
	// mixture is what mixtures of experts in place of the feed-forward are like; nil:
	// there are none.
	mixture *mixtureVariant
	// queryWidth is what scores are divided by the root of; nil: HeadDim.
	queryWidth func(c *Config) int
}

// gatedUnit sets dst to act(gate) · up (Shazeer, "GLU Variants Improve Transformer", §2).
type gatedUnit func(dst, gate, up []float32)

// architectures is what is known of each supported general.architecture.
var architectures = map[string]variant{
	// With experts Mixtral (Jiang et al. 2024, "Mixtral of Experts", §2).
	"llama": {glu: vector.SwiGLU, mixture: &mixtureVariant{optional: true}},
	// Yang et al. 2024, "Qwen2", §2.2.1: biases of q, k and v, which any of these may have.
	"qwen2": {glu: vector.SwiGLU, rope: ropeHalves},
	"qwen3": {glu: vector.SwiGLU, rope: ropeHalves, headNorm: true, yesNo: true},
	// Qwen Team 2026, "Qwen3.5": three layers of four are gated delta nets, see delta.go.
	// The rotation of text positions is plain in all of rope.dimension_sections.
	"qwen35": {glu: vector.SwiGLU, rope: ropeHalves, headNorm: true, delta: true, outputGate: true, lateNorm: true},
	// Qwen Team 2024, "Qwen1.5-MoE": an expert that all rows take, behind a gate.
	"qwen2moe": {glu: vector.SwiGLU, rope: ropeHalves, mixture: &mixtureVariant{unnormed: true, shared: sharedGated, perChosen: true}},
	// Qwen Team 2025, "Qwen3 Technical Report", §2.
	"qwen3moe": {glu: vector.SwiGLU, rope: ropeHalves, headNorm: true, mixture: &mixtureVariant{perChosen: true}},
	// Muennighoff et al. 2024, "OLMoE", §2.
	"olmoe": {glu: vector.SwiGLU, rope: ropeHalves, wideNorm: true, mixture: &mixtureVariant{unnormed: true}},
	// Granite Team 2024, "Granite 3.0 Language Models": every part has a multiplier.
	"granitemoe": {glu: vector.SwiGLU, multipliers: true, mixture: &mixtureVariant{shared: sharedIfSaid}},
	// Abdin et al. 2024, "Phi-3", §2.
	"phi3": {glu: vector.SwiGLU, rope: ropeHalves, fused: true},
	// Phi-3.5-MoE as llama.cpp runs it: RMSNorm with a bias in place of LayerNorm, and
	// plain softmax in place of sparsemixer.
	"phimoe": {glu: vector.SwiGLU, rope: ropeHalves, mayFuse: true, normBias: true, mixture: &mixtureVariant{}},
	// Gemma Team 2024, "Gemma 2", §2; norms are stored with the one added that the model adds.
	"gemma2": {
		glu: vector.GeGLU, rope: ropeHalves, postNorm: true, embedScale: true, capped: true, globalInterval: 2,
		queryWidth: gemmaQueryWidth,
	},
	// Every fourth layer has no position embedding (Yang et al. 2025, "Rope to Nope and Back Again").
	"smollm3": {glu: vector.SwiGLU, noRopeInterval: 4},
	// Wang et al. 2023, "BitNet", §2.1: another norm before each quantised product.
	"bitnet": {glu: vector.SwiGLU, rope: ropeHalves, subNorm: true, scales: true},
	// Ma et al. 2025, "BitNet b1.58 2B4T", §2: squared ReLU. Microsoft's converter
	// writes both names, and with the second the inverse frequencies.
	"bitnet-b1.58": {glu: vector.ReLU2GLU, rope: ropeHalves, subNorm: true, scales: true, ownFreqs: true},
	"bitnet-25":    {glu: vector.ReLU2GLU, rope: ropeHalves, subNorm: true, scales: true, ownFreqs: true},
	// Devlin et al. 2019, "BERT", §3.
	"bert": {encoder: true, rope: ropeNone, positions: true, mlp: true, mayFuse: true},
	// Günther et al. 2023, "Jina Embeddings 2", §4: ALiBi and GELU-gated units.
	"jina-bert-v2": {encoder: true, rope: ropeNone, alibi: true, glu: vector.ErfGLU, downBias: true, mayFuse: true},
	// Nussbaum et al. 2024, "Nomic Embed", §4.1: rotary positions and SwiGLU in place of BERT's.
	"nomic-bert": {encoder: true, rope: ropeHalves, fusedQKV: true, glu: vector.SwiGLU},
	// Warner et al. 2024, "Smarter, Better, Faster, Longer", §2.1: no biases, GeGLU, and two
	// bases of rotation, for layers that see all keys and for those that see a window.
	"modern-bert": {encoder: true, modern: true, rope: ropeHalves, fused: true},
}

// gemmaQueryWidth is the width of a head, but for the largest model, which is
// known by its layers and whose heads are narrower than its share of them.
func gemmaQueryWidth(c *Config) int {
	if c.Layers == 46 {
		return c.Hidden / c.Heads
	}
	return c.HeadDim
}

// architectureNames lists the supported values of general.architecture.
func architectureNames() []string { return slices.Sorted(maps.Keys(architectures)) }

// ffnNorm is what the feed-forward's norm is called.
func (v *variant) ffnNorm() string {
	if v.lateNorm {
		return "post_attention_norm"
	}
	return "ffn_norm"
}

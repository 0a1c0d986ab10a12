package models

import (
	"maps"
	"slices"
)

// architecture has an architecture's differences from the decoder's default. The zero value, with an
// activation, is Llama.
type architecture struct {
	bidirectional bool        // tokens attend to later ones too: the graph is in encoder.go
	yesNo         bool        // its rerankers answer yes or no
	matrixFactors bool        // matrices may have a factor of their own, *.scale
	multipliers   multipliers // of embeddings, scores, what layers add, and logits
	logitScale    bool        // logits are multiplied by logit_scale
	rootEmbedding bool        // embeddings are multiplied by √Hidden
	layerInputs   bool        // layers may have inputs of their own, and scale what they make
	onePart       bool        // a layer is attention, a state space, a feed-forward or a mixture, and no two of them

	positions positionTraits
	attention attentionTraits
	windows   windowTraits
	states    stateTraits
	norms     normTraits
	ffn       ffnTraits
}

// positionTraits say how a model knows the positions of tokens.
type positionTraits struct {
	order        ropeOrder
	mayStand     bool    // no layer rotates where rope.scaling.finetuned is false
	skipEvery    int     // every so many layers one does not rotate; 0: all do
	ownFreqs     bool    // rope_freqs.weight, if any, repeats the frequencies and divides nothing
	smoothRamp   bool    // YaRN's ramp begins and ends between pairs of elements
	windowedRope bool    // layers with windows rotate by rope.freq_base_swa, and by positions that are not scaled
	windowedBase float64 // which that is unless the file says; 0: rope.freq_base
	windowedOnly bool    // where some layers have windows, the others do not rotate
	embedded     bool    // positions have embeddings
	alibi        bool    // positions lower the scores of far keys
}

// attentionTraits say what attention reads, and what becomes of it.
type attentionTraits struct {
	qkv        storage // of the matrices of queries, keys and values, and of their biases
	qkNorm     qkNorm
	gated      bool // attn_q holds [query, gate] a head; what attn_output reads is gated
	gateApart  bool // likewise, but gates have a matrix of their own, attn_gate
	sinks      bool // each head has a score that no key has
	tempered   bool // queries grow with their positions where the file says so
	softCap    bool // scores and logits may be soft-capped
	otherHeads bool // layers with windows may have heads of their own, and the last ones no keys and values
	none       bool // no layer attends
	latent     bool // multi-head latent attention
	valueNorm  bool // RMSNorm of each head of values, without weights; without attn_v values are keys
	// queryWidth is the number whose root divides scores; nil: HeadDim.
	queryWidth func(m *spec) int
}

// windowTraits say which layers see a window of keys alone.
type windowTraits struct {
	globalEvery int  // every so many layers one sees all keys, the others a window, unless the file says which; 0: all do
	globalFirst bool // that one is the first of as many, not the last
	bothSides   bool // windows reach to both sides
}

// stateTraits say which recurrent states layers have.
type stateTraits struct {
	kind    stateKind
	grouped bool // value heads of delta nets are grouped by key heads, and one matrix makes beta and alpha
}

// normTraits say which norms there are, and where.
type normTraits struct {
	kind          normKind
	after         bool    // norms stand behind attention and feed-forward, whose sums they read
	sub           bool    // RMSNorm of what attn_output and ffn_down read
	inputs        bool    // matrices may read an RMSNorm of their own each, *_norm_in
	post          bool    // RMSNorm of what attention and feed-forward add
	postEps       float32 // of these; 0: the others' epsilon
	embedding     bool    // RMSNorm of embeddings, without weights
	bare          bool    // attention and feed-forward read the stream as it is
	parallel      bool    // the feed-forward reads what attention reads
	last          string  // the name of the last norm; empty: output_norm
	postAttention bool    // the feed-forward's norm is called post_attention_norm
}

// ffnTraits say what a feed-forward is, or the mixture of experts in its place.
type ffnTraits struct {
	activation GatedUnit // 0: hidden_activation says
	ungated    bool      // there is no gate, neither of experts; biases are as the file has them
	gateUp     storage   // of the matrices of gate and up
	biases     bool      // ffn_down has one, and ffn_up where there is no gate
	widths     bool      // layers may have widths of their own
	mixture    *mixtureTraits
}

// mixtureTraits say what the mixtures of an architecture are like.
type mixtureTraits struct {
	optional bool // a file without expert_count has feed-forwards
	beside   bool // layers have a feed-forward too
	shared   sharing
	unnormed bool // unless the file says so, the weights of chosen experts do not sum to 1
	biases   bool // the router and all matrices of experts have biases
	prefers  preference
	grouped  bool    // experts may be chosen of the best groups alone
	latent   bool    // experts may read and make fewer numbers than the stream has, moe_latent_size
	dense    bool    // leading_dense_block_count layers have feed-forwards
	mixes    bool    // the file may ask for sparsemixer, see authorsKey
	clamp    float32 // what the activation clamps by, which swiglu_clamp_exp must not deny
	// perChosen: in files without expert_feed_forward_length, feed_forward_length counts all experts that a
	// row takes, not one.
	perChosen bool
}

// sharing says whether a mixture has an expert that all rows take.
type sharing uint8

const (
	sharedNone    sharing = iota
	sharedIfSaid          // where expert_shared_feed_forward_length says so
	sharedGated           // always, behind a gate
	sharedCounted         // as wide as expert_shared_count others
)

// preference says what experts are chosen by besides their probabilities.
type preference uint8

const (
	unpreferred        preference = iota
	preferred                     // these are of sigmoids, and exp_probs_b is added to choose
	preferredIfStored             // likewise where the file has exp_probs_b
	preferredOfSoftmax            // exp_probs_b, if there is one, is added to choose by probabilities of the softmax
)

// multipliers says whether an architecture has Granite's multipliers, and their values unless the file says.
type multipliers uint8

const (
	noMultipliers multipliers = iota
	multipliersOfOne
	multipliersOfMiniCPM // Hu et al. 2024, "MiniCPM", §4.1, of the models of 2 billion
)

// storage says how a file stores matrices that read the same.
type storage uint8

const (
	apart  storage = iota
	fused          // as one matrix
	either         // as the file has them
)

// qkNorm says how queries and keys are normed, ahead of the rotation unless it says after.
type qkNorm uint8

const (
	qkUnnormed    qkNorm = iota
	qkNormHeads          // RMSNorm of each head
	qkNormAll            // RMSNorm of all heads together
	qkNormRotated        // RMSNorm of each head, after the rotation
	qkNormStored         // RMSNorm of each head where the file has one
)

// normKind says what the norms of the residual stream are.
type normKind uint8

const (
	rmsNorm       normKind = iota
	rmsNormBias            // RMSNorm, to which a bias may be added, and to the logits
	layerNorm              // with a bias
	layerNormBare          // LayerNorm without one
)

// halves is the rotation of most architectures after Llama.
var halves = positionTraits{order: ropeHalves}

// architectures has a row for each supported general.architecture.
var architectures = map[string]architecture{
	// With experts Mixtral (Jiang et al. 2024, "Mixtral of Experts", §2).
	"llama": {ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{optional: true}}},
	// Mistral AI 2025, "Ministral 3": as Llama, but queries grow with their positions.
	"mistral3": {attention: attentionTraits{tempered: true}, ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{optional: true}}},
	// Yang et al. 2024, "Qwen2", §2.2.1: biases of q, k and v, which any of these may have.
	"qwen2": {positions: halves, ffn: ffnTraits{activation: UnitSiLU}},
	"qwen3": {yesNo: true, positions: halves, attention: attentionTraits{qkNorm: qkNormHeads}, norms: normTraits{inputs: true}, ffn: ffnTraits{activation: UnitSiLU}},
	// Qwen Team 2026, "Qwen3.5": three layers of four are gated delta nets, see delta.go.
	// The rotation of text positions is plain in all of rope.dimension_sections.
	"qwen35": {
		positions: halves, attention: attentionTraits{qkNorm: qkNormHeads, gated: true}, states: stateTraits{kind: deltaNets}, norms: normTraits{postAttention: true},
		ffn: ffnTraits{activation: UnitSiLU},
	},
	// The same with mixtures and an expert that all rows take, behind a gate.
	"qwen35moe": {
		positions: halves, attention: attentionTraits{qkNorm: qkNormHeads, gated: true}, states: stateTraits{kind: deltaNets}, norms: normTraits{postAttention: true},
		ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{shared: sharedGated}},
	},
	// Qwen Team 2025, "Qwen3-Next".
	"qwen3next": {
		positions: halves, attention: attentionTraits{qkNorm: qkNormHeads, gated: true}, states: stateTraits{kind: deltaNets, grouped: true}, norms: normTraits{postAttention: true},
		ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{shared: sharedGated, perChosen: true}},
	},
	// Qwen Team 2024, "Qwen1.5-MoE": an expert that all rows take, behind a gate.
	"qwen2moe": {
		positions: halves,
		ffn:       ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{unnormed: true, shared: sharedGated, perChosen: true}},
	},
	// Qwen Team 2025, "Qwen3 Technical Report", §2.
	"qwen3moe": {
		positions: halves, attention: attentionTraits{qkNorm: qkNormHeads},
		ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{perChosen: true}},
	},
	// Deep Grove 2026, "Maple": layers that see all keys do not rotate; gates and ups are clamped.
	"maple": {
		positions: positionTraits{order: ropeHalves, windowedOnly: true}, attention: attentionTraits{qkNorm: qkNormHeads}, windows: windowTraits{globalEvery: 4},
		ffn: ffnTraits{activation: UnitClampedSiLU, mixture: &mixtureTraits{clamp: 7}},
	},
	// Muennighoff et al. 2024, "OLMoE", §2.
	"olmoe": {
		positions: halves, attention: attentionTraits{qkNorm: qkNormAll},
		ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{unnormed: true}},
	},
	// Granite Team 2024, "Granite 3.0 Language Models": every part has a multiplier.
	"granitemoe": {multipliers: multipliersOfOne, positions: positionTraits{mayStand: true}, ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{shared: sharedIfSaid}}},
	// OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card", §2.
	"gpt-oss": {
		positions: positionTraits{order: ropeHalves, smoothRamp: true}, attention: attentionTraits{sinks: true}, windows: windowTraits{globalEvery: 2},
		norms: normTraits{postAttention: true}, ffn: ffnTraits{activation: UnitClamped, mixture: &mixtureTraits{biases: true}},
	},
	// Abdin et al. 2024, "Phi-3", §2.
	"phi3": {positions: halves, attention: attentionTraits{qkv: fused}, ffn: ffnTraits{activation: UnitSiLU, gateUp: fused}},
	// Abdin et al. 2024, "Phi-3", §5: Phi-3.5-MoE, as llama.cpp runs it or as its authors
	// do, see authorsKey.
	"phimoe": {
		positions: halves, attention: attentionTraits{qkv: either}, norms: normTraits{kind: rmsNormBias},
		ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{mixes: true}},
	},
	"exaone":    {positions: halves, ffn: ffnTraits{activation: UnitSiLU}}, // LG AI Research 2024, "EXAONE 3.0", §2
	"internlm2": {ffn: ffnTraits{activation: UnitSiLU}},                    // Cai et al. 2024, "InternLM2", §2.2
	// Lozhkov et al. 2024, "StarCoder 2", §6.1.
	"starcoder2": {positions: halves, norms: normTraits{kind: layerNorm}, ffn: ffnTraits{activation: UnitGELU, ungated: true, biases: true}},
	// Li et al. 2023, "Textbooks Are All You Need II", §2.1: attention and feed-forward read the same norm.
	"phi2": {positions: halves, attention: attentionTraits{qkv: either}, norms: normTraits{kind: layerNorm, parallel: true}, ffn: ffnTraits{activation: UnitGELU, ungated: true, biases: true}},
	// Bellagente et al. 2024, "Stable LM 2", §2; not the 12B model, which is parallel and norms queries and keys.
	"stablelm": {positions: halves, norms: normTraits{kind: layerNorm}, ffn: ffnTraits{activation: UnitSiLU}},
	// Parmar et al. 2024, "Nemotron-4", §2; norms are stored with the one added that the model adds.
	"nemotron": {positions: halves, norms: normTraits{kind: layerNorm}, ffn: ffnTraits{activation: UnitReLU2, ungated: true}},
	"arcee":    {ffn: ffnTraits{activation: UnitReLU2, ungated: true}}, // Arcee AI 2025, "AFM-4.5B"
	// Gemma Team 2024, "Gemma", §2.
	"gemma": {rootEmbedding: true, positions: halves, ffn: ffnTraits{activation: UnitGELU}},
	// Gemma Team 2024, "Gemma 2", §2; norms are stored with the one added that the model adds.
	"gemma2": {
		rootEmbedding: true, positions: halves, attention: attentionTraits{softCap: true, queryWidth: gemmaQueryWidth}, windows: windowTraits{globalEvery: 2},
		norms: normTraits{post: true}, ffn: ffnTraits{activation: UnitGELU},
	},
	// Gemma Team 2025, "Gemma 3", §2: no caps, norms of queries and keys, and two bases.
	"gemma3": {
		rootEmbedding: true, positions: positionTraits{order: ropeHalves, windowedRope: true, windowedBase: 10000},
		attention: attentionTraits{qkNorm: qkNormHeads, softCap: true, queryWidth: gemmaQueryWidth}, windows: windowTraits{globalEvery: 6},
		norms: normTraits{post: true, inputs: true}, ffn: ffnTraits{activation: UnitGELU},
	},
	// Gemma Team 2026, "Gemma 4": layers with windows have narrower heads, the last layers may
	// share keys and values, and layers may have inputs of their own.
	"gemma4": {
		rootEmbedding: true, layerInputs: true, positions: positionTraits{order: ropeHalves, windowedRope: true, windowedBase: 10000},
		attention: attentionTraits{qkNorm: qkNormHeads, valueNorm: true, otherHeads: true, softCap: true, queryWidth: unscaled}, windows: windowTraits{globalEvery: 6},
		norms: normTraits{post: true}, ffn: ffnTraits{activation: UnitGELU, widths: true, mixture: &mixtureTraits{optional: true, beside: true}},
	},
	// Schechter Vera et al. 2025, "EmbeddingGemma": Gemma 3 whose tokens see all of a text, or a window to both sides.
	"gemma-embedding": {
		bidirectional: true, rootEmbedding: true, positions: positionTraits{order: ropeHalves, windowedRope: true, windowedBase: 10000},
		attention: attentionTraits{qkNorm: qkNormHeads, queryWidth: gemmaQueryWidth}, windows: windowTraits{globalEvery: 6, bothSides: true},
		norms: normTraits{post: true}, ffn: ffnTraits{activation: UnitGELU},
	},
	// OLMo Team 2024, "2 OLMo 2 Furious", §3: norms of what layers add alone. OLMo 3 has windows.
	"olmo2": {
		positions: positionTraits{order: ropeHalves, windowedRope: true}, attention: attentionTraits{qkNorm: qkNormAll}, windows: windowTraits{globalEvery: 4},
		norms: normTraits{post: true, bare: true}, ffn: ffnTraits{activation: UnitSiLU},
	},
	// LG AI Research 2025, "EXAONE 4.0", §2.
	"exaone4": {
		positions: positionTraits{order: ropeHalves, windowedOnly: true}, attention: attentionTraits{qkNorm: qkNormHeads}, windows: windowTraits{globalEvery: 4},
		norms: normTraits{post: true, bare: true}, ffn: ffnTraits{activation: UnitSiLU},
	},
	// Tencent 2025, "Hunyuan": queries and keys are normed after they have rotated.
	"hunyuan-dense": {positions: halves, attention: attentionTraits{qkNorm: qkNormRotated}, ffn: ffnTraits{activation: UnitSiLU}},
	// The same with mixtures and an expert that all rows take.
	"hunyuan-moe": {
		positions: halves, attention: attentionTraits{qkNorm: qkNormRotated},
		ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{shared: sharedIfSaid}},
	},
	// GLM Team 2025, "GLM-4-0414": the first half of each head rotates.
	"glm4":     {norms: normTraits{post: true}, ffn: ffnTraits{activation: UnitSiLU, gateUp: fused}},
	"ernie4_5": {ffn: ffnTraits{activation: UnitSiLU}}, // Baidu 2025, "ERNIE 4.5", dense
	// The same with mixtures, of which biases choose behind the softmax.
	"ernie4_5-moe": {ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{prefers: preferredOfSoftmax, dense: true, shared: sharedCounted}}},
	"seed_oss":     {positions: halves, norms: normTraits{postAttention: true}, ffn: ffnTraits{activation: UnitSiLU}}, // ByteDance 2025
	// As granitemoe, dense.
	"granite": {multipliers: multipliersOfOne, positions: positionTraits{mayStand: true}, ffn: ffnTraits{activation: UnitSiLU}},
	// IBM Research 2025, "Granite 4.0": most layers are state spaces, and Granite's do not rotate.
	"granitehybrid": {
		multipliers: multipliersOfOne, positions: positionTraits{mayStand: true}, states: stateTraits{kind: stateSpaces},
		ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{optional: true, shared: sharedIfSaid}},
	},
	// Falcon-LLM Team 2025, "Falcon-H1", §2.1.
	"falcon-h1": {positions: halves, states: stateTraits{kind: besideStates}, ffn: ffnTraits{activation: UnitSiLU}},
	// NVIDIA 2025, "Nemotron-H", §2.1: attention does not rotate, and feed-forwards have no gates. Nemotron Nano 2.
	"nemotron_h": {
		onePart: true, positions: positionTraits{order: ropeNone}, states: stateTraits{kind: stateSpaces},
		ffn: ffnTraits{activation: UnitReLU2, ungated: true},
	},
	// NVIDIA 2025, "Nemotron 3", §2.1: the same with mixtures, from Super on in a latent space (§2.2).
	"nemotron_h_moe": {
		onePart: true, positions: positionTraits{order: ropeNone}, states: stateTraits{kind: stateSpaces},
		ffn: ffnTraits{activation: UnitReLU2, ungated: true, mixture: &mixtureTraits{prefers: preferred, grouped: true, latent: true, shared: sharedIfSaid, perChosen: true}},
	},
	// Dao and Gu 2024, "Transformers are SSMs", §7: state spaces alone.
	"mamba2":  {onePart: true, attention: attentionTraits{none: true}, states: stateTraits{kind: stateSpaces}},
	"minicpm": {multipliers: multipliersOfMiniCPM, ffn: ffnTraits{activation: UnitSiLU}},
	// Cohere 2024, "Command R7B": attention and feed-forward read the same norm, and layers that
	// see all keys do not rotate.
	"cohere2": {
		logitScale: true, positions: positionTraits{windowedOnly: true}, windows: windowTraits{globalEvery: 4},
		norms: normTraits{kind: layerNormBare, parallel: true}, ffn: ffnTraits{activation: UnitSiLU},
	},
	// Cohere 2024, "Command R": the same without windows. R+ norms queries and keys by heads, which is not read.
	"command-r": {logitScale: true, norms: normTraits{kind: layerNormBare, parallel: true}, ffn: ffnTraits{activation: UnitSiLU}},
	// Liquid AI 2025, "LFM2 Technical Report", §2: most layers are short convolutions.
	"lfm2": {
		positions: halves, attention: attentionTraits{qkNorm: qkNormHeads}, states: stateTraits{kind: shortConvs}, norms: normTraits{last: "token_embd_norm"},
		ffn: ffnTraits{activation: UnitSiLU},
	},
	"lfm2moe": {
		positions: halves, attention: attentionTraits{qkNorm: qkNormHeads}, states: stateTraits{kind: shortConvs}, norms: normTraits{last: "token_embd_norm"},
		ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{prefers: preferred, dense: true}},
	},
	// GLM Team 2025, "GLM-4.5", §2.1.
	"glm4moe": {
		positions: halves, attention: attentionTraits{qkNorm: qkNormStored}, norms: normTraits{postAttention: true},
		ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{prefers: preferred, dense: true, grouped: true, shared: sharedCounted}},
	},
	// rednote-hilab 2025, "dots.llm1", §2: DeepSeek's mixtures, with norms of heads.
	"dots1": {
		positions: halves, attention: attentionTraits{qkNorm: qkNormHeads},
		ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{unnormed: true, prefers: preferredIfStored, dense: true, grouped: true, shared: sharedCounted}},
	},
	// DeepSeek-AI 2024, "DeepSeek-V2", §2, and "DeepSeek-V3", §2.1; Kimi K2, GLM-4.7-Flash.
	"deepseek2": {
		attention: attentionTraits{latent: true, queryWidth: latentWidth},
		ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{
			optional: true, unnormed: true, prefers: preferredIfStored, dense: true, grouped: true, shared: sharedCounted,
		}},
	},
	// Ant Group 2025, "Ling 2.0": the same with one matrix of queries, keys and values.
	"bailingmoe2": {
		positions: halves, attention: attentionTraits{qkv: fused, qkNorm: qkNormHeads},
		ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{unnormed: true, prefers: preferredIfStored, dense: true, grouped: true, shared: sharedCounted}},
	},
	// LG AI Research 2025, "K-EXAONE": EXAONE 4's attention, behind norms where Llama has them, and DeepSeek's mixtures.
	"exaone-moe": {
		positions: positionTraits{order: ropeHalves, windowedOnly: true}, attention: attentionTraits{qkNorm: qkNormHeads}, windows: windowTraits{globalEvery: 4},
		ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{unnormed: true, prefers: preferredIfStored, dense: true, grouped: true, shared: sharedCounted}},
	},
	// MiniMax 2025, "MiniMax-M2".
	"minimax-m2": {
		positions: halves, attention: attentionTraits{qkNorm: qkNormAll},
		ffn: ffnTraits{activation: UnitSiLU, mixture: &mixtureTraits{prefers: preferred}},
	},
	// Meta 2026, "Muse Glimmer": layers that see all keys do not rotate, what attention makes is gated, and embeddings are normed.
	"muse-glimmer": {
		logitScale: true, positions: positionTraits{windowedOnly: true}, attention: attentionTraits{qkNorm: qkNormHeads, gateApart: true, softCap: true}, windows: windowTraits{globalEvery: 4},
		norms: normTraits{post: true, postEps: 1e-8, embedding: true}, ffn: ffnTraits{activation: UnitSiLU},
	},
	// Every fourth layer has no position embedding (Yang et al. 2025, "Rope to Nope and Back Again").
	"smollm3": {positions: positionTraits{skipEvery: 4}, ffn: ffnTraits{activation: UnitSiLU}},
	// Wang et al. 2023, "BitNet", §2.1: another norm before each quantised product.
	"bitnet": {matrixFactors: true, positions: halves, norms: normTraits{sub: true}, ffn: ffnTraits{activation: UnitSiLU}},
	// Ma et al. 2025, "BitNet b1.58 2B4T", §2: squared ReLU. Microsoft's converter
	// writes both names, and with the second the inverse frequencies.
	"bitnet-b1.58": bitnetReLU2,
	"bitnet-25":    bitnetReLU2,
	// Devlin et al. 2019, "BERT", §3.
	"bert": {
		bidirectional: true, positions: positionTraits{order: ropeNone, embedded: true}, attention: attentionTraits{qkv: either},
		norms: normTraits{kind: layerNorm, after: true}, ffn: ffnTraits{activation: UnitErfGELU, ungated: true, biases: true},
	},
	"eurobert":    {bidirectional: true, positions: halves, ffn: ffnTraits{activation: UnitSiLU}}, // Boizard et al. 2025, "EuroBERT", §2.1
	"llama-embed": {bidirectional: true, ffn: ffnTraits{activation: UnitSiLU}},                    // Babakhin et al. 2025, "Llama-Embed-Nemotron-8B", §3
	// Günther et al. 2023, "Jina Embeddings 2", §4: ALiBi and GELU-gated units.
	"jina-bert-v2": {
		bidirectional: true, positions: positionTraits{order: ropeNone, alibi: true}, attention: attentionTraits{qkv: either},
		norms: normTraits{kind: layerNorm, after: true}, ffn: ffnTraits{activation: UnitErfGELU, gateUp: either, biases: true},
	},
	// Nussbaum et al. 2024, "Nomic Embed", §4.1: rotary positions and SwiGLU in place of BERT's.
	"nomic-bert": {
		bidirectional: true, positions: halves, attention: attentionTraits{qkv: fused},
		norms: normTraits{kind: layerNorm, after: true}, ffn: ffnTraits{activation: UnitSiLU},
	},
	// Warner et al. 2024, "Smarter, Better, Faster, Longer", §2.1: no biases, norms ahead of each half layer. There are
	// two bases of rotation, for layers that see all keys and for layers with a window. hidden_activation names its
	// gated unit.
	"modern-bert": {
		bidirectional: true, positions: positionTraits{order: ropeHalves, windowedRope: true, windowedBase: 10000}, attention: attentionTraits{qkv: fused}, windows: windowTraits{globalEvery: 3, globalFirst: true, bothSides: true},
		norms: normTraits{kind: layerNormBare}, ffn: ffnTraits{gateUp: fused},
	},
}

var bitnetReLU2 = architecture{
	matrixFactors: true, positions: positionTraits{order: ropeHalves, ownFreqs: true}, norms: normTraits{sub: true},
	ffn: ffnTraits{activation: UnitReLU2},
}

// gemmaQueryWidth returns the width of a head, but for the largest model, which is
// known by its layers and whose heads are narrower than its share of them.
func gemmaQueryWidth(m *spec) int {
	if m.Layers == 46 || m.Layers == 62 { // of 27B, the second and the third generation
		return m.Hidden / m.Heads
	}
	return m.HeadDim
}

// unscaled is the width of queries whose scores are not divided.
func unscaled(*spec) int { return 1 }

// architectureNames lists the supported values of general.architecture.
func architectureNames() []string { return slices.Sorted(maps.Keys(architectures)) }

// preNormEncoder tells whether a is an encoder whose LayerNorms stand where a decoder has its
// norms: ModernBERT.
func (a *architecture) preNormEncoder() bool { return a.bidirectional && a.norms.kind == layerNormBare }

// ffnNorm names the norm of the feed-forward.
func (n *normTraits) ffnNorm() string {
	if n.postAttention {
		return "post_attention_norm"
	}
	return "ffn_norm"
}

// layerNorms tells whether the norms are LayerNorm.
func (n *normTraits) layerNorms() bool { return n.kind == layerNorm || n.kind == layerNormBare }

// ropeOrder says which elements of a head are pair i of n.
type ropeOrder uint8

const (
	ropePairs  ropeOrder = iota // 2i and 2i+1
	ropeHalves                  // i and i+n
	ropeNone                    // the head does not rotate
)

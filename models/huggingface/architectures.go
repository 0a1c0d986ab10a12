package huggingface

import (
	"maps"
	"slices"
	"strings"
)

// architecture is what a model_type changes of Llama. The zero value, with a name, is
// Llama with queries and keys in the order that transformers has.
type architecture struct {
	name       string            // general.architecture
	activation string            // hidden_act must be this; "": silu
	names      map[string]string // of parts of a layer, where layerNames does not say, or other; "": not read
	paired     bool              // rows of q and k go in the order of rotated pairs
	plusOne    bool              // norms are stored less one, which the file has added
	windows    int               // every so many layers one sees all keys, and the file need not say so; 0: windows are not applied
	numbers    []key             // further keys of the file
	defaults   map[string]any    // what config.json may leave out
	mixture    *mixture
	check      func(b *builder) // of what the engine takes for granted; nil: nothing
}

// key says which number of config.json a key of the file is.
type key struct {
	to, from string
}

// mixture says how a model_type calls what it has of experts.
type mixture struct {
	width          string // the key of config.json with the width of one; "": intermediate_size is
	norm           bool   // norm_topk_prob says whether the weights of the chosen sum to one
	shared         string // the width of the expert that all rows take; "": there is none
	sameAsEveryone bool   // all layers must have experts
}

// layerNames are the parts of a layer, as most models call them, in GGUF's words.
var layerNames = map[string]string{
	"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
	"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
	"self_attn.qkv_proj": "attn_qkv", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
	"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up",
	"mlp.gate": "ffn_gate_inp", "block_sparse_moe.gate": "ffn_gate_inp", "block_sparse_moe.router.layer": "ffn_gate_inp",
	"mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp", "mlp.shared_expert.down_proj": "ffn_down_shexp",
	"mlp.shared_expert_gate": "ffn_gate_inp_shexp",
}

// expertNames are the parts of an expert.
var expertNames = map[string]string{
	"gate_proj": "ffn_gate_exps", "up_proj": "ffn_up_exps", "down_proj": "ffn_down_exps",
	"w1": "ffn_gate_exps", "w3": "ffn_up_exps", "w2": "ffn_down_exps",
}

// aroundNorms are the norms of models that have some behind attention and feed-forward.
var aroundNorms = map[string]string{
	"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
}

// graniteNumbers are the multipliers of all parts.
var graniteNumbers = []key{
	{"embedding_scale", "embedding_multiplier"}, {"residual_scale", "residual_multiplier"},
	{"attention.scale", "attention_multiplier"}, {"logit_scale", "logits_scaling"},
}

// architectures is keyed by model_type of config.json. What each is has its source in
// package models.
var architectures = map[string]architecture{
	"llama":     {name: "llama", paired: true},
	"mistral":   {name: "llama", paired: true},
	"mixtral":   {name: "llama", paired: true, mixture: &mixture{}},
	"qwen2":     {name: "qwen2"},
	"qwen2_moe": {name: "qwen2moe", mixture: &mixture{width: "moe_intermediate_size", norm: true, shared: "shared_expert_intermediate_size", sameAsEveryone: true}},
	"qwen3":     {name: "qwen3"},
	"qwen3_moe": {name: "qwen3moe", mixture: &mixture{width: "moe_intermediate_size", norm: true, sameAsEveryone: true}},
	"olmoe":     {name: "olmoe", mixture: &mixture{norm: true}},
	"gemma2": {
		name: "gemma2", activation: "gelu_pytorch_tanh", names: aroundNorms, plusOne: true, windows: 2, check: checkQueryWidth,
		numbers:  []key{{"attn_logit_softcapping", "attn_logit_softcapping"}, {"final_logit_softcapping", "final_logit_softcapping"}},
		defaults: map[string]any{"head_dim": 256, "max_position_embeddings": 8192, "rms_norm_eps": 1e-6, "sliding_window": 4096},
	},
	"gemma3_text": {
		name: "gemma3", activation: "gelu_pytorch_tanh", names: aroundNorms, plusOne: true, windows: 6, check: checkQueryWidth,
		numbers: []key{{"final_logit_softcapping", "final_logit_softcapping"}},
		defaults: map[string]any{
			"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-6,
			"sliding_window": 4096, "rope_theta": 1e6, "rope_local_base_freq": 1e4,
		},
	},
	"phi3":    {name: "phi3"},
	"smollm3": {name: "smollm3", paired: true, check: checkNoRope},
	"olmo2": {
		name: "olmo2", windows: 4,
		names: map[string]string{"post_attention_layernorm": "post_attention_norm", "post_feedforward_layernorm": "post_ffw_norm"},
	},
	"olmo3": {
		name: "olmo2", windows: 4,
		names: map[string]string{"post_attention_layernorm": "post_attention_norm", "post_feedforward_layernorm": "post_ffw_norm"},
	},
	"granite": {name: "granite", paired: true, numbers: graniteNumbers},
	"bitnet": {
		name: "bitnet-b1.58", activation: "relu2",
		names: map[string]string{"self_attn.attn_sub_norm": "attn_sub_norm", "mlp.ffn_sub_norm": "ffn_sub_norm"},
	},
}

// architecture finds the row of config.json's model_type. Models that see pictures too have
// the language model's config within.
func (b *builder) architecture() {
	kind := b.config.text("model_type", "")
	if kind == "gemma3" {
		whole := b.config
		b.config = whole.within("text_config")
		for _, name := range []string{"architectures", "quantization_config", "bos_token_id", "eos_token_id"} {
			if b.config.m != nil && !b.config.has(name) {
				b.config.m[name] = whole.m[name]
			}
		}
		kind = b.config.text("model_type", "gemma3_text")
	}
	arch, ok := architectures[kind]
	switch {
	case b.err != nil:
	case kind == "":
		b.fail("%s: model_type is missing", fileConfig)
	case !ok:
		b.fail("%s: model_type %.64q: %w: it is none of %s", fileConfig, kind, ErrUnsupported, strings.Join(slices.Sorted(maps.Keys(architectures)), ", "))
	}
	b.arch = arch
}

// checkQueryWidth holds the width that scores are divided by the root of against what the
// engine takes for Gemma: that of a head, but for the models of 27B.
func checkQueryWidth(b *builder) {
	heads, hidden := b.md[b.arch.name+".attention.head_count"], b.md[b.arch.name+".embedding_length"]
	width := b.config.count("head_dim", 1, maxDim, 256)
	if n := b.md[b.arch.name+".block_count"]; n == uint32(46) || n == uint32(62) {
		width = int(hidden.(uint32) / max(1, heads.(uint32)))
	}
	if x := b.config.number("query_pre_attn_scalar", 256); x != float64(width) {
		b.config.fail("query_pre_attn_scalar", "is %v: %w: only %d is", x, ErrUnsupported, width)
	}
}

// checkNoRope holds the layers of SmolLM3 that do not rotate against every fourth.
func checkNoRope(b *builder) {
	if n := b.config.count("no_rope_layer_interval", 1, maxLayers, 4); n != 4 {
		b.config.fail("no_rope_layer_interval", "is %d: %w: only 4 is", n, ErrUnsupported)
	}
	for i, x := range b.config.list("no_rope_layers") {
		n, ok := whole(x)
		if rotates := (i+1)%4 != 0; !ok || (n != 0) != rotates {
			b.config.fail("no_rope_layers", "at %d is %s: %w: every fourth layer does not rotate, and no other", i, brief(x), ErrUnsupported)
			return
		}
	}
}

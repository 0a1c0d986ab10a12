package huggingface

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/safetensors"
)

// onlyFlags returns a check of truth values that the engine takes for granted, which config.json may leave out.
func onlyFlags(want bool, names ...string) func(k *keys) {
	return func(k *keys) { k.config.onlyFlags(want, names...) }
}

// llamaOf names the architecture of a model whose model_type is Llama's: the BitNet of 2024 is stored as
// floats, which become ternary, and has two norms more.
func llamaOf(k *keys) string {
	if !strings.Contains(k.classes(), "BitnetForCausalLM") {
		return k.arch.name
	}
	return "bitnet"
}

// asBitNet turns Llama's row into the row of the BitNet of 2024.
func asBitNet(a *architecture) {
	a.paired, a.online, a.names = false, true, map[string]string{"self_attn.inner_attn_ln": "attn_sub_norm", "mlp.ffn_layernorm": "ffn_sub_norm"}
}

// bailingKeys are those of Ling 2.0.
func bailingKeys(k *keys) {
	c := &k.config
	groupsOfExperts(k)
	c.only("score_function", "sigmoid")
	c.onlyFlags(true, "use_qk_norm")
	c.onlyFlags(false, "use_qkv_bias", "use_bias")
	k.checkShared("moe_shared_expert_intermediate_size")
}

// checkShared checks that the expert which all rows take is as wide as num_shared_experts others.
func (k *keys) checkShared(key string) {
	c := &k.config
	c.onlyNumber(key, float64(c.count("moe_intermediate_size", 1, maxDim, required)*c.count("num_shared_experts", 0, maxLayers, 1)))
}

// exaoneKeys are those of K-EXAONE.
func exaoneKeys(k *keys) {
	c := &k.config
	groupsOfExperts(k)
	dense := c.count("first_k_dense_replace", 0, maxLayers, 0)
	for i, kind := range c.texts("mlp_layer_types") {
		if (kind == "dense") != (i < dense) {
			c.fail("mlp_layer_types", "at %d is %.40q: %w: the first %d layers are dense, and no other", i, kind, ErrUnsupported, dense)
			return
		}
	}
}

// miniMaxKeys are those of MiniMax-M2.
func miniMaxKeys(k *keys) {
	c := &k.config
	c.only("scoring_func", "sigmoid")
	c.only("qk_norm_type", "per_layer")
	c.onlyFlags(true, "use_qk_norm")
	k.set("expert_gating_func", uint32(2))
	if n := c.count("rotary_dim", 0, maxDim, 0); n > 0 {
		k.set("rope.dimension_count", uint32(n))
	}
	for i, x := range c.list("attn_type_list") {
		if n, ok := whole(x); !ok || n != 1 {
			c.fail("attn_type_list", "at %d is %s: %w: only 1 is", i, brief(x), ErrUnsupported)
			return
		}
	}
}

// museKeys are those of Muse Glimmer, whose queries are multiplied by the weights of their norm.
func museKeys(k *keys) {
	c := &k.config
	c.onlyNumber("post_norm_eps", 1e-8)
	c.onlyFlags(false, "attention_bias")
	full := k.layerTypes("full_attention")
	for i, x := range c.list("layer_rope_theta") {
		if n, ok := whole(x); i >= len(full) || (ok && n == 0) != full[i] {
			c.fail("layer_rope_theta", "at %d is %s: %w: layers rotate that have a window, and no others", i, brief(x), ErrUnsupported)
			return
		}
	}
	width := c.count("head_dim", 1, maxDim, required)
	queries, keys := slices.Repeat([]float32{float32(c.number("qk_scale_factor", 1))}, width), slices.Repeat([]float32{1}, width)
	for i := range full {
		k.vector(fmt.Sprintf("blk.%d.attn_q_norm.weight", i), queries)
		k.vector(fmt.Sprintf("blk.%d.attn_k_norm.weight", i), keys)
	}
}

// mapleKeys are those of Maple, whose units are clamped.
func mapleKeys(k *keys) {
	c := &k.config
	c.onlyFlags(true, "nope_on_global_attention")
	c.onlyNumber("num_shared_experts", 0)
	k.set("swiglu_clamp_exp", slices.Repeat([]float32{7}, k.layers()))
}

// miniCPMKeys are MiniCPM's multipliers.
func miniCPMKeys(k *keys) {
	c := &k.config
	hidden := c.count("hidden_size", 1, maxDim, required)
	k.set("residual_scale", float32(c.number("scale_depth", 1)/math.Sqrt(float64(max(1, k.layers())))))
	k.set("logit_scale", float32(float64(hidden)/float64(c.count("dim_model_base", 1, maxDim, hidden))))
}

// groupedHeads takes a matrix apart that has the queries of each KV head, its keys and its values together, as
// InternLM 2 has it.
func groupedHeads(b *builder, s *stack) {
	heads, _ := b.md.Int(b.arch.name + ".attention.head_count")
	kv := b.kvHeads()
	each := heads/max(1, kv) + 2
	if len(s.dims) != 2 || heads%max(1, kv) != 0 || s.dims[1]%(kv*each) != 0 {
		b.fail("tensor %q: %w: shape %v, want rows of %d heads and of %d KV heads", s.parts[0].Name, safetensors.ErrFormat, s.parts[0].Shape, heads, kv)
		return
	}
	width := s.dims[1] / (kv * each)
	for _, part := range []struct {
		name     string
		n, first int // heads of a KV head, and where they begin
	}{{"attn_q.weight", each - 2, 0}, {"attn_k.weight", 1, each - 2}, {"attn_v.weight", 1, each - 1}} {
		name, dims := s.sibling(part.name), []int{s.dims[0], kv * part.n * width}
		paired := b.order(name, dims)
		b.addTensor(s.taken(name, dims, func(r int) int {
			if paired != nil {
				r = paired(r)
			}
			rows := part.n * width
			return (r/rows*each+part.first)*width + r%rows
		}))
	}
}

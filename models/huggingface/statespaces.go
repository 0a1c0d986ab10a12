package huggingface

import (
	"encoding/json"
	"strconv"
	"strings"
)

// mambaKeys are those of state spaces of inner elements, by the words of Granite and Falcon.
func mambaKeys(k *keys, inner int) {
	c := &k.config
	k.set("ssm.conv_kernel", uint32(c.count("mamba_d_conv", 2, maxDim, 4)))
	k.set("ssm.state_size", uint32(c.count("mamba_d_state", 1, maxDim, 256)))
	k.set("ssm.group_count", uint32(c.count("mamba_n_groups", 1, maxDim, 1)))
	k.set("ssm.time_step_rank", uint32(c.count("mamba_n_heads", 1, maxDim, 128)))
	k.set("ssm.inner_size", uint32(inner))
	c.onlyFlags(false, "mamba_proj_bias")
	k.checkSteps()
}

// checkSteps refuses time steps that are clamped.
func (k *keys) checkSteps() {
	for i, x := range k.config.list("time_step_limit") {
		if n, ok := whole(x); ok && (n != 0 || i > 0) {
			k.config.fail("time_step_limit", "is %s: %w: clamped time steps", brief(k.config.m["time_step_limit"]), ErrUnsupported)
		}
	}
}

// graniteOf names the architecture of Granite 4: those without state spaces are Granite 3's.
func graniteOf(k *keys) string {
	for _, t := range k.config.texts("layer_types") {
		if t == "mamba" || t == "linear_attention" {
			return "granitehybrid"
		}
	}
	k.arch.more, k.arch.layouts = nil, nil
	if k.config.count("num_local_experts", 0, maxLayers, 0) > 0 {
		return "granitemoe"
	}
	k.arch.mixture, k.arch.names = nil, with(k.arch.names, graniteDense)
	if k.config.has("shared_intermediate_size") {
		k.config.m["intermediate_size"] = k.config.m["shared_intermediate_size"]
	}
	return "granite"
}

// graniteDense are the parts of a feed-forward in a model that has no experts.
var graniteDense = map[string]string{"shared_mlp.input_linear": "ffn_gate_up", "shared_mlp.output_linear": "ffn_down"}

// graniteHybridKeys sets the keys of models with state spaces.
func graniteHybridKeys(k *keys) {
	c := &k.config
	k.kvHeadsOf(k.layerTypes("attention", "full_attention"))
	k.set("rope.scaling.finetuned", c.text("position_embedding_type", "nope") == "rope")
	mambaKeys(k, min(maxDim, c.count("mamba_expand", 1, maxDim, 2)*c.count("hidden_size", 1, maxDim, required)))
	if c.count("num_local_experts", 0, maxLayers, 0) == 0 {
		k.arch.names = with(k.arch.names, graniteDense)
		k.set("feed_forward_length", uint32(c.count("shared_intermediate_size", 1, maxDim, required)))
	}
}

// bambaKeys sets the keys of Bamba, whose attention rotates.
func bambaKeys(k *keys) {
	c, attends := &k.config, make([]bool, k.layers())
	for _, x := range c.list("attn_layer_indices") {
		i, ok := whole(x)
		if !ok || i < 0 || i >= len(attends) {
			c.fail("attn_layer_indices", "has %s, want numbers of %d layers", brief(x), len(attends))
			return
		}
		attends[i] = true
	}
	k.kvHeadsOf(attends)
	mambaKeys(k, min(maxDim, c.count("mamba_expand", 1, maxDim, 2)*c.count("hidden_size", 1, maxDim, required)))
}

// mamba2Keys sets the keys of models that are state spaces alone.
func mamba2Keys(k *keys) {
	c := &k.config
	for _, name := range []string{"attention.head_count", "attention.head_count_kv", "feed_forward_length"} {
		k.set(name, uint32(0))
	}
	for _, name := range []string{"attention.key_length", "attention.value_length", "rope.freq_base", "rope.dimension_count"} {
		delete(k.md, k.arch.name+"."+name)
	}
	inner := min(maxDim, c.count("num_heads", 1, maxDim, 128)*c.count("head_dim", 1, maxDim, 64))
	if n := c.count("expand", 1, maxDim, 2) * c.count("hidden_size", 1, maxDim, required); k.err == nil && n != inner {
		c.fail("expand", "gives %d elements, num_heads and head_dim %d", n, inner)
	}
	mambaKeys(k, inner)
}

// falconKeys sets the keys of Falcon-H1.
func falconKeys(k *keys) {
	c := &k.config
	inner := c.count("mamba_d_ssm", 1, maxDim, min(maxDim, c.count("mamba_expand", 1, maxDim, 2)*c.count("hidden_size", 1, maxDim, required)))
	mambaKeys(k, inner)
	if c.flag("mamba_norm_before_gate", true) && c.flag("mamba_rms_norm", false) {
		c.fail("mamba_norm_before_gate", "is true: %w", ErrUnsupported)
	}
}

// mlpMultiplier returns one of the multipliers of Falcon-H1's feed-forwards.
func mlpMultiplier(i int) func(k *keys) ([]float64, []int) {
	return func(k *keys) ([]float64, []int) {
		x := k.config.numbers("mlp_multipliers", 2)
		if x == nil {
			return []float64{1}, nil
		}
		return []float64{float64(x[i])}, nil
	}
}

// falconParts returns the multipliers of [z, x, B, C, dt], and where each ends.
func falconParts(k *keys) (factors []float64, bounds []int) {
	x, in := k.config.numbers("ssm_multipliers", 5), k.config.number("ssm_in_multiplier", 1)
	n := func(name string) int { v, _ := k.md[k.arch.name+".ssm."+name].(uint32); return int(v) }
	at := 0
	for i, size := range []int{n("inner_size"), n("inner_size"), n("group_count") * n("state_size"), n("group_count") * n("state_size"), n("time_step_rank")} {
		if x == nil {
			return []float64{1}, nil
		}
		at += size
		factors, bounds = append(factors, in*float64(x[i])), append(bounds, at)
	}
	return factors, bounds
}

// nemotronWords are the names of layers in config.json: in hybrid_override_pattern, from the authors, today, and
// before that.
var nemotronWords = map[string]string{
	"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe",
	"linear_attention": "linear_attention", "full_attention": "full_attention", "mlp": "mlp", "moe": "moe", "mamba": "linear_attention", "attention": "full_attention",
}

// nemotronOf notes what each layer is in layer_types, and tells whether some are mixtures.
func nemotronOf(k *keys) string {
	c := &k.config
	key := "layers_block_type"
	if !c.has(key) && c.has("layer_types") {
		key = "layer_types"
	}
	types := c.texts(key)
	if !c.has(key) {
		key = "hybrid_override_pattern"
		types = strings.Split(c.text(key, ""), "")
	}
	name, layers := k.arch.name, make([]any, len(types))
	for i, t := range types {
		word, ok := nemotronWords[t]
		if layers[i] = word; !ok {
			c.fail(key, "at %d is %.40q: %w", i, t, ErrUnsupported)
		}
		if word == "moe" {
			name = "nemotron_h_moe"
		}
	}
	if name == k.arch.name {
		k.arch.mixture, k.arch.counts, k.arch.numbers = nil, nil, nil
	}
	if c.m != nil {
		c.m["layer_types"], c.m["num_hidden_layers"] = layers, json.Number(strconv.Itoa(len(layers)))
	}
	return name
}

// nemotronKeys sets the keys of models whose layers have one part each.
func nemotronKeys(k *keys) {
	c := &k.config
	k.kvHeadsOf(k.layerTypes("full_attention"))
	widths := make([]int32, k.layers())
	for word, key := range map[string]string{"mlp": "intermediate_size", "moe": "moe_intermediate_size"} {
		for i, is := range k.layerTypes(word) {
			if is {
				widths[i] = int32(c.count(key, 1, maxDim, required))
			}
		}
	}
	k.set("feed_forward_length", widths)
	mambaKeys(k, min(maxDim, c.count("mamba_n_heads", 1, maxDim, 128)*c.count("mamba_head_dim", 1, maxDim, required)))
	c.only("mamba_hidden_act", "silu")
	if k.arch.mixture != nil {
		groupsOfExperts(k)
	}
}

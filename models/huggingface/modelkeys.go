package huggingface

import (
	"strconv"
)

// checkQueryWidth holds the width that scores are divided by the root of against what the
// engine takes for Gemma: that of a head, but for the models of 27B.
func checkQueryWidth(k *keys) {
	heads, hidden := k.md[k.arch.name+".attention.head_count"], k.md[k.arch.name+".embedding_length"]
	width := k.config.count("head_dim", 1, maxDim, 256)
	if n := k.md[k.arch.name+".block_count"]; n == uint32(46) || n == uint32(62) {
		width = int(hidden.(uint32) / max(1, heads.(uint32)))
	}
	if x := k.config.number("query_pre_attn_scalar", 256); x != float64(width) {
		k.config.fail("query_pre_attn_scalar", "is %v: %w: only %d is", x, ErrUnsupported, width)
	}
}

// gemmaOf names the architecture of Gemma 3: EmbeddingGemma is an encoder.
func gemmaOf(k *keys) string {
	if k.config.flag("use_bidirectional_attention", false) {
		return "gemma-embedding"
	}
	return k.arch.name
}

// checkNoRope holds the layers of SmolLM3 that do not rotate against every fourth.
func checkNoRope(k *keys) {
	k.config.onlyNumber("no_rope_layer_interval", 4)
	for i, x := range k.config.list("no_rope_layers") {
		n, ok := whole(x)
		if rotates := (i+1)%4 != 0; !ok || (n != 0) != rotates {
			k.config.fail("no_rope_layers", "at %d is %s: %w: every fourth layer does not rotate, and no other", i, brief(x), ErrUnsupported)
			return
		}
	}
}

// layerTypes returns which layers are of a type, of the words that config.json has for it.
func (k *keys) layerTypes(words ...string) []bool {
	types, n := k.config.texts("layer_types"), k.layers()
	if len(types) != n {
		k.config.fail("layer_types", "has %d entries for %d layers", len(types), n)
		return make([]bool, n)
	}
	of := make([]bool, n)
	for i, t := range types {
		for _, w := range words {
			of[i] = of[i] || t == w
		}
	}
	return of
}

// layers returns how many layers the model has.
func (k *keys) layers() int {
	n, _ := k.md[k.arch.name+".block_count"].(uint32)
	return int(n)
}

// kvHeadsOf sets the KV heads of layers one by one: those that have no attention have none.
func (k *keys) kvHeadsOf(attends []bool) {
	heads := make([]int32, len(attends))
	for i, yes := range attends {
		if yes {
			heads[i] = int32(k.config.count("num_key_value_heads", 1, maxDim, k.config.count("num_attention_heads", 1, maxDim, required)))
		}
	}
	k.set("attention.head_count_kv", heads)
}

// groupsOfExperts sets of how many groups experts are chosen, by sigmoids.
func groupsOfExperts(k *keys) {
	c := &k.config
	if n := c.count("n_group", 1, maxLayers, 1); n > 1 {
		k.set("expert_group_count", uint32(n))
		k.set("expert_group_used_count", uint32(c.count("topk_group", 1, n, required)))
	}
	gating := uint32(2)
	if c.text("model_type", "") == "deepseek_v2" {
		gating = 1
	}
	c.only("scoring_func", map[uint32]string{1: "softmax", 2: "sigmoid"}[gating])
	k.set("expert_gating_func", gating)
	c.onlyNumber("moe_layer_freq", 1)
}

// latentKeys are those of multi-head latent attention.
func latentKeys(k *keys) {
	c := &k.config
	rank, rotated := c.count("kv_lora_rank", 1, maxDim, required), c.count("qk_rope_head_dim", 2, maxDim, required)
	plain, value := c.count("qk_nope_head_dim", 1, maxDim, required), c.count("v_head_dim", 1, maxDim, required)
	k.set("attention.head_count_kv", uint32(1))
	k.set("attention.key_length", uint32(rank+rotated))
	k.set("attention.value_length", uint32(rank))
	k.set("attention.key_length_mla", uint32(plain+rotated))
	k.set("attention.value_length_mla", uint32(value))
	k.set("attention.kv_lora_rank", uint32(rank))
	k.set("rope.dimension_count", uint32(rotated))
	if n := c.count("q_lora_rank", 0, maxDim, 0); n > 0 {
		k.set("attention.q_lora_rank", uint32(n))
	}
	r := c.within("rope_scaling")
	if c.has("rope_parameters") {
		r = c.within("rope_parameters")
	}
	if x := r.number("mscale_all_dim", 0); x != 0 {
		k.set("rope.scaling.yarn_log_multiplier", float32(0.1*x))
	}
	c.onlyFlags(true, "rope_interleave")
	switch first := c.count("first_k_dense_replace", 0, maxLayers, 0); {
	case first >= k.layers(): // that would have experts
		for _, name := range []string{"expert_count", "expert_used_count", "leading_dense_block_count"} {
			delete(k.md, k.arch.name+"."+name)
		}
	case c.has("n_routed_experts"):
		groupsOfExperts(k)
	}
}

// deltaKeys are those of gated delta nets, which all layers are but for every so many.
func deltaKeys(k *keys) {
	c, d := &k.config, k.deltaShape()
	values := c.count("linear_num_value_heads", 1, maxDim, required)
	every := c.count("full_attention_interval", 1, maxLayers, 4)
	if c.has("layer_types") {
		linear := k.layerTypes("linear_attention")
		if every = period(linear); every == 0 {
			c.fail("layer_types", "is %s: %w: attention must be in every so many layers, and in no other", brief(c.m["layer_types"]), ErrUnsupported)
		}
	}
	k.set("full_attention_interval", uint32(every))
	k.set("ssm.conv_kernel", uint32(c.count("linear_conv_kernel_dim", 2, maxDim, required)))
	k.set("ssm.state_size", uint32(d.keyWidth))
	k.set("ssm.group_count", uint32(d.keyHeads))
	k.set("ssm.time_step_rank", uint32(values))
	k.set("ssm.inner_size", uint32(min(maxDim, values*d.width)))
	if d.keyHeads == 0 || values%max(1, d.keyHeads) != 0 || d.width != d.keyWidth {
		c.fail("linear_num_value_heads", "is %d of %d, with %d key heads of %d: %w", values, d.width, d.keyHeads, d.keyWidth, ErrUnsupported)
	}
	c.onlyFlags(true, "attn_output_gate")
}

// qwen35Keys has the sections of pairs that pictures' positions turn, which llama.cpp wants. Text turns all alike.
func qwen35Keys(k *keys) {
	deltaKeys(k)
	r := k.config.within("rope_parameters")
	sections := []int32{11, 11, 10, 0} // as transformers has where a file says nothing
	if r.has("mrope_section") {
		clear(sections)
		for i, n := range r.numbers("mrope_section", len(sections)-1) {
			if n < 0 || n > maxDim || n != float32(int32(n)) {
				r.fail("mrope_section", "has %v at %d, want a number of pairs", n, i)
				return
			}
			sections[i] = int32(n)
		}
	}
	k.set("rope.dimension_sections", sections)
}

// checkClamp holds the clamped unit of gpt-oss against the engine's.
func checkClamp(k *keys) {
	k.config.onlyNumber("swiglu_limit", 7)
	k.config.onlyNumber("swiglu_alpha", 1.702)
}

// lfm2Keys are those of LFM2, most of whose layers are short convolutions.
func lfm2Keys(k *keys) {
	c, attends := &k.config, make([]bool, k.layers())
	if c.has("layer_types") {
		attends = k.layerTypes("full_attention")
	} else {
		for _, x := range c.list("full_attn_idxs") {
			if i, ok := whole(x); ok && i >= 0 && i < len(attends) {
				attends[i] = true
			}
		}
	}
	k.kvHeadsOf(attends)
	k.set("shortconv.l_cache", uint32(c.count("conv_L_cache", 2, maxDim, 3)))
	c.onlyFlags(false, "conv_bias")
	if k.arch.mixture != nil {
		k.set("expert_gating_func", uint32(2))
		c.onlyFlags(true, "use_expert_bias")
		return
	}
	width := c.count("block_ff_dim", 1, maxDim, c.count("intermediate_size", 1, maxDim, required))
	if c.flag("block_auto_adjust_ff_dim", true) { // as Llama's authors chose widths
		multiple := c.count("block_multiple_of", 1, maxDim, 256)
		width = int(c.number("block_ffn_dim_multiplier", 1) * float64(2*width/3))
		width = (width + multiple - 1) / multiple * multiple
	}
	k.set("feed_forward_length", uint32(min(maxDim, max(1, width))))
}

// gemma4Keys are those of Gemma 4, whose layers with windows have heads of their own.
func gemma4Keys(k *keys) {
	c := &k.config
	near := k.layerTypes("sliding_attention")
	dim, heads := c.count("head_dim", 1, maxDim, 256), c.count("num_key_value_heads", 1, maxDim, required)
	far, farHeads := c.count("global_head_dim", 1, maxDim, 0), 0
	if c.flag("attention_k_eq_v", false) {
		farHeads = c.count("num_global_key_value_heads", 1, maxDim, 0)
	}
	of := c.within("per_layer_config")
	for i, windowed := range near {
		if layer := of.within(strconv.Itoa(i)); !windowed {
			far, farHeads = layer.count("head_dim", 1, maxDim, far), layer.count("num_key_value_heads", 1, maxDim, farHeads)
		}
	}
	if far == 0 {
		far = dim
	}
	for name, n := range map[string]int{"attention.key_length": far, "attention.value_length": far, "attention.key_length_swa": dim, "attention.value_length_swa": dim,
		"rope.dimension_count": far, "rope.dimension_count_swa": dim} {
		k.set(name, uint32(n))
	}
	if farHeads > 0 && farHeads != heads {
		list := make([]int32, len(near))
		for i := range list {
			if list[i] = int32(farHeads); near[i] {
				list[i] = int32(heads)
			}
		}
		k.set("attention.head_count_kv", list)
	}
	shared := c.count("num_kv_shared_layers", 0, len(near), 0)
	k.set("attention.shared_kv_layers", uint32(shared))
	k.set("embedding_length_per_layer_input", uint32(c.count("hidden_size_per_layer_input", 0, maxDim, 0)))
	if width := c.count("intermediate_size", 1, maxDim/2, required); c.flag("use_double_wide_mlp", false) && k.err == nil {
		widths := make([]int32, len(near))
		for i := range widths {
			if widths[i] = int32(width); i >= len(near)-shared {
				widths[i] *= 2
			}
		}
		k.set("feed_forward_length", widths)
	}
	if !c.flag("enable_moe_block", false) {
		delete(k.md, k.arch.name+".expert_count")
	}
	rope := c.within("rope_parameters")
	rope = rope.within("full_attention")
	part, pairs := rope.number("partial_rotary_factor", 0.25), far/2
	factors := make([]float32, pairs)
	for i := range factors { // pairs that hardly rotate
		if factors[i] = 1; i >= int(part*float64(pairs)) {
			factors[i] = 1e30
		}
	}
	k.vector("rope_freqs.weight", factors)
}

// temperKeys are those of Ministral 3, whose queries grow with their positions.
func temperKeys(k *keys) {
	r := k.config.within("rope_parameters")
	if x := r.number("mscale_all_dim", 0); x > 0 {
		k.set("rope.scaling.yarn_log_multiplier", float32(x))
	}
	if x := r.number("llama_4_scaling_beta", 0); x != 0 {
		k.set("attention.temperature_scale", float32(x))
	}
}

// flat drops dimensions of one.
func flat(b *builder, s *stack) {
	s.dims = []int{s.parts[0].Len()}
	b.addTensor(s)
}

// checkErnie checks what is taken for granted of ERNIE 4.5's mixtures: all layers behind the first have one.
func checkErnie(k *keys) {
	c := &k.config
	c.onlyNumber("moe_layer_interval", 1)
	if n := c.count("moe_layer_end_index", -1, maxLayers, -1); n >= 0 && n != k.layers()-1 {
		c.fail("moe_layer_end_index", "is %d: %w: only the last layer is", n, ErrUnsupported)
	}
}

// hunyuanOf makes one number of those that Hunyuan's configuration has a layer, if they are the same.
func hunyuanOf(k *keys) string {
	c := &k.config
	for from, to := range map[string]string{"moe_topk": "num_experts_per_tok", "moe_intermediate_size": "moe_intermediate_size", "num_shared_expert": "num_shared_expert"} {
		if list, ok := c.m[from].([]any); ok && len(list) > 0 {
			first, _ := whole(list[0])
			for _, x := range list {
				if n, ok := whole(x); !ok || n != first {
					c.fail(from, "is %s: %w: all layers must have the same", brief(list), ErrUnsupported)
				}
			}
			c.m[to] = list[0]
		} else if c.has(from) {
			c.m[to] = c.m[from]
		}
	}
	if !c.has("moe_intermediate_size") {
		c.m["moe_intermediate_size"] = c.m["intermediate_size"]
	}
	return k.arch.name
}

// checkHunyuan checks what is taken for granted of Hunyuan's mixtures.
func checkHunyuan(k *keys) {
	k.config.onlyNumber("num_shared_expert", 1)
	k.config.onlyFlags(false, "use_cla", "use_mla")
}

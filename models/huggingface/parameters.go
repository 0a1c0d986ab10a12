package huggingface

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The bounds of numbers in config.json: far beyond any real model.
const (
	maxLayers  = 1 << 12
	maxDim     = 1 << 20
	maxContext = 1 << 30
)

// set sets a key of the architecture.
func (b *builder) set(name string, value any) { b.md[b.arch.name+"."+name] = value }

// parameters makes ARCH.* of config.json, as llama.cpp's converter does.
func (b *builder) parameters() {
	c := &b.config
	for name, value := range b.arch.defaults {
		if c.m != nil && !c.has(name) {
			c.m[name] = json.Number(fmt.Sprint(value))
		}
	}
	b.md["general.architecture"], b.md["general.type"], b.md["general.name"] = b.arch.name, "model", Name(b.dir)
	hidden := c.count("hidden_size", 1, maxDim, required)
	heads := c.count("num_attention_heads", 1, maxDim, required)
	b.set("block_count", uint32(c.count("num_hidden_layers", 1, maxLayers, required)))
	b.set("context_length", uint32(c.count("max_position_embeddings", 1, maxContext, required)))
	b.set("embedding_length", uint32(hidden))
	ffn := "intermediate_size"
	if m := b.arch.mixture; m != nil && m.width != "" && !c.has(ffn) {
		ffn = m.width // of models that have experts alone
	}
	b.set("feed_forward_length", uint32(c.count(ffn, 1, maxDim, required)))
	b.set("attention.head_count", uint32(heads))
	b.set("attention.head_count_kv", uint32(c.count("num_key_value_heads", 1, maxDim, heads)))
	if b.arch.layerNorm {
		b.set("attention.layer_norm_epsilon", float32(c.number("norm_eps", 1e-5)))
	} else {
		b.set("attention.layer_norm_rms_epsilon", float32(c.number("rms_norm_eps", 1e-6)))
	}
	if b.err != nil {
		return
	}
	width := c.count("head_dim", 1, maxDim, max(1, hidden/heads))
	if c.has("head_dim") {
		b.set("attention.key_length", uint32(width))
		b.set("attention.value_length", uint32(width))
	}
	if causal := c.flag("is_causal", !b.arch.encoder); !causal {
		b.set("attention.causal", false)
	}
	for _, k := range b.arch.counts {
		if c.has(k.from) {
			b.set(k.to, uint32(c.count(k.from, 0, maxDim, 0)))
		}
	}
	for _, k := range b.arch.numbers {
		if c.has(k.from) {
			b.set(k.to, float32(c.number(k.from, 0)))
		}
	}
	want := cmp.Or(b.arch.activation, "silu")
	if act := c.text("hidden_activation", c.text("hidden_act", want)); act != want {
		c.fail("hidden_act", "is %.40q: %w: of this model_type only %q is", act, ErrUnsupported, want)
	}
	if x := c.number("clip_qkv", 0); x != 0 {
		c.fail("clip_qkv", "is %v: %w", x, ErrUnsupported)
	}
	b.windows()
	b.mixture()
	b.rope(width)
	b.pooling()
	if b.arch.more != nil && b.err == nil {
		b.arch.more(b)
	}
}

// windows says which layers see a window of keys alone.
func (b *builder) windows() {
	c := &b.config
	window := c.count("sliding_window", 0, maxContext, 0)
	if window == 0 || !c.flag("use_sliding_window", true) {
		return
	}
	b.set("attention.sliding_window", uint32(window))
	if b.arch.windows == 0 {
		return
	}
	layers := int(b.md[b.arch.name+".block_count"].(uint32))
	every := b.arch.windows
	if !c.has("layer_types") {
		every = c.count("sliding_window_pattern", 1, maxLayers, every)
	}
	pattern := make([]bool, layers)
	for i := range pattern {
		if pattern[i] = (i+1)%every != 0; b.arch.first {
			pattern[i] = i%every != 0
		}
	}
	if types := c.texts("layer_types"); c.has("layer_types") {
		if len(types) != layers {
			c.fail("layer_types", "has %d entries for %d layers", len(types), layers)
			return
		}
		for i, t := range types {
			if pattern[i] = t == "sliding_attention"; !pattern[i] && t != "full_attention" {
				c.fail("layer_types", "at %d is %.40q: %w", i, t, ErrUnsupported)
			}
		}
	}
	const key = "attention.sliding_window_pattern"
	switch n := period(pattern); {
	case b.arch.first, b.arch.name == "olmo2", n == 0: // as llama.cpp's converter has it
		b.set(key, pattern)
	case n != b.arch.windows:
		b.set(key, uint32(n))
	}
}

// period returns every how many layers one, and no other, has no window; 0: they are in no
// such order.
func period(windows []bool) int {
	n := slices.Index(windows, false) + 1
	for i, w := range windows {
		if n == 0 || w != ((i+1)%n != 0) {
			return 0
		}
	}
	return n
}

// mixture makes the keys of experts.
func (b *builder) mixture() {
	c, m := &b.config, b.arch.mixture
	if m == nil || b.err != nil {
		return
	}
	count := cmp.Or(m.count, "num_experts")
	if m.count == "" && !c.has(count) {
		count = "num_local_experts"
	}
	if m.optional && c.count(count, 0, maxLayers, 0) == 0 {
		return
	}
	b.set("expert_count", uint32(c.count(count, 1, maxLayers, required)))
	b.set("expert_used_count", uint32(c.count("num_experts_per_tok", 1, maxLayers, required)))
	if m.width != "" {
		b.set("expert_feed_forward_length", uint32(c.count(m.width, 1, maxDim, required)))
	}
	if m.shared != "" {
		b.set("expert_shared_feed_forward_length", uint32(c.count(m.shared, 1, maxDim, required)))
	}
	if m.norm && c.has("norm_topk_prob") {
		b.set("expert_weights_norm", c.flag("norm_topk_prob", false))
	}
	if m.sameAsEveryone {
		if n := c.count("decoder_sparse_step", 1, maxLayers, 1); n != 1 {
			c.fail("decoder_sparse_step", "is %d: %w: all layers must have experts", n, ErrUnsupported)
		}
		if n := len(c.list("mlp_only_layers")); n > 0 {
			c.fail("mlp_only_layers", "names %d layers: %w: all layers must have experts", n, ErrUnsupported)
		}
	}
}

// rope makes the keys and tensors of the rotation. Newer files have all of it in
// rope_parameters, for layers with a window apart.
func (b *builder) rope(width int) {
	c := &b.config
	r := c.within("rope_scaling")
	theta, local := c.number("rope_theta", 10000), c.number("rope_local_base_freq", 0)
	if c.has("rope_parameters") {
		r = c.within("rope_parameters")
		if r.has("full_attention") {
			all := r
			near := all.within("sliding_attention")
			r, local = all.within("full_attention"), near.number("rope_theta", theta)
			if kind := near.text("rope_type", "default"); kind != "default" {
				near.fail("rope_type", "is %.40q: %w", kind, ErrUnsupported)
			}
		}
		theta = r.number("rope_theta", theta)
	}
	part := r.number("partial_rotary_factor", c.number("partial_rotary_factor", 1))
	if !(part > 0 && part <= 1) {
		c.fail("partial_rotary_factor", "is %v, want more than 0 and at most 1", part)
		return
	}
	dims := int(part * float64(width))
	b.set("rope.freq_base", float32(theta))
	b.set("rope.dimension_count", uint32(dims))
	if b.arch.windows > 0 && local != 0 && local != theta {
		b.set("rope.freq_base_swa", float32(local))
	}
	b.scaling(&r, dims, theta)
}

// scaling makes what stretches the context.
func (b *builder) scaling(r *values, dims int, theta float64) {
	kind := r.text("rope_type", r.text("type", "default"))
	factor := r.number("factor", 1)
	if !(factor > 0) {
		r.fail("factor", "is %v, want a positive number", factor)
		return
	}
	switch kind {
	case "default":
	case "linear":
		b.set("rope.scaling.type", "linear")
		b.set("rope.scaling.factor", float32(factor))
	case "yarn":
		b.yarn(r, factor)
	case "llama3":
		b.llama3(r, dims, theta, factor)
	case "proportional": // see gemma4Keys
	case "dynamic":
		b.dynamic(r, dims, theta, factor)
	case "longrope", "su":
		b.longrope(r, dims)
	default:
		r.fail("rope_type", "is %.40q: %w: it is none of default, linear, yarn, llama3, longrope", kind, ErrUnsupported)
	}
}

// dynamic has a base of its own where alpha is given (Hunyuan); other models stretch as texts get longer.
func (b *builder) dynamic(r *values, dims int, theta, factor float64) {
	alpha := r.number("alpha", 0)
	if !(alpha > 0) || factor != 1 || dims < 3 {
		r.fail("rope_type", "is \"dynamic\", with alpha %v and factor %v: %w", alpha, factor, ErrUnsupported)
		return
	}
	b.set("rope.freq_base", float32(theta*math.Pow(alpha, float64(dims)/float64(dims-2))))
}

func (b *builder) yarn(r *values, factor float64) {
	b.set("rope.scaling.type", "yarn")
	b.set("rope.scaling.factor", float32(factor))
	b.set("rope.scaling.original_context_length", uint32(r.count("original_max_position_embeddings", 1, maxContext, int(b.md[b.arch.name+".context_length"].(uint32)))))
	for _, k := range []key{{"yarn_beta_fast", "beta_fast"}, {"yarn_beta_slow", "beta_slow"}} {
		if r.has(k.from) {
			b.set("rope.scaling."+k.to, float32(r.number(k.from, 0)))
		}
	}
	if r.has("attention_factor") { // of all; the engine multiplies by YaRN's own
		b.set("rope.scaling.attn_factor", float32(r.number("attention_factor", 1)/(1+0.1*math.Log(max(1, factor)))))
	}
	if x := r.number("mscale", 0); x != 0 && x != r.number("mscale_all_dim", 0) {
		r.fail("mscale", "is %v: %w", x, ErrUnsupported)
	}
	if whole := b.arch.name != "gpt-oss"; r.flag("truncate", true) != whole {
		r.fail("truncate", "is %t: %w", !whole, ErrUnsupported)
	}
}

// llama3 writes the divisors of the frequencies of pairs, as Llama 3.1 stretches them (Llama Team 2024, "The
// Llama 3 Herd of Models", §3.2, and its code).
func (b *builder) llama3(r *values, dims int, theta, factor float64) {
	low, high := r.number("low_freq_factor", 1), r.number("high_freq_factor", 4)
	old := float64(r.count("original_max_position_embeddings", 1, maxContext, 8192))
	if !(low > 0 && high > low && theta > 1) {
		r.fail("high_freq_factor", "is %v, low_freq_factor %v: out of range", high, low)
		return
	}
	factors := make([]float32, dims/2)
	for i := range factors {
		wavelength := 2 * math.Pi * math.Pow(theta, 2*float64(i)/float64(dims))
		keep := min(1, max(0, (old/wavelength-low)/(high-low)))
		factors[i] = float32(1 / ((1-keep)/factor + keep))
	}
	b.vector("rope_freqs.weight", factors)
}

// longrope has two sets of factors, for contexts up to the original one and beyond.
func (b *builder) longrope(r *values, dims int) {
	c := &b.config
	length := b.md[b.arch.name+".context_length"].(uint32)
	old := c.count("original_max_position_embeddings", 2, maxContext, r.count("original_max_position_embeddings", 2, maxContext, int(max(2, length))))
	attn := r.number("attention_factor", r.number("long_mscale", 0))
	if x := r.number("short_mscale", attn); x != attn {
		r.fail("short_mscale", "is %v, long_mscale %v: %w: they must be the same", x, attn, ErrUnsupported)
	}
	if scale := float64(length) / float64(old); attn == 0 {
		attn = 1
		if scale > 1 {
			attn = math.Sqrt(1 + math.Log(scale)/math.Log(float64(old)))
		}
	}
	b.set("rope.scaling.type", "longrope")
	b.set("rope.scaling.attn_factor", float32(attn))
	b.set("rope.scaling.original_context_length", uint32(old))
	for _, of := range []string{"short", "long"} {
		if factors := r.numbers(of+"_factor", dims/2); factors != nil {
			b.vector("rope_factors_"+of+".weight", factors)
		}
	}
}

// classes returns the classes of architectures in config.json, in one text.
func (b *builder) classes() string {
	return strings.Join(slices.Clone(b.config.texts("architectures")), " ")
}

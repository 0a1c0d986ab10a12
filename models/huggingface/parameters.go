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
func (k *keys) set(name string, value any) { k.md[k.arch.name+"."+name] = value }

// parameters makes ARCH.* of config.json, as llama.cpp's converter does.
func (k *keys) parameters() {
	c := &k.config
	for name, value := range k.arch.defaults {
		if c.m != nil && !c.has(name) {
			c.m[name] = json.Number(fmt.Sprint(value))
		}
	}
	k.md["general.architecture"], k.md["general.type"], k.md["general.name"] = k.arch.name, "model", Name(k.dir)
	hidden := c.count("hidden_size", 1, maxDim, required)
	heads := c.count("num_attention_heads", 1, maxDim, required)
	k.set("block_count", uint32(c.count("num_hidden_layers", 1, maxLayers, required)))
	k.set("context_length", uint32(c.count("max_position_embeddings", 1, maxContext, required)))
	k.set("embedding_length", uint32(hidden))
	ffn := "intermediate_size"
	if m := k.arch.mixture; m != nil && m.width != "" && !c.has(ffn) {
		ffn = m.width // of models that have experts alone
	}
	k.set("feed_forward_length", uint32(c.count(ffn, 1, maxDim, required)))
	k.set("attention.head_count", uint32(heads))
	k.set("attention.head_count_kv", uint32(c.count("num_key_value_heads", 1, maxDim, heads)))
	if k.arch.layerNorm {
		k.set("attention.layer_norm_epsilon", float32(c.number("norm_eps", 1e-5)))
	} else {
		k.set("attention.layer_norm_rms_epsilon", float32(c.number("rms_norm_eps", 1e-6)))
	}
	if k.err != nil {
		return
	}
	width := c.count("head_dim", 1, maxDim, max(1, hidden/heads))
	if c.has("head_dim") {
		k.set("attention.key_length", uint32(width))
		k.set("attention.value_length", uint32(width))
	}
	if causal := c.flag("is_causal", !k.arch.encoder); !causal {
		k.set("attention.causal", false)
	}
	for _, n := range k.arch.counts {
		if c.has(n.from) {
			k.set(n.to, uint32(c.count(n.from, 0, maxDim, 0)))
		}
	}
	for _, n := range k.arch.numbers {
		if c.has(n.from) {
			k.set(n.to, float32(c.number(n.from, 0)))
		}
	}
	want := cmp.Or(k.arch.activation, "silu")
	if act := c.text("hidden_activation", c.text("hidden_act", want)); act != want {
		c.fail("hidden_act", "is %.40q: %w: of this model_type only %q is", act, ErrUnsupported, want)
	}
	c.onlyNumber("clip_qkv", 0)
	k.windows()
	k.mixture()
	k.rope(width)
	k.pooling()
	if k.arch.more != nil && k.err == nil {
		k.arch.more(k)
	}
}

// windows says which layers see a window of keys alone.
func (k *keys) windows() {
	c := &k.config
	window := c.count("sliding_window", 0, maxContext, 0)
	if window == 0 || !c.flag("use_sliding_window", true) {
		return
	}
	k.set("attention.sliding_window", uint32(window))
	if k.arch.windows == 0 {
		return
	}
	layers := int(k.md[k.arch.name+".block_count"].(uint32))
	every := k.arch.windows
	if !c.has("layer_types") {
		every = c.count("sliding_window_pattern", 1, maxLayers, every)
	}
	pattern := make([]bool, layers)
	for i := range pattern {
		if pattern[i] = (i+1)%every != 0; k.arch.first {
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
	case k.arch.first, k.arch.name == "olmo2", n == 0: // as llama.cpp's converter has it
		k.set(key, pattern)
	case n != k.arch.windows:
		k.set(key, uint32(n))
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
func (k *keys) mixture() {
	c, m := &k.config, k.arch.mixture
	if m == nil || k.err != nil {
		return
	}
	count := cmp.Or(m.count, "num_experts")
	if m.count == "" && !c.has(count) {
		count = "num_local_experts"
	}
	if m.optional && c.count(count, 0, maxLayers, 0) == 0 {
		return
	}
	k.set("expert_count", uint32(c.count(count, 1, maxLayers, required)))
	k.set("expert_used_count", uint32(c.count("num_experts_per_tok", 1, maxLayers, required)))
	if m.width != "" {
		k.set("expert_feed_forward_length", uint32(c.count(m.width, 1, maxDim, required)))
	}
	if m.shared != "" {
		k.set("expert_shared_feed_forward_length", uint32(c.count(m.shared, 1, maxDim, required)))
	}
	if m.norm && c.has("norm_topk_prob") {
		k.set("expert_weights_norm", c.flag("norm_topk_prob", false))
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
func (k *keys) rope(width int) {
	c := &k.config
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
	k.set("rope.freq_base", float32(theta))
	k.set("rope.dimension_count", uint32(dims))
	if k.arch.windows > 0 && local != 0 && local != theta {
		k.set("rope.freq_base_swa", float32(local))
	}
	s := stretching{values: &r, config: c, dims: dims, theta: theta, length: int(k.md[k.arch.name+".context_length"].(uint32)), whole: k.arch.name != "gpt-oss", set: k.set, vector: k.vector}
	s.read()
}

// stretching makes the keys and tensors that stretch the context.
type stretching struct {
	*values               // the section that says how
	config        *values // config.json
	dims          int     // of a head that rotate
	theta, factor float64
	length        int  // of the context
	whole         bool // YaRN's bounds of dimensions are whole numbers
	set           func(name string, value any)
	vector        func(name string, x []float32)
}

// read chooses among the ways to stretch.
func (s *stretching) read() {
	kind := s.text("rope_type", s.text("type", "default"))
	s.factor = s.number("factor", 1)
	if !(s.factor > 0) {
		s.fail("factor", "is %v, want a positive number", s.factor)
		return
	}
	switch kind {
	case "default":
	case "linear":
		s.set("rope.scaling.type", "linear")
		s.set("rope.scaling.factor", float32(s.factor))
	case "yarn":
		s.yarn()
	case "llama3":
		s.llama3()
	case "proportional": // see gemma4Keys
	case "dynamic":
		s.dynamic()
	case "longrope", "su":
		s.longrope()
	default:
		s.fail("rope_type", "is %.40q: %w: it is none of default, linear, yarn, llama3, longrope", kind, ErrUnsupported)
	}
}

// dynamic has a base of its own where alpha is given (Hunyuan); other models stretch as texts get longer.
func (s *stretching) dynamic() {
	alpha := s.number("alpha", 0)
	if !(alpha > 0) || s.factor != 1 || s.dims < 3 {
		s.fail("rope_type", "is \"dynamic\", with alpha %v and factor %v: %w", alpha, s.factor, ErrUnsupported)
		return
	}
	s.set("rope.freq_base", float32(s.theta*math.Pow(alpha, float64(s.dims)/float64(s.dims-2))))
}

func (s *stretching) yarn() {
	s.set("rope.scaling.type", "yarn")
	s.set("rope.scaling.factor", float32(s.factor))
	s.set("rope.scaling.original_context_length", uint32(s.count("original_max_position_embeddings", 1, maxContext, s.length)))
	for _, k := range []key{{"yarn_beta_fast", "beta_fast"}, {"yarn_beta_slow", "beta_slow"}} {
		if s.has(k.from) {
			s.set("rope.scaling."+k.to, float32(s.number(k.from, 0)))
		}
	}
	if s.has("attention_factor") { // of all; the engine multiplies by YaRN's own
		s.set("rope.scaling.attn_factor", float32(s.number("attention_factor", 1)/(1+0.1*math.Log(max(1, s.factor)))))
	}
	if x := s.number("mscale", 0); x != 0 && x != s.number("mscale_all_dim", 0) {
		s.fail("mscale", "is %v: %w", x, ErrUnsupported)
	}
	if s.flag("truncate", true) != s.whole {
		s.fail("truncate", "is %t: %w", !s.whole, ErrUnsupported)
	}
}

// llama3 is Llama 3.1's stretching (Llama Team 2024, "The Llama 3 Herd of Models", §3.2, as their
// code has it): by what the frequency of each pair is divided.
func (s *stretching) llama3() {
	low, high := s.number("low_freq_factor", 1), s.number("high_freq_factor", 4)
	old := float64(s.count("original_max_position_embeddings", 1, maxContext, 8192))
	if !(low > 0 && high > low && s.theta > 1) {
		s.fail("high_freq_factor", "is %v, low_freq_factor %v: out of range", high, low)
		return
	}
	factors := make([]float32, s.dims/2)
	for i := range factors {
		wavelength := 2 * math.Pi * math.Pow(s.theta, 2*float64(i)/float64(s.dims))
		keep := min(1, max(0, (old/wavelength-low)/(high-low)))
		factors[i] = float32(1 / ((1-keep)/s.factor + keep))
	}
	s.vector("rope_freqs.weight", factors)
}

// longrope has two sets of factors, for contexts up to the original one and beyond.
func (s *stretching) longrope() {
	old := s.config.count("original_max_position_embeddings", 2, maxContext, s.count("original_max_position_embeddings", 2, maxContext, max(2, s.length)))
	attn := s.number("attention_factor", s.number("long_mscale", 0))
	if x := s.number("short_mscale", attn); x != attn {
		s.fail("short_mscale", "is %v, long_mscale %v: %w: they must be the same", x, attn, ErrUnsupported)
	}
	if scale := float64(s.length) / float64(old); attn == 0 {
		attn = 1
		if scale > 1 {
			attn = math.Sqrt(1 + math.Log(scale)/math.Log(float64(old)))
		}
	}
	s.set("rope.scaling.type", "longrope")
	s.set("rope.scaling.attn_factor", float32(attn))
	s.set("rope.scaling.original_context_length", uint32(old))
	for _, of := range []string{"short", "long"} {
		if factors := s.numbers(of+"_factor", s.dims/2); factors != nil {
			s.vector("rope_factors_"+of+".weight", factors)
		}
	}
}

// classes returns the classes of architectures in config.json, in one text.
func (k *keys) classes() string {
	return strings.Join(slices.Clone(k.config.texts("architectures")), " ")
}

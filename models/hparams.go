package models

import (
	"math"
	"strings"

	"github.com/lutra-lm/lutra/models/attention"
)

// shape reads the hyper-parameters that all architectures share into l.cfg.
func (l *loader) shape() {
	c, m := &l.cfg, l.file.Metadata
	c.Arch = l.archName
	c.Name, _ = m.String("general.name")
	c.Layers = l.count("block_count", 1, maxLayers, required)
	c.Layers = l.withoutPredictors(c.Layers)
	c.Hidden = l.count("embedding_length", 1, maxDim, required)
	c.FFN = l.feedForwardLength()
	c.Heads = l.count("attention.head_count", 1, maxDim, required)
	c.KVHeads = l.count("attention.head_count_kv", 1, maxDim, c.Heads)
	c.Context = l.count("context_length", 1, 1<<30, required)
	switch n := l.opt.Context; {
	case n > c.Context:
		l.Fail("a context of %d tokens is longer than the model's own of %d", n, c.Context)
	case n > 0:
		c.Context = n
	}
	if l.Err() != nil {
		return
	}
	if c.Heads%c.KVHeads != 0 {
		l.Fail("%s: %d heads do not share %d KV heads evenly", l.key("attention.head_count_kv"), c.Heads, c.KVHeads)
		return
	}
	c.HeadDim = l.count("attention.key_length", 1, maxDim, c.Hidden/c.Heads)
	if c.HeadDim < 2 || c.HeadDim%2 != 0 {
		l.Fail("%s: heads of %d elements; want an even number", l.key("attention.key_length"), c.HeadDim)
	}
	if int64(c.Heads)*int64(c.HeadDim) > maxDim {
		l.Fail("%s: %d heads of %d elements are too many", l.key("attention.head_count"), c.Heads, c.HeadDim)
	}
	if v := l.count("attention.value_length", 1, maxDim, c.HeadDim); v != c.HeadDim {
		l.Fail("%s is %d: values of another length than keys (%d) are not supported", l.key("attention.value_length"), v, c.HeadDim)
	}
	name := "attention.layer_norm_rms_epsilon"
	if l.arch.norms.layerNorms() {
		name = "attention.layer_norm_epsilon"
	}
	eps := l.number(name, -1)
	if eps < 0 || eps > 1 {
		l.Fail("%s is missing or out of range", l.key(name))
	}
	if c.NormEps = float32(eps); c.NormEps == 0 {
		l.warn("%s is %v: a row of zeros, should one occur, becomes NaN and fails its request", l.key(name), eps)
	}
	emb := l.file.Tensor("token_embd.weight")
	if emb == nil {
		l.Fail("tensor token_embd.weight is missing")
		return
	}
	c.Vocab = emb.Rows()
	if n := l.file.Metadata.Len("tokenizer.ggml.tokens"); n != 0 && n != c.Vocab {
		l.Fail("tokenizer.ggml.tokens has %d tokens and token_embd.weight %d rows", n, c.Vocab)
	}
	c.Outputs = c.Vocab
}

// feedForwardLength is the width of a feed-forward. Where all layers are mixtures,
// files may give that of an expert alone.
func (l *loader) feedForwardLength() int {
	if m := l.arch.ffn.mixture; m != nil && !m.optional {
		if _, ok := l.file.Metadata[l.key("feed_forward_length")]; !ok {
			return l.count("expert_feed_forward_length", 1, maxDim, required)
		}
	}
	return l.count("feed_forward_length", 1, maxDim, required)
}

// maxPredictors bounds the layers that predict tokens further ahead, for each of which all
// names of tensors are looked at. Models have one to three.
const maxPredictors = 64

// withoutPredictors is how many of n layers the graph has: the last ones of a file
// may predict tokens further ahead, and are not read.
func (l *loader) withoutPredictors(n int) int {
	predictors := l.count("nextn_predict_layers", 0, min(maxPredictors, max(0, n-1)), 0)
	for i := n - predictors; i < n; i++ {
		prefix := layerNames(i)("")
		l.skipped = append(l.skipped, prefix)
		for j := range l.file.Tensors {
			if name := l.file.Tensors[j].Name; strings.HasPrefix(name, prefix) {
				l.Ignore(name)
			}
		}
	}
	return n - predictors
}

// ropes reads the rope.* hyper-parameters. The context it is for is l.cfg's.
func (l *loader) ropes() []rope {
	if l.Err() != nil {
		return nil
	}
	p := ropeParams{
		dims:    l.count("rope.dimension_count", 2, l.cfg.HeadDim, l.cfg.HeadDim),
		base:    l.number("rope.freq_base", 10000),
		scaling: l.text("rope.scaling.type", ""),
		factor:  l.number("rope.scaling.factor", 0),
		attn:    l.number("rope.scaling.attn_factor", 1),
	}
	if p.factor == 0 { // the key of older files
		p.factor = l.number("rope.scale_linear", 1)
	}
	if p.scaling == "" { // files from before the key existed scale linearly
		p.scaling = scalingLinear
	}
	p.original = l.count("rope.scaling.original_context_length", 1, 1<<30, l.count("context_length", 1, 1<<30, required))
	p.betaFast = l.number("rope.scaling.yarn_beta_fast", 32)
	p.betaSlow = l.number("rope.scaling.yarn_beta_slow", 1)
	p.ext, p.smooth = l.number("rope.scaling.yarn_ext_factor", 1), l.arch.positions.smoothRamp
	if p.dims%2 != 0 {
		l.Fail("%s is %d, want an even number", l.key("rope.dimension_count"), p.dims)
	}
	if p.base <= 1 || p.factor <= 0 || p.attn <= 0 || p.betaFast <= 0 || p.betaSlow <= 0 {
		l.Fail("%s, factor %v, base %v: out of range", l.key("rope.scaling"), p.factor, p.base)
	}
	switch p.scaling {
	case scalingNone, scalingLinear, scalingYarn, scalingLong:
	default:
		l.Fail("%s %q is not supported", l.key("rope.scaling.type"), p.scaling)
	}
	p.factors = l.ropeFactors(p)
	local := p
	if l.arch.positions.windowedBase {
		if local.base = l.number("rope.freq_base_swa", 10000); local.base <= 1 {
			l.Fail("%s is %v, want more than 1", l.key("rope.freq_base_swa"), local.base)
		}
	}
	if l.Err() != nil {
		return nil
	}
	ropes := []rope{newRope(p)}
	if l.arch.positions.windowedBase {
		ropes = append(ropes, newRope(local))
	}
	return ropes
}

// ropeFactors is what each pair's frequency is divided by, or nil. LongRoPE has
// two sets, the second for contexts beyond the one it was trained with at first.
func (l *loader) ropeFactors(p ropeParams) []float32 {
	name := "rope_freqs.weight"
	if l.arch.positions.ownFreqs {
		l.Ignore(name)
		return nil
	}
	if p.scaling == scalingLong {
		short, long := "rope_factors_short.weight", "rope_factors_long.weight"
		l.Ignore(short)
		l.Ignore(long)
		if name = short; l.cfg.Context > p.original {
			name = long
		}
		if l.file.Tensor(name) == nil {
			l.Fail("tensor %s is missing", name)
		}
	}
	factors := l.OptionalVector(name, p.dims/2)
	for i, f := range factors {
		if f <= 0 {
			l.Fail("tensor %s: element %d is %v", name, i, f)
		}
	}
	return factors
}

// attentionMask is that of layers with a window; the others see all keys.
func (l *loader) attentionMask() attention.Mask {
	if l.Err() != nil {
		return attention.Mask{}
	}
	c, v, width := &l.cfg, &l.arch.attention, l.cfg.HeadDim
	if v.queryWidth != nil {
		width = v.queryWidth(c)
	}
	out := attention.Mask{Scale: float32(1 / math.Sqrt(float64(width)))}
	if l.arch.positions.alibi {
		out.Slopes = alibiSlopes(c.Heads)
	}
	if l.arch.multipliers && l.positive("attention.scale") > 0 {
		out.Scale = l.multiplier("attention.scale")
	}
	if v.softCap {
		out.Cap = float32(l.positive("attn_logit_softcapping"))
	}
	if v.globalEvery > 0 {
		out.Window = l.count("attention.sliding_window", 0, 1<<30, 0)
	}
	if v.bothSides {
		l.globalEvery = l.count("attention.sliding_window_pattern", 1, maxLayers, 3)
		if n := l.count("attention.sliding_window", 0, 1<<30, 0); n > 0 {
			out.Window, out.Both = n/2+1, true
		}
	}
	return out
}

// windowed tells whether layer i sees a window of keys alone, if the model has any.
func (l *loader) windowed(i int) bool {
	if l.arch.attention.bothSides {
		return i%l.globalEvery != 0
	}
	n := l.arch.attention.globalEvery
	return n > 0 && (i+1)%n != 0
}

// multiplier is a factor that is 1 when it is missing.
func (l *loader) multiplier(name string) float32 {
	x := l.number(name, 1)
	if x <= 0 || float32(x) == 0 || float32(1/x) == 0 {
		l.Fail("%s is %v, want a positive number", l.key(name), x)
		return 1
	}
	return float32(x)
}

// attentionNorm loads the norm ahead of the attention of layer i. ModernBERT's first
// layer has none: its embeddings are normed already.
func (l *loader) attentionNorm(i int) rowNorm {
	name := layerNames(i)("attn_norm")
	if l.arch.preNormEncoder() && i == 0 && l.file.Tensor(name+".weight") == nil {
		return rowNorm{}
	}
	return l.rowNorm(name)
}

// rowNorm loads a norm of the residual stream.
func (l *loader) rowNorm(name string) (n rowNorm) {
	if l.arch.norms.layerNorms() {
		return l.layerNorm(name)
	}
	n.weight = l.Vector(name+".weight", l.cfg.Hidden)
	if l.arch.norms.kind == rmsNormBias {
		n.bias = l.OptionalVector(name+".bias", l.cfg.Hidden)
		if l.asAuthors() {
			n.bias, n.centred = l.Vector(name+".bias", l.cfg.Hidden), true
		}
	}
	return n
}

// positive is a hyper-parameter that must not be negative, 0 when it is missing.
func (l *loader) positive(name string) float64 {
	x := l.number(name, 0)
	if x < 0 {
		l.Fail("%s is %v, want a positive number", l.key(name), x)
	}
	return x
}

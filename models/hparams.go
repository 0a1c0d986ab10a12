package models

import (
	"cmp"
	"slices"
	"strings"
)

// shape reads the hyper-parameters that all architectures share into l.cfg.
func (l *loader) shape() {
	c, m := &l.cfg, l.file.Metadata
	c.Arch = l.archName
	c.Name, _ = m.String("general.name")
	c.Layers = l.count("block_count", 1, maxLayers, required)
	c.Layers = l.withoutPredictors(c.Layers)
	c.Hidden = l.count("embedding_length", 1, maxDim, required)
	if l.arch.attention.none {
		l.statesAlone()
	} else {
		c.FFN = l.feedForwardLength()
		c.Heads = l.count("attention.head_count", 1, maxDim, required)
		c.KVHeads = l.kvHeads()
	}
	c.Context = l.count("context_length", 1, 1<<30, required)
	c.longest = c.Context
	switch n := l.opt.Context; {
	case n > c.Context:
		l.Fail("a context of %d tokens is longer than the model's own of %d", n, c.Context)
	case n > 0:
		c.Context = n
	}
	if l.Err() != nil {
		return
	}
	if !l.arch.attention.none && !l.headDim() {
		return
	}
	name := "attention.layer_norm_rms_epsilon"
	if l.arch.norms.layerNorms() {
		name = "attention.layer_norm_epsilon"
	}
	if l.arch.onePart { // files have either
		name = cmp.Or(l.present(name), "attention.layer_norm_epsilon")
	}
	eps := l.number(name, -1)
	if eps < 0 || eps > 1 {
		l.Fail("%s is missing or out of range", l.key(name))
	}
	if c.NormEps = float32(eps); c.NormEps == 0 {
		l.warn("%s is %v: a row of zeros, should one occur, becomes NaN and fails its request", l.key(name), eps)
	}
	if c.postEps = c.NormEps; l.arch.norms.postEps > 0 {
		c.postEps = l.arch.norms.postEps
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
	for i := range c.Layers {
		if l.rowsAlone(i) {
			c.StatelessLayers++
		}
	}
}

// headDim reads the width of heads, and tells whether KV heads can share them.
func (l *loader) headDim() bool {
	c := &l.cfg
	if c.Heads%c.KVHeads != 0 {
		l.Fail("%s: %d heads do not share %d KV heads evenly", l.key("attention.head_count_kv"), c.Heads, c.KVHeads)
		return false
	}
	c.HeadDim = l.count("attention.key_length", 1, maxDim, c.Hidden/c.Heads)
	if c.HeadDim < 2 || c.HeadDim%2 != 0 {
		l.Fail("%s: heads of %d elements; want an even number", l.key("attention.key_length"), c.HeadDim)
	}
	if int64(c.Heads)*int64(c.HeadDim) > maxDim {
		l.Fail("%s: %d heads of %d elements are too many", l.key("attention.head_count"), c.Heads, c.HeadDim)
	}
	if v := l.count("attention.value_length", 1, maxDim, c.HeadDim); v != c.HeadDim && !l.arch.attention.latent {
		l.Fail("%s is %d: values of another length than keys (%d) are not supported", l.key("attention.value_length"), v, c.HeadDim)
	}
	c.latent = l.latentShape()
	return true
}

// statesAlone notes that every layer has a recurrent state, and nothing else: a file says so by zeros.
func (l *loader) statesAlone() {
	for _, name := range []string{"feed_forward_length", "attention.head_count", "attention.head_count_kv"} {
		l.count(name, 0, 0, 0)
	}
	l.recurs = slices.Repeat([]bool{true}, l.cfg.Layers)
}

// kvHeads returns how many KV heads the layers with attention have. Where short convolutions
// take the place of some, the file has one number a layer.
func (l *loader) kvHeads() int {
	const name = "attention.head_count_kv"
	list, ok := l.perLayer(name)
	if v := &l.arch.attention; !ok || !v.shortConvs && !v.stateSpaces && !v.otherHeads {
		return l.count(name, 1, maxDim, l.cfg.Heads)
	} else if v.otherHeads && len(list) == l.cfg.Layers { // see otherHeads
		l.kvCounts = list
		return max(1, list[len(list)-1])
	}
	n := slices.Max(append(list[:len(list):len(list)], 0))
	if len(list) != l.cfg.Layers || n < 1 || n > maxDim || slices.ContainsFunc(list, func(m int) bool { return m != 0 && m != n }) {
		l.Fail("%s is %v, want one number for each of %d layers, 0 or the same", l.key(name), list, l.cfg.Layers)
		return 1
	}
	l.recurs = make([]bool, len(list))
	for i, m := range list {
		l.recurs[i] = m == 0 && !l.rowsAlone(i)
		if m > 0 && l.rowsAlone(i) {
			l.Fail("%s and %s: layer %d has both", l.key(name), l.key("feed_forward_length"), i)
		}
	}
	return n
}

// perLayer reads a hyper-parameter that has a number for each layer, of which those that predict further
// ahead are left out; ok is false where the file has no such list.
func (l *loader) perLayer(name string) (list []int, ok bool) {
	list, ok = l.file.Metadata.Ints(l.key(name))
	if n := l.cfg.Layers; len(list) == n+l.predictors {
		list = list[:n]
	}
	return list, ok
}

// rowsAlone tells whether layer i has neither attention nor a state, but a feed-forward or a mixture alone.
func (l *loader) rowsAlone(i int) bool { return l.arch.onePart && l.widths != nil && l.widths[i] > 0 }

// feedForwardLength reads the width of a feed-forward. Where all layers are mixtures,
// files may give that of an expert alone.
func (l *loader) feedForwardLength() int {
	if m := l.arch.ffn.mixture; m != nil && !m.optional && !l.arch.onePart {
		if _, ok := l.file.Metadata[l.key("feed_forward_length")]; !ok {
			return l.count("expert_feed_forward_length", 1, maxDim, required)
		}
	}
	const name = "feed_forward_length"
	if list, ok := l.perLayer(name); ok && l.arch.ffn.widths || l.arch.onePart {
		least := 1
		if l.arch.onePart { // layers that have none
			least = 0
		}
		if len(list) != l.cfg.Layers || slices.Min(list) < least || slices.Max(list) > maxDim {
			l.Fail("%s is %v, want one number for each of %d layers, %d to %d", l.key(name), list, l.cfg.Layers, least, maxDim)
			return 1
		}
		l.widths = list
		return slices.Max(list)
	}
	return l.count(name, 1, maxDim, required)
}

// maxPredictors bounds the layers that predict tokens further ahead, for each of which all
// names of tensors are looked at. Models have one to three.
const maxPredictors = 64

// withoutPredictors tells how many of n layers the graph has: the last ones of a file
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
	l.predictors = predictors
	return n - predictors
}

// multiplier reads a factor that is 1 when it is missing.
func (l *loader) multiplier(name string) float32 { return l.multiplierOr(name, 1) }

// multiplierOr reads a factor that has that value when it is missing.
func (l *loader) multiplierOr(name string, otherwise float64) float32 {
	x := l.number(name, otherwise)
	if x <= 0 || float32(x) == 0 || float32(1/x) == 0 {
		l.Fail("%s is %v, want a positive number", l.key(name), x)
		return 1
	}
	return float32(x)
}

// positive reads a hyper-parameter that must not be negative, 0 when it is missing.
func (l *loader) positive(name string) float64 {
	x := l.number(name, 0)
	if x < 0 {
		l.Fail("%s is %v, want a positive number", l.key(name), x)
	}
	return x
}

// checkCausal refuses models whose tokens see those behind them.
func (l *loader) checkCausal() {
	if l.arch.bidirectional {
		return
	}
	if causal, ok := l.file.Metadata.Bool(l.key("attention.causal")); ok && !causal {
		l.Fail("%s is false: attention to later tokens is not supported for this architecture", l.key("attention.causal"))
	}
}

// authorsKey has a file of phimoe computed as its authors do: with sparsemixer, and
// LayerNorm in place of RMSNorm with a bias. Files are made for llama.cpp, which does
// neither.
const authorsKey = "lutra.phimoe.authors"

// asAuthors tells whether the file asks for that.
func (l *loader) asAuthors() bool {
	value, ok := l.file.Metadata[authorsKey]
	if !ok {
		return false
	}
	asked, ok := value.(bool)
	if !ok {
		l.Fail("%s is %v, want true or false", authorsKey, value)
	}
	return asked
}

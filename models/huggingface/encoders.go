package huggingface

import "strings"

// jinaOf names the architecture of a model whose model_type is BERT's: Jina's have ALiBi and gated units.
func jinaOf(b *builder) string {
	if b.config.text("position_embedding_type", "") == "alibi" {
		b.config.only("feed_forward_type", "geglu")
		return "jina-bert-v2"
	}
	return b.arch.name
}

// bertKeys checks what is taken for granted of BERT.
func bertKeys(b *builder) {
	if b.arch.name == "bert" {
		b.config.only("position_embedding_type", "absolute")
	}
	for _, key := range []string{"is_decoder", "add_cross_attention"} {
		if b.config.flag(key, false) {
			b.config.fail(key, "is true: %w", ErrUnsupported)
		}
	}
}

// behindPaddingOf returns how many positions RoBERTa leaves unused.
func behindPaddingOf(b *builder) int { return b.config.count("pad_token_id", 0, maxDim, 1) + 1 }

// robertaKeys takes the unused positions off the context.
func robertaKeys(b *builder) {
	bertKeys(b)
	n := int(b.md[b.arch.name+".context_length"].(uint32)) - behindPaddingOf(b)
	if n < 1 {
		b.config.fail("max_position_embeddings", "leaves none behind the padding's")
		return
	}
	b.set("context_length", uint32(n))
}

// behindPadding drops the rows of positions that are not used.
func behindPadding(b *builder, s *stack) {
	unused := behindPaddingOf(b)
	if len(s.dims) != 2 || s.dims[1] <= unused {
		b.fail("tensor %q: shape %v, want more than %d rows", s.parts[0].Name, s.parts[0].Shape, unused)
		return
	}
	b.addTensor(s.taken(s.name, []int{s.dims[0], s.dims[1] - unused}, func(r int) int { return r + unused }))
}

// nomicKeys checks what is taken for granted of the published configurations.
func nomicKeys(b *builder) {
	c := &b.config
	c.only("activation_function", "swiglu")
	for key, want := range map[string]bool{"prenorm": false, "rotary_emb_interleaved": false, "qkv_proj_bias": false, "mlp_fc1_bias": false, "mlp_fc2_bias": false, "use_rms_norm": false} {
		if c.flag(key, want) != want {
			c.fail(key, "is %t: %w", !want, ErrUnsupported)
		}
	}
	for _, key := range []string{"moe_every_n_layers", "num_experts"} {
		if n := c.count(key, 0, maxDim, 0); n > 0 {
			c.fail(key, "is %d: %w", n, ErrUnsupported)
		}
	}
}

// modernKeys writes the keys of ModernBERT, whose first layer of every so many sees all keys.
func modernKeys(b *builder) {
	b.set("hidden_activation", "gelu")
	for _, key := range []string{"attention_bias", "mlp_bias", "norm_bias"} {
		if b.config.flag(key, false) {
			b.config.fail(key, "is true: %w", ErrUnsupported)
		}
	}
	if b.md[b.arch.name+".pooling_type"] == uint32(pooledByHead) && b.config.text("classifier_pooling", "cls") != "mean" {
		b.config.fail("classifier_pooling", "is %.40q: %w: only mean is", b.config.text("classifier_pooling", "cls"), ErrUnsupported)
	}
}

// classifierNames are the tensors of heads that rank, by the words of BERT, RoBERTa and ModernBERT.
var classifierNames = map[string]string{
	"bert.pooler.dense.weight": "cls.weight", "bert.pooler.dense.bias": "cls.bias", "classifier.weight": "cls.output.weight", "classifier.bias": "cls.output.bias",
	"classifier.dense.weight": "cls.weight", "classifier.dense.bias": "cls.bias", "classifier.out_proj.weight": "cls.output.weight", "classifier.out_proj.bias": "cls.output.bias",
	"head.dense.weight": "cls.weight", "head.norm.weight": "cls.norm.weight",
}

// encoderHeads begin the names of heads that make no vectors.
var encoderHeads = []string{"pooler.", "bert.pooler.", "roberta.pooler.", "cls.", "lm_head.", "head.", "decoder.", "classifier."}

// encoderHead names a tensor of an encoder's head; false, and no name: it is not read.
func (b *builder) encoderHead(name string) (to string, isHead bool) {
	if b.md[b.arch.name+".pooling_type"] == uint32(pooledByHead) {
		if to := classifierNames[name]; to != "" {
			return to, true
		}
	}
	for _, begin := range encoderHeads {
		if strings.HasPrefix(name, begin) {
			return "", true
		}
	}
	return "", strings.HasSuffix(name, "embeddings.position_ids")
}

package huggingface

import "strings"

// jinaOf names the architecture of a model whose model_type is BERT's: Jina's have ALiBi and gated units.
func jinaOf(k *keys) string {
	if k.config.text("position_embedding_type", "") == "alibi" {
		k.config.only("feed_forward_type", "geglu")
		return "jina-bert-v2"
	}
	return k.arch.name
}

// bertKeys checks what is taken for granted of BERT.
func bertKeys(k *keys) {
	if k.arch.name == "bert" {
		k.config.only("position_embedding_type", "absolute")
	}
	k.config.onlyFlags(false, "is_decoder", "add_cross_attention")
}

// behindPaddingOf returns how many positions RoBERTa leaves unused.
func behindPaddingOf(k *keys) int { return k.config.count("pad_token_id", 0, maxDim, 1) + 1 }

// robertaKeys takes the unused positions off the context.
func robertaKeys(k *keys) {
	bertKeys(k)
	n := int(k.md[k.arch.name+".context_length"].(uint32)) - behindPaddingOf(k)
	if n < 1 {
		k.config.fail("max_position_embeddings", "leaves none behind the padding's")
		return
	}
	k.set("context_length", uint32(n))
}

// behindPadding drops the rows of positions that are not used.
func behindPadding(b *builder, s *stack) {
	unused := behindPaddingOf(&b.keys)
	if len(s.dims) != 2 || s.dims[1] <= unused {
		b.fail("tensor %q: shape %v, want more than %d rows", s.parts[0].Name, s.parts[0].Shape, unused)
		return
	}
	b.addTensor(s.taken(s.name, []int{s.dims[0], s.dims[1] - unused}, func(r int) int { return r + unused }))
}

// nomicKeys checks what is taken for granted of the published configurations.
func nomicKeys(k *keys) {
	c := &k.config
	c.only("activation_function", "swiglu")
	c.onlyFlags(false, "prenorm", "rotary_emb_interleaved", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "use_rms_norm")
	c.onlyNumber("moe_every_n_layers", 0)
	c.onlyNumber("num_experts", 0)
}

// modernKeys are those of ModernBERT, whose first layer of every so many sees all keys.
func modernKeys(k *keys) {
	k.set("hidden_activation", "gelu")
	k.config.onlyFlags(false, "attention_bias", "mlp_bias", "norm_bias")
	if k.md[k.arch.name+".pooling_type"] == uint32(pooledByHead) && k.config.text("classifier_pooling", "cls") != "mean" {
		k.config.fail("classifier_pooling", "is %.40q: %w: only mean is", k.config.text("classifier_pooling", "cls"), ErrUnsupported)
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

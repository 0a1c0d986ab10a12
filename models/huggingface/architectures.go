package huggingface

import (
	"maps"
	"slices"
	"strings"
)

// architecture has a model_type's differences from Llama. The zero value, with a name, is Llama with queries
// and keys in the order of transformers.
type architecture struct {
	name       string            // general.architecture
	activation string            // hidden_act must be this; "": silu
	called     map[string]string // what config.json calls keys, by their usual names
	names      map[string]string // of parts of a layer, where layerNames does not say, or other; "": not read
	layouts    map[string]layout // of tensors that are stored otherwise, by their names in GGUF
	paired     bool              // rows of q and k go in the order of rotated pairs
	online     bool              // matrices are stored as floats, and become ternary when they are read
	plusOne    bool              // norms are stored less one, which the file has added
	asStored   []string          // ends of the names of norms of which that is not so
	windows    int               // every so many layers one sees all keys, and the file need not say so; 0: windows are not applied
	first      bool              // that one is the first of as many, not the last
	encoder    bool              // tokens see those behind them
	layerNorm  bool              // norms are LayerNorm, whose epsilon has a key of its own
	counts     []key             // further whole numbers of the file
	numbers    []key             // further keys of the file
	defaults   map[string]any    // what config.json may leave out
	mixture    *mixture
	choose     func(k *keys) string             // name, where config.json says which; nil: name is
	others     map[string]func(a *architecture) // what choose may say besides name, and what it changes of the row; nil: nothing
	more       func(k *keys)                    // sets further keys, and checks what the engine takes for granted; nil: nothing
}

// key says which number of config.json a key of the file is.
type key struct {
	to, from string
}

// mixture says how a model_type calls what it has of experts.
type mixture struct {
	count          string // the key of config.json with how many there are; "": num_experts or num_local_experts
	width          string // the key of config.json with the width of one; "": intermediate_size is
	norm           bool   // norm_topk_prob says whether the weights of the chosen sum to one
	shared         string // the width of the expert that all rows take; "": there is none
	sameAsEveryone bool   // all layers must have experts
	optional       bool   // there may be none
}

// layerNames are the parts of a layer, as most models call them, in GGUF's words.
var layerNames = map[string]string{
	"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
	"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
	"self_attn.qkv_proj": "attn_qkv", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
	"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up",
	"mlp.gate": "ffn_gate_inp", "block_sparse_moe.gate": "ffn_gate_inp", "block_sparse_moe.router.layer": "ffn_gate_inp",
	"mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp", "mlp.shared_expert.down_proj": "ffn_down_shexp",
	"mlp.shared_expert_gate":       "ffn_gate_inp_shexp",
	"mlp.shared_experts.gate_proj": "ffn_gate_shexp", "mlp.shared_experts.up_proj": "ffn_up_shexp", "mlp.shared_experts.down_proj": "ffn_down_shexp",
}

// with returns all of several tables of names.
func with[T any](tables ...map[string]T) map[string]T {
	all := map[string]T{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// expertNames are the parts of an expert.
var expertNames = map[string]string{
	"gate_proj": "ffn_gate_exps", "up_proj": "ffn_up_exps", "down_proj": "ffn_down_exps",
	"w1": "ffn_gate_exps", "w3": "ffn_up_exps", "w2": "ffn_down_exps",
}

// architecture finds the row of config.json's model_type. Models that see pictures too have
// the language model's config within.
func (k *keys) architecture() {
	kind := k.config.text("model_type", "")
	if whole := k.config; whole.has("text_config") {
		k.config = whole.within("text_config")
		for _, name := range []string{"architectures", "quantization_config", "bos_token_id", "eos_token_id", "tie_word_embeddings"} {
			if k.config.m != nil && !k.config.has(name) {
				k.config.m[name] = whole.m[name]
			}
		}
		kind = k.config.text("model_type", kind+"_text")
	}
	arch, ok := architectures[kind]
	switch {
	case k.err != nil:
	case kind == "":
		k.fail("%s: model_type is missing", fileConfig)
	case !ok:
		k.fail("%s: model_type %.64q: %w: it is none of %s", fileConfig, kind, ErrUnsupported, strings.Join(slices.Sorted(maps.Keys(architectures)), ", "))
	}
	k.arch = arch
	for usual, theirs := range arch.called {
		if k.config.m != nil && k.config.has(theirs) {
			k.config.m[usual] = k.config.m[theirs]
		}
	}
	if arch.choose != nil && k.err == nil {
		name := arch.choose(k)
		k.arch = k.arch.as(name)
	}
}

// is tells whether name may be the architecture of a row.
func (a *architecture) is(name string) bool {
	_, other := a.others[name]
	return a.name == name || other
}

// as returns the row of a name that it may have.
func (a architecture) as(name string) architecture {
	if change := a.others[name]; change != nil {
		change(&a)
	}
	a.name = name
	return a
}

// ModelTypes returns the values of model_type whose directories are read, by general.architecture.
func ModelTypes() map[string][]string {
	types := map[string][]string{}
	for _, kind := range slices.Sorted(maps.Keys(architectures)) {
		a := architectures[kind]
		types[a.name] = append(types[a.name], kind)
		for name := range a.others {
			types[name] = append(types[name], kind)
		}
	}
	return types
}

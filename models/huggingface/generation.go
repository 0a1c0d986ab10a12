package huggingface

import (
	"encoding/json"

	"github.com/lutra-lm/lutra/models/gguf"
)

// samplers are the settings of generation_config.json that change what is sampled, the words
// of GGUF for them, and the value at which each does nothing. Words that GGUF lacks are their
// own, and named in the log when the model loads.
var samplers = []struct {
	from, to string
	neutral  string // as JSON; empty: none
}{
	{from: "temperature", to: "temp"}, {from: "top_k", to: "top_k"}, {from: "top_p", to: "top_p"}, {from: "min_p", to: "min_p"},
	{from: "repetition_penalty", to: "penalty_repeat"},
	{"typical_p", "typical_p", "1"}, {"epsilon_cutoff", "epsilon_cutoff", "0"}, {"eta_cutoff", "eta_cutoff", "0"},
	{"no_repeat_ngram_size", "no_repeat_ngram_size", "0"}, {"penalty_alpha", "penalty_alpha", "0"}, {"num_beams", "num_beams", "1"},
	{"diversity_penalty", "diversity_penalty", "0"}, {"encoder_repetition_penalty", "encoder_repetition_penalty", "1"},
	{"guidance_scale", "guidance_scale", "1"}, {"bad_words_ids", "bad_words_ids", ""}, {"suppress_tokens", "suppress_tokens", ""},
	{"sequence_bias", "sequence_bias", ""}, {"exponential_decay_length_penalty", "exponential_decay_length_penalty", ""},
}

// sampling makes the keys of how the author wants answers to be sampled. What cannot be meant
// becomes text, which the loader of the model names and passes over.
func (k *keys) sampling(of *values) {
	for _, s := range samplers {
		value, there := of.m[s.from]
		number, isNumber := value.(json.Number)
		if !there || value == nil {
			continue
		}
		x, err := number.Float64()
		neutral, _ := json.Number(s.neutral).Float64() // 0 for none
		switch {
		case !isNumber || err != nil:
			k.md[gguf.SamplingPrefix+s.to] = brief(value)
		case s.neutral == "" || x != neutral:
			k.md[gguf.SamplingPrefix+s.to] = float32(x)
		}
	}
	if n, ok := whole(of.m["top_k"]); ok {
		k.md[gguf.SamplingPrefix+"top_k"] = int32(min(max(n, -1), 1<<31-1))
	}
	if of.has("repetition_penalty") { // transformers penalises all tokens, and llama.cpp the last 64
		k.md[gguf.SamplingPrefix+"penalty_last_n"] = int32(-1)
	}
	if sample, ok := of.m["do_sample"].(bool); ok && !sample {
		k.md[gguf.SamplingPrefix+"temp"] = float32(0)
	}
}

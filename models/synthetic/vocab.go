package synthetic

import "fmt"

// The tokenizer: byte-level BPE without merges.
const (
	tokenEnd   = 256 // <|endoftext|>
	tokenStart = 257 // <|im_start|>
	tokenStop  = 258 // <|im_end|>
	vocabLen   = 259

	// Token kinds of tokenizer.ggml.token_type.
	kindNormal  = 1
	kindControl = 3
	kindUnused  = 5
)

const chatTemplate = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}" +
	"{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

func (s *Shape) metadata() map[string]any {
	tokens, kinds := make([]string, s.Vocab), make([]int32, s.Vocab)
	for i := range tokens {
		switch {
		case i < 256:
			tokens[i], kinds[i] = string(byteLetter(byte(i))), kindNormal
		case i < vocabLen:
			tokens[i], kinds[i] = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}[i-256], kindControl
		default:
			tokens[i], kinds[i] = fmt.Sprintf("<unused%d>", i), kindUnused
		}
	}
	md := map[string]any{
		"general.architecture":            string(s.Arch),
		"general.name":                    "synthetic " + s.Name,
		"general.description":             "random weights, for measuring speed",
		"tokenizer.ggml.model":            "gpt2",
		"tokenizer.ggml.pre":              "qwen2",
		"tokenizer.ggml.tokens":           tokens,
		"tokenizer.ggml.token_type":       kinds,
		"tokenizer.ggml.merges":           []string{},
		"tokenizer.ggml.bos_token_id":     uint32(tokenEnd),
		"tokenizer.ggml.eos_token_id":     uint32(tokenStop),
		"tokenizer.ggml.padding_token_id": uint32(tokenEnd),
		"tokenizer.ggml.add_bos_token":    false,
		"tokenizer.chat_template":         chatTemplate,
	}
	for key, v := range map[string]any{
		"context_length":                   uint32(s.Context),
		"embedding_length":                 uint32(s.Hidden),
		"block_count":                      uint32(s.allLayers()),
		"feed_forward_length":              uint32(s.FFN),
		"attention.head_count":             uint32(s.Heads),
		"attention.head_count_kv":          uint32(s.KVHeads),
		"attention.key_length":             uint32(s.HeadDim),
		"attention.value_length":           uint32(s.HeadDim),
		"attention.layer_norm_rms_epsilon": float32(1e-5),
		"rope.dimension_count":             uint32(s.HeadDim),
		"rope.freq_base":                   s.RopeBase,
		"vocab_size":                       uint32(s.Vocab),
	} {
		md[string(s.Arch)+"."+key] = v
	}
	if s.mixes() {
		for key, n := range map[string]int{"expert_count": s.Experts.Count, "expert_used_count": s.Experts.Used, "expert_feed_forward_length": s.Experts.FFN} {
			md[string(s.Arch)+"."+key] = uint32(n)
		}
	}
	if s.Arch == Qwen2MoE || s.Arch == Qwen35MoE || s.Arch == NemotronHMoE {
		md[string(s.Arch)+".expert_shared_feed_forward_length"] = uint32(s.Experts.Shared)
	}
	for key, v := range map[Arch]map[string]any{
		GPTOSS: {
			"attention.sliding_window": uint32(128), "rope.scaling.type": "yarn", "rope.scaling.factor": float32(32),
			"rope.scaling.original_context_length": uint32(4096),
		},
		Gemma2:  {"attention.sliding_window": uint32(4096), "attn_logit_softcapping": float32(50), "final_logit_softcapping": float32(30)},
		Cohere2: {"attention.sliding_window": uint32(4096), "attention.layer_norm_epsilon": float32(1e-5), "logit_scale": float32(0.25)},
	}[s.Arch] {
		md[string(s.Arch)+"."+key] = v
	}
	if s.short() {
		heads := make([]int32, s.Layers)
		for i := range heads {
			if s.attends(i) {
				heads[i] = int32(s.KVHeads)
			}
		}
		md[string(s.Arch)+".attention.head_count_kv"], md[string(s.Arch)+".shortconv.l_cache"] = heads, uint32(convTaps)
		md[string(s.Arch)+".leading_dense_block_count"] = uint32(s.Experts.Dense)
	}
	if s.Predicts {
		md[string(s.Arch)+".nextn_predict_layers"] = uint32(1)
	}
	if s.onePart() {
		heads, widths := s.perLayer()
		md[string(s.Arch)+".attention.head_count_kv"], md[string(s.Arch)+".feed_forward_length"] = heads, widths
		for key, n := range map[string]int{
			"ssm.conv_kernel": taps, "ssm.state_size": s.Spaces.Len, "ssm.group_count": s.Spaces.Groups, "ssm.time_step_rank": s.Spaces.Heads,
			"ssm.inner_size": s.Spaces.Heads * s.Spaces.HeadDim,
		} {
			md[string(s.Arch)+"."+key] = uint32(n)
		}
	}
	if s.Arch == Mamba2 {
		for _, key := range []string{"feed_forward_length", "attention.head_count", "attention.head_count_kv"} {
			md[string(s.Arch)+"."+key] = uint32(0)
		}
	}
	if s.nets() {
		for key, n := range map[string]int{
			"rope.dimension_count": s.HeadDim / 4, "full_attention_interval": attentionInterval, "ssm.conv_kernel": taps,
			"ssm.state_size": s.Delta.Width, "ssm.group_count": s.Delta.KeyHeads, "ssm.time_step_rank": s.Delta.ValueHeads,
			"ssm.inner_size": s.Delta.ValueHeads * s.Delta.Width,
		} {
			md[string(s.Arch)+"."+key] = uint32(n)
		}
		md[string(s.Arch)+".rope.dimension_sections"] = []int32{11, 11, 10, 0} // llama.cpp reads no file without
	}
	return md
}

// byteLetter returns the letter that stands for byte b in GPT-2's vocabulary: the
// byte itself where that prints, else the next free code point from 256 on.
func byteLetter(b byte) rune {
	prints := func(b int) bool { return b > ' ' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae }
	if prints(int(b)) {
		return rune(b)
	}
	letter := rune(256)
	for i := range int(b) {
		if !prints(i) {
			letter++
		}
	}
	return letter
}

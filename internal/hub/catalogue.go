package hub

import (
	"slices"
	"strings"
)

// Entry is a model that has a plain name.
type Entry struct {
	Name    string
	Ref     Ref
	Storage string // storage type of its matrices
	Size    int64  // bytes of the file, rounded
	// Memory is an estimate for serving it: the weights, a KV cache of 4096
	// tokens in float16, and buffers.
	Memory int64
	// Layers and Output are the weights that a token is multiplied with: in the layers, without the
	// experts that it does not choose, and in the output matrix, which is stored as OutputIn. A model
	// that embeds texts has no such matrix.
	Layers, Output int64
	OutputIn       string
	Licence        string
	Good           string // what it is good for
	// Format names the way to read a reward model; empty: it is a generator.
	Format string
}

// The licences that several entries have.
const (
	apache = "Apache-2.0"
	falcon = "Falcon LLM"
)

// Catalogue returns good models of few bits, by families and sizes. Names and sizes
// are those that the files had in 2026; a file that its owner has renamed since
// is an error that lists what there is.
func Catalogue() []Entry {
	const mb, million = 1_000_000, 1_000_000
	at := func(repo, file string) Ref {
		owner, name, _ := strings.Cut(repo, "/")
		return Ref{Owner: owner, Repo: name, File: file}
	}
	return []Entry{
		{Name: "bonsai-1.7b", Ref: at("prism-ml/Bonsai-1.7B-gguf", "Bonsai-1.7B-Q1_0.gguf"), Storage: "Q1_0",
			Size: 248 * mb, Memory: 800 * mb, Layers: 1409 * million, Output: 311 * million, OutputIn: "Q1_0",
			Licence: apache, Good: "1 bit: conversation on the smallest machines"},
		{Name: "bonsai-4b", Ref: at("prism-ml/Bonsai-4B-gguf", "Bonsai-4B-Q1_0.gguf"), Storage: "Q1_0",
			Size: 572 * mb, Memory: 1300 * mb, Layers: 3633 * million, Output: 388 * million, OutputIn: "Q1_0",
			Licence: apache, Good: "1 bit: conversation, short texts"},
		{Name: "bonsai-8b", Ref: at("prism-ml/Bonsai-8B-gguf", "Bonsai-8B-Q1_0.gguf"), Storage: "Q1_0",
			Size: 1159 * mb, Memory: 1900 * mb, Layers: 6946 * million, Output: 621 * million, OutputIn: "Q1_0",
			Licence: apache, Good: "1 bit: conversation, texts, contexts of 65,536 tokens"},
		{Name: "ternary-bonsai-1.7b", Ref: at("prism-ml/Ternary-Bonsai-1.7B-gguf", "Ternary-Bonsai-1.7B-PQ2_0.gguf"), Storage: "PQ2_0",
			Size: 463 * mb, Memory: 1000 * mb, Layers: 1409 * million, Output: 311 * million, OutputIn: "PQ2_0",
			Licence: apache, Good: "ternary: conversation on small machines"},
		{Name: "ternary-bonsai-4b", Ref: at("prism-ml/Ternary-Bonsai-4B-gguf", "Ternary-Bonsai-4B-PQ2_0.gguf"), Storage: "PQ2_0",
			Size: 1075 * mb, Memory: 1800 * mb, Layers: 3633 * million, Output: 388 * million, OutputIn: "PQ2_0",
			Licence: apache, Good: "ternary: conversation, texts, mathematics"},
		{Name: "ternary-bonsai-8b", Ref: at("prism-ml/Ternary-Bonsai-8B-gguf", "Ternary-Bonsai-8B-PQ2_0.gguf"), Storage: "PQ2_0",
			Size: 2182 * mb, Memory: 2900 * mb, Layers: 6946 * million, Output: 621 * million, OutputIn: "PQ2_0",
			Licence: apache, Good: "ternary: conversation, texts, mathematics, contexts of 65,536 tokens"},
		{Name: "bonsai-27b", Ref: at("prism-ml/Bonsai-27B-gguf", "Bonsai-27B-Q1_0.gguf"), Storage: "Q1_0",
			Size: 3803 * mb, Memory: 4700 * mb, Layers: 24351 * million, Output: 1271 * million, OutputIn: "Q1_0",
			Licence: apache, Good: "1 bit, thinks: tools, mathematics, code, long contexts"},
		{Name: "ternary-bonsai-27b", Ref: at("prism-ml/Ternary-Bonsai-27B-gguf", "Ternary-Bonsai-27B-PQ2_0.gguf"), Storage: "PQ2_0",
			Size: 7165 * mb, Memory: 8100 * mb, Layers: 24351 * million, Output: 1271 * million, OutputIn: "PQ2_0",
			Licence: apache, Good: "ternary, thinks: tools, mathematics, code, long contexts"},
		{Name: "ternary-bonsai-2-27b", Ref: at("prism-ml/Ternary-Bonsai-2-27B-gguf", "Ternary-Bonsai-2-27B-PTQ1_0.gguf"), Storage: "PTQ1_0",
			Size: 5947 * mb, Memory: 8100 * mb, Layers: 24351 * million, Output: 1271 * million, OutputIn: "PTQ1_0",
			Licence: apache, Good: "ternary, thinks: as ternary-bonsai-27b, newer, in the smallest file"},
		{Name: "ternary-bonsai-2-27b-pq2_0", Ref: at("prism-ml/Ternary-Bonsai-2-27B-gguf", "Ternary-Bonsai-2-27B-PQ2_0.gguf"), Storage: "PQ2_0",
			Size: 7206 * mb, Memory: 8100 * mb, Layers: 24351 * million, Output: 1271 * million, OutputIn: "PQ2_0",
			Licence: apache, Good: "ternary, thinks: the weights of ternary-bonsai-2-27b, which load sooner"},
		// Of these four the sizes are announced and one file's name is public; the others are named as their siblings are.
		{Name: "ternary-bonsai-2-2b", Ref: at("prism-ml/Ternary-Bonsai-2-2B-gguf", "Ternary-Bonsai-2-2B-PTQ1_0.gguf"), Storage: "PTQ1_0",
			Size: 430 * mb, Memory: 1000 * mb, Layers: 1344 * million, Output: 509 * million, OutputIn: "PTQ1_0",
			Licence: apache, Good: "ternary, thinks: conversation and tools on small machines"},
		{Name: "ternary-bonsai-2-4b", Ref: at("prism-ml/Ternary-Bonsai-2-4B-gguf", "Ternary-Bonsai-2-4B-PTQ1_0.gguf"), Storage: "PTQ1_0",
			Size: 950 * mb, Memory: 1800 * mb, Layers: 3569 * million, Output: 636 * million, OutputIn: "PTQ1_0",
			Licence: apache, Good: "ternary, thinks: conversation, tools, long contexts"},
		{Name: "ternary-bonsai-2-9b", Ref: at("prism-ml/Ternary-Bonsai-2-9B-gguf", "Ternary-Bonsai-2-9B-PTQ1_0.gguf"), Storage: "PTQ1_0",
			Size: 2000 * mb, Memory: 3200 * mb, Layers: 6919 * million, Output: 1017 * million, OutputIn: "PTQ1_0",
			Licence: apache, Good: "ternary, thinks: mathematics, code, tools, long contexts"},
		{Name: "ternary-bonsai-2.5-27b", Ref: at("prism-ml/Ternary-Bonsai-2.5-27B-gguf", "Ternary-Bonsai-2.5-27B-PTQ1_0.gguf"), Storage: "PTQ1_0",
			Size: 5930 * mb, Memory: 8100 * mb, Layers: 24351 * million, Output: 1271 * million, OutputIn: "PTQ1_0",
			Licence: apache, Good: "ternary, thinks: as ternary-bonsai-2-27b, newer, better with tools"},
		{Name: "bitnet-2b", Ref: at("microsoft/bitnet-b1.58-2B-4T-gguf", "ggml-model-i2_s.gguf"), Storage: "I2_S",
			Size: 1188 * mb, Memory: 1600 * mb, Layers: 2084 * million, Output: 328 * million, OutputIn: "F16",
			Licence: "MIT", Good: "ternary from the start: conversation, contexts of 4,096 tokens"},
		{Name: "falcon3-1b-1.58bit", Ref: at("tiiuae/Falcon3-1B-Instruct-1.58bit-GGUF", "ggml-model-i2_s.gguf"), Storage: "I2_S",
			Size: 1362 * mb, Memory: 1700 * mb, Layers: 1132 * million, Output: 268 * million, OutputIn: "F16",
			Licence: falcon, Good: "ternary: simple tasks, quickly"},
		{Name: "falcon3-3b-1.58bit", Ref: at("tiiuae/Falcon3-3B-Instruct-1.58bit-GGUF", "ggml-model-i2_s.gguf"), Storage: "I2_S",
			Size: 2221 * mb, Memory: 2700 * mb, Layers: 2422 * million, Output: 403 * million, OutputIn: "F16",
			Licence: falcon, Good: "ternary: conversation"},
		{Name: "falcon3-7b-1.58bit", Ref: at("tiiuae/Falcon3-7B-Instruct-1.58bit-GGUF", "ggml-model-i2_s.gguf"), Storage: "I2_S",
			Size: 3279 * mb, Memory: 3800 * mb, Layers: 6650 * million, Output: 403 * million, OutputIn: "F16",
			Licence: falcon, Good: "ternary: conversation, texts"},
		{Name: "falcon3-10b-1.58bit", Ref: at("tiiuae/Falcon3-10B-Instruct-1.58bit-GGUF", "ggml-model-i2_s.gguf"), Storage: "I2_S",
			Size: 3991 * mb, Memory: 4800 * mb, Layers: 9500 * million, Output: 403 * million, OutputIn: "F16",
			Licence: falcon, Good: "ternary: the largest of its family"},
		{Name: "falcon-e-1b", Ref: at("tiiuae/Falcon-E-1B-Instruct-GGUF", "ggml-model-i2_s.gguf"), Storage: "I2_S",
			Size: 666 * mb, Memory: 1000 * mb, Layers: 1590 * million, Output: 67 * million, OutputIn: "F16",
			Licence: falcon, Good: "ternary from the start: simple tasks, quickly"},
		{Name: "falcon-e-3b", Ref: at("tiiuae/Falcon-E-3B-Instruct-GGUF", "ggml-model-i2_s.gguf"), Storage: "I2_S",
			Size: 1000 * mb, Memory: 1400 * mb, Layers: 2919 * million, Output: 67 * million, OutputIn: "F16",
			Licence: falcon, Good: "ternary from the start: conversation"},
		{Name: "maple-20b-a1b", Ref: at("deepgrove/maple-preview-GGUF", "maple-preview-TQ1_0-head-Q4_K.gguf"), Storage: "TQ1_0",
			Size: 4984 * mb, Memory: 6500 * mb, Layers: 1057 * million, Output: 311 * million, OutputIn: "Q4_K",
			Licence: "MIT", Good: "ternary: a mixture of experts, with the speed of a 1B model"},
		{Name: "bitnet-embedding-0.6b", Ref: at("microsoft/bitnet-embedding-0.6b", "bitnet-embeddings-0.6b-bf16-i2_s.gguf"), Storage: "I2_S",
			Size: 428 * mb, Memory: 900 * mb, Layers: 440 * million, OutputIn: "F16",
			Licence: "MIT", Good: "ternary: embeddings of texts, 1,024 numbers each"},
		{Name: "bitnet-embedding-270m", Ref: at("microsoft/bitnet-embedding-270m", "bitnet-embeddings-270m-bf16-i2_s.gguf"), Storage: "I2_S",
			Size: 368 * mb, Memory: 600 * mb, Layers: 100 * million, OutputIn: "F16",
			Licence: "MIT", Good: "ternary: embeddings of texts, 640 numbers each"},
		{Name: "qwen3-0.6b", Ref: at("unsloth/Qwen3-0.6B-GGUF", "Qwen3-0.6B-Q4_K_M.gguf"), Storage: "Q4_K",
			Size: 397 * mb, Memory: 1000 * mb, Layers: 440 * million, Output: 156 * million, OutputIn: "Q6_K",
			Licence: apache, Good: "4 bits, thinks: simple tasks; drafts for larger Qwen3"},
		{Name: "qwen3-1.7b", Ref: at("unsloth/Qwen3-1.7B-GGUF", "Qwen3-1.7B-Q4_K_M.gguf"), Storage: "Q4_K",
			Size: 1107 * mb, Memory: 1700 * mb, Layers: 1409 * million, Output: 311 * million, OutputIn: "Q6_K",
			Licence: apache, Good: "4 bits, thinks: conversation, mathematics"},
		{Name: "qwen3-4b", Ref: at("Qwen/Qwen3-4B-GGUF", "Qwen3-4B-Q4_K_M.gguf"), Storage: "Q4_K",
			Size: 2500 * mb, Memory: 3200 * mb, Layers: 3633 * million, Output: 389 * million, OutputIn: "Q6_K",
			Licence: apache, Good: "4 bits, thinks: mathematics, code, languages"},
		{Name: "qwen3-30b-a3b", Ref: at("Qwen/Qwen3-30B-A3B-GGUF", "Qwen3-30B-A3B-Q4_K_M.gguf"), Storage: "Q4_K",
			Size: 18557 * mb, Memory: 19500 * mb, Layers: 2718 * million, Output: 311 * million, OutputIn: "Q6_K",
			Licence: apache, Good: "4 bits, thinks: a mixture of experts, with the speed of a 3B model"},
		{Name: "qwen3.5-4b", Ref: at("unsloth/Qwen3.5-4B-GGUF", "Qwen3.5-4B-Q4_K_M.gguf"), Storage: "Q4_K",
			Size: 2741 * mb, Memory: 3300 * mb, Layers: 3569 * million, Output: 636 * million, OutputIn: "Q6_K",
			Licence: apache, Good: "4 bits, thinks: conversation, tools, long contexts"},
		{Name: "qwen3.5-9b", Ref: at("unsloth/Qwen3.5-9B-GGUF", "Qwen3.5-9B-Q4_K_M.gguf"), Storage: "Q4_K",
			Size: 5681 * mb, Memory: 6300 * mb, Layers: 6919 * million, Output: 1017 * million, OutputIn: "Q6_K",
			Licence: apache, Good: "4 bits, thinks: mathematics, code, tools, long contexts"},
		{Name: "qwen3.6-27b", Ref: at("unsloth/Qwen3.6-27B-GGUF", "Qwen3.6-27B-Q4_K_M.gguf"), Storage: "Q4_K",
			Size: 16817 * mb, Memory: 17800 * mb, Layers: 24351 * million, Output: 1271 * million, OutputIn: "Q6_K",
			Licence: apache, Good: "4 bits, thinks: mathematics, code, tools, for those who can wait"},
		{Name: "qwen3.8-27b", Ref: at("unsloth/Qwen3.8-27B-GGUF", "Qwen3.8-27B-UD-Q4_K_XL.gguf"), Storage: "Q4_K",
			Size: 17559 * mb, Memory: 18600 * mb, Layers: 24351 * million, Output: 1271 * million, OutputIn: "Q6_K",
			Licence: apache, Good: "4 bits, thinks: as qwen3.6-27b, newer"},
		{Name: "lfm2.5-1.2b", Ref: at("LiquidAI/LFM2.5-1.2B-Instruct-GGUF", "LFM2.5-1.2B-Instruct-Q4_K_M.gguf"), Storage: "Q4_K",
			Size: 731 * mb, Memory: 1100 * mb, Layers: 1036 * million, Output: 134 * million, OutputIn: "Q6_K",
			Licence: "LFM 1.0", Good: "4 bits: conversation and tools on small machines, quickly"},
		{Name: "lfm2.5-2.6b", Ref: at("LiquidAI/LFM2.5-2.6B-GGUF", "LFM2.5-2.6B-Q4_K_M.gguf"), Storage: "Q4_K",
			Size: 1674 * mb, Memory: 2100 * mb, Layers: 2435 * million, Output: 262 * million, OutputIn: "Q6_K",
			Licence: "LFM 1.0", Good: "4 bits: conversation and tools, quickly"},
		{Name: "gemma-4-e2b-qat", Ref: at("unsloth/gemma-4-E2B-it-qat-GGUF", "gemma-4-E2B-it-qat-UD-Q4_K_XL.gguf"), Storage: "Q4_0",
			Size: 2620 * mb, Memory: 3100 * mb, Layers: 1900 * million, Output: 403 * million, OutputIn: "Q4_0",
			Licence: apache, Good: "trained for 4 bits: conversation in many languages, with the speed of a 2B model"},
		{Name: "gemma-4-e4b-qat", Ref: at("unsloth/gemma-4-E4B-it-qat-GGUF", "gemma-4-E4B-it-qat-UD-Q4_K_XL.gguf"), Storage: "Q4_0",
			Size: 4220 * mb, Memory: 4900 * mb, Layers: 3830 * million, Output: 671 * million, OutputIn: "Q4_0",
			Licence: apache, Good: "trained for 4 bits: conversation, texts in many languages"},
		{Name: "gemma-4-12b-qat", Ref: at("unsloth/gemma-4-12B-it-qat-GGUF", "gemma-4-12B-it-qat-UD-Q4_K_XL.gguf"), Storage: "Q4_0",
			Size: 6716 * mb, Memory: 7900 * mb, Layers: 10900 * million, Output: 1007 * million, OutputIn: "Q4_0",
			Licence: apache, Good: "trained for 4 bits, thinks: mathematics, code, languages"},
		{Name: "gemma-4-26b-a4b-qat", Ref: at("unsloth/gemma-4-26B-A4B-it-qat-GGUF", "gemma-4-26B-A4B-it-qat-UD-Q4_K_XL.gguf"), Storage: "Q4_0",
			Size: 14250 * mb, Memory: 15300 * mb, Layers: 3100 * million, Output: 738 * million, OutputIn: "Q4_0",
			Licence: apache, Good: "trained for 4 bits, thinks: a mixture of experts, with the speed of a 4B model"},
		{Name: "smollm2-360m", Ref: at("bartowski/SmolLM2-360M-Instruct-GGUF", "SmolLM2-360M-Instruct-Q4_K_M.gguf"), Storage: "Q4_K",
			Size: 271 * mb, Memory: 500 * mb, Layers: 315 * million, Output: 47 * million, OutputIn: "Q8_0",
			Licence: apache, Good: "4 bits: rewriting, extraction, quick tries"},
		{Name: "smollm2-1.7b", Ref: at("HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF", "smollm2-1.7b-instruct-q4_k_m.gguf"), Storage: "Q4_K",
			Size: 1056 * mb, Memory: 2000 * mb, Layers: 1611 * million, Output: 101 * million, OutputIn: "Q6_K",
			Licence: apache, Good: "4 bits: conversation, short texts in English"},
		{Name: "smollm3-3b", Ref: at("ggml-org/SmolLM3-3B-GGUF", "SmolLM3-Q4_K_M.gguf"), Storage: "Q4_K",
			Size: 1915 * mb, Memory: 2300 * mb, Layers: 2812 * million, Output: 263 * million, OutputIn: "Q6_K",
			Licence: apache, Good: "4 bits, thinks: conversation in six languages"},
		{Name: "rlhflow-prm-8b", Ref: at("QuantFactory/Llama3.1-8B-PRM-Deepseek-Data-GGUF", "Llama3.1-8B-PRM-Deepseek-Data.Q4_K_M.gguf"), Storage: "Q4_K",
			Size: 4921 * mb, Memory: 5600 * mb, Layers: 6979 * million, Output: 525 * million, OutputIn: "Q6_K",
			Licence: "Llama 3.1", Good: "reward model: judges every step of solutions in mathematics", Format: "rlhflow"},
	}
}

// Lookup finds an entry by its name.
func Lookup(name string) (Entry, bool) {
	list := Catalogue()
	i := slices.IndexFunc(list, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, false
	}
	return list[i], true
}

// Named returns the entry of a file, if it has one.
func Named(ref Ref) (Entry, bool) {
	list := Catalogue()
	i := slices.IndexFunc(list, func(e Entry) bool { return e.Ref == ref })
	if i < 0 {
		return Entry{}, false
	}
	return list[i], true
}

// Names lists the catalogue's names.
func Names() []string {
	list := Catalogue()
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name
	}
	return names
}

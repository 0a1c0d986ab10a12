package tokenizer

import (
	"slices"
	"strings"
)

// stated are rules by which byte-level BPE cuts text, as tokenizer.json states them: patterns
// whose matches and what lies between them are cut one after the other.
var stated = []struct {
	patterns []string
	name     string // of tokenizer.ggml.pre
	whole    string // the same where a word that is a token is not built up by merges; "": name is
}{
	{[]string{gpt2Words}, "gpt-2", ""},
	{[]string{llama3Words}, "dbrx", "llama-bpe"},
	{[]string{qwen2Words}, "qwen2", ""},
	{[]string{qwen35Words}, "qwen35", ""},
	{[]string{seedWords}, "seed-coder", ""},
	{[]string{bailingWords}, "bailingmoe", ""},
	{[]string{gpt4oWords}, "gpt-4o", "granite-embed-multi-97m"},
	{[]string{tekkenWords}, "tekken", "tekken"},
	{[]string{kimiWords}, "kimi-k2", ""},
	{[]string{`\p{N}`, gpt2Words}, "smollm", ""},
	{[]string{`\p{N}{1,3}`, llama3Words}, "minicpm5", "minicpm5"},
	{[]string{`\p{N}{1,3}`, `[一-龥぀-ゟ゠-ヿ]+`, deepseekV3Words}, "deepseek-v3", ""},
	{[]string{`\p{N}{1,3}`, `[一-龥\u3040-ゟ゠-ヿ]+`, deepseekV3Words}, "deepseek-v3", ""},
}

// spellings are other ways in which published files write parts of the patterns.
var spellings = strings.NewReplacer(
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)`, contractions,
	`'(?i:[sdmt]|ll|ve|re)`, contractions,
	"\r", `\r`, "\n", `\n`, // DeepSeek V3's file has the characters themselves
	`?+`, `?`, `++`, `+`, // nothing that follows could match if less were taken
)

// GPT2 is the pattern of GPT-2, which tokenizer.json names by use_regex.
const GPT2 = gpt2Words

// PreTokenizer returns the name for tokenizer.ggml.pre of rules that are stated as patterns, applied one after the
// other. whole says that merges do not build up a word that is a token (ignore_merges). False: there is none.
func PreTokenizer(patterns []string, whole bool) (name string, ok bool) {
	plain := make([]string, len(patterns))
	for i, p := range patterns {
		plain[i] = spellings.Replace(p)
	}
	for _, s := range stated {
		if !slices.Equal(s.patterns, plain) {
			continue
		}
		if name = s.name; whole && s.whole != "" {
			name = s.whole
		}
		return name, preTokenizers[name].wholeWords == whole
	}
	return "", false
}

package generation

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
)

// Prefix begins the keys of a GGUF file that say how its author wants answers to be sampled,
// https://github.com/ggml-org/llama.cpp/pull/17120.
const Prefix = "general.sampling."

// keys are the words after Prefix that are read, and the fields that they set.
var keys = map[string]string{
	"temp": "temperature", "top_k": "top_k", "top_p": "top_p", "min_p": "min_p",
	"penalty_repeat": "repetition_penalty", "penalty_last_n": "repeat_last_n",
}

// harmless are the words after Prefix that change nothing at these values, of samplers that
// are not supported: the settings of Mirostat and of XTC count only where those are on.
var harmless = map[string]func(float64) bool{
	"xtc_probability": func(x float64) bool { return x == 0 }, "xtc_threshold": func(float64) bool { return true },
	"mirostat": func(x float64) bool { return x == 0 }, "mirostat_tau": func(float64) bool { return true }, "mirostat_eta": func(float64) bool { return true },
}

// FromFile reads what a file's metadata says. Warnings name what it says in vain.
func FromFile(md gguf.Metadata) (c Config, warnings []string) {
	for _, key := range slices.Sorted(maps.Keys(md)) {
		word, ok := strings.CutPrefix(key, Prefix)
		if !ok {
			continue
		}
		x, number := md.Float(key)
		name, known := keys[word]
		switch off := harmless[word]; {
		case off != nil && number && off(x):
		case !known:
			warnings = append(warnings, fmt.Sprintf("the author's %s, %.40v, is not supported: answers are sampled without it", key, md[key]))
		default:
			if err := c.said(name, x, number, md[key]); err != nil {
				warnings = append(warnings, fmt.Sprintf("the author's %s counts for nothing: %v", key, err))
			}
		}
	}
	return c, warnings
}

// said sets a field to what somebody says, who may be wrong: it is left as it was then.
func (c *Config) said(name string, x float64, number bool, raw any) error {
	if !number || math.IsNaN(x) {
		return fmt.Errorf("found %.40q, want a number", fmt.Sprint(raw))
	}
	if name == "top_k" { // -1 is all, as for llama.cpp
		x = max(x, 0)
	}
	before := *c
	err := c.Set(name, x)
	if err != nil {
		*c = before
	}
	return err
}

// ollama are the parameters of Ollama's models that are fields, by Ollama's words for them:
// https://github.com/ollama/ollama/blob/main/docs/modelfile.mdx
var ollama = map[string]string{
	"temperature": "temperature", "top_k": "top_k", "top_p": "top_p", "min_p": "min_p", "typical_p": "typical_p",
	"repeat_penalty": "repetition_penalty", "repeat_last_n": "repeat_last_n", "presence_penalty": "presence_penalty", "frequency_penalty": "frequency_penalty",
}

// FromOllama reads the parameters of a model of Ollama's registry, a JSON object. Words that are
// no fields say nothing of sampling, or belong to Mirostat. Warnings name what counts for nothing.
func FromOllama(text []byte) (c Config, warnings []string, err error) {
	var params map[string]any
	if err := json.Unmarshal(text, &params); err != nil {
		return Config{}, nil, fmt.Errorf("no JSON object that could be read: %w", err)
	}
	for _, word := range slices.Sorted(maps.Keys(params)) {
		name, known := ollama[word]
		if x, number := params[word].(float64); known {
			if err := c.said(name, x, number, params[word]); err != nil {
				warnings = append(warnings, fmt.Sprintf("the registry's %s counts for nothing: %v", word, err))
			}
		}
	}
	return c, warnings, nil
}

package sampling

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
)

// harmless has the words after gguf.SamplingPrefix that change nothing at these values, of samplers that are not
// supported. The settings of Mirostat count only if it is on.
var harmless = map[string]func(float64) bool{
	"mirostat": func(x float64) bool { return x == 0 }, "mirostat_tau": func(float64) bool { return true }, "mirostat_eta": func(float64) bool { return true },
}

// FromFile reads what a file's metadata says. Warnings name what it says in vain.
func FromFile(md gguf.Metadata) (c Config, warnings []string) {
	for _, key := range slices.Sorted(maps.Keys(md)) {
		word, ok := strings.CutPrefix(key, gguf.SamplingPrefix)
		if !ok {
			continue
		}
		x, number := md.Float(key)
		f := named(word, func(f *Field) string { return f.GGUF })
		switch off := harmless[word]; {
		case off != nil && number && off(x):
		case f == nil:
			warnings = append(warnings, fmt.Sprintf("the author's %s, %.40v, is not supported: answers are sampled without it", key, md[key]))
		default:
			if err := c.said(f, x, number, md[key]); err != nil {
				warnings = append(warnings, fmt.Sprintf("the author's %s counts for nothing: %v", key, err))
			}
		}
	}
	return c, warnings
}

// said sets a field to what somebody says, who may be wrong: it is left as it was then.
func (c *Config) said(f *Field, x float64, number bool, raw any) error {
	if !number || math.IsNaN(x) {
		return fmt.Errorf("found %.40q, want a number", fmt.Sprint(raw))
	}
	if f.MinusOne { // as for llama.cpp
		x = max(x, 0)
	}
	before := *c
	err := c.Set(f.Name, x)
	if err != nil {
		*c = before
	}
	return err
}

// FromOllama reads the parameters of a model of Ollama's registry, a JSON object. Words that are
// no fields say nothing of sampling, or belong to Mirostat. Warnings name what counts for nothing.
func FromOllama(text []byte) (c Config, warnings []string, err error) {
	var params map[string]any
	if err := json.Unmarshal(text, &params); err != nil {
		return Config{}, nil, fmt.Errorf("no JSON object that could be read: %w", err)
	}
	for _, word := range slices.Sorted(maps.Keys(params)) {
		f := named(word, func(f *Field) string { return f.Ollama })
		if x, number := params[word].(float64); f != nil {
			if err := c.said(f, x, number, params[word]); err != nil {
				warnings = append(warnings, fmt.Sprintf("the registry's %s counts for nothing: %v", word, err))
			}
		}
	}
	return c, warnings, nil
}

// named returns the field that somebody has a word for, nil if there is none.
func named(word string, of func(*Field) string) *Field {
	for i := range Fields {
		if of(&Fields[i]) == word && word != "" {
			return &Fields[i]
		}
	}
	return nil
}

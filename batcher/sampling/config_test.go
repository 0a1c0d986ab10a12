package sampling

import (
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

func TestAnAuthorsSamplingIsReadAndWhatIsWrongIsNamed(t *testing.T) {
	c, warnings := FromFile(gguf.Metadata{
		"general.sampling.temp": float32(0.7), "general.sampling.top_k": int32(-1), "general.sampling.top_p": "high",
		"general.sampling.min_p": float64(3), "general.sampling.penalty_repeat": float32(1.05), "general.sampling.penalty_last_n": 2.5,
		"general.sampling.mirostat": int32(2), "general.sampling.mirostat_tau": float32(5), "general.sampling.xtc_probability": float32(0),
		"general.sampling.sequence": "top_k;temperature", "general.name": "x",
	})
	if got, want := c.String(), "temperature=0.7,top_k=0,repetition_penalty=1.05,xtc_probability=0"; got != want {
		t.Errorf("read %s, want %s", got, want)
	}
	for _, key := range []string{"top_p", "min_p", "penalty_last_n", "mirostat", "sequence"} {
		if !slices.ContainsFunc(warnings, func(w string) bool {
			return strings.Contains(w, gguf.SamplingPrefix+key+" ") || strings.Contains(w, gguf.SamplingPrefix+key+",")
		}) {
			t.Errorf("%q names no %s", warnings, key)
		}
	}
	if len(warnings) != 5 {
		t.Errorf("%d warnings, want 5: %q", len(warnings), warnings)
	}
}

func TestEachFieldOverridesTheOneBelow(t *testing.T) {
	author, configured := Config{Temperature: new(float32(0.6)), TopK: new(20)}, Config{TopK: new(0)}
	if got, want := configured.Or(author).Or(Config{MinP: new(float32(0.05)), TopK: new(9)}).String(), "temperature=0.6,top_k=0,min_p=0.05"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTheTextOfAFlagIsReadOrRefusedByName(t *testing.T) {
	if c, err := Parse("temperature=0.25, top_k=20"); err != nil || c.String() != "temperature=0.25,top_k=20" {
		t.Errorf("%s, %v", c, err)
	}
	for text, want := range map[string]string{
		"": "want a list", "temperature": "want a list", "heat=1": "there is no", "temperature=3": "temperature: 3 is outside", "top_k=1.5": "whole number", "top_p=NaN": "top_p: NaN",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): %v, want %q", text, err, want)
		}
	}
	bad := Config{MinP: new(float32(2))}
	if err := bad.Validate(); err == nil || !strings.HasPrefix(err.Error(), "min_p: ") {
		t.Errorf("a min_p of 2: %v", err)
	}
}

func TestParametersOfOllamaAreReadAndWhatIsWrongIsNamed(t *testing.T) {
	c, warnings, err := FromOllama([]byte(`{"temperature":0.6,"top_k":20,"top_p":"high","min_p":7,"repeat_penalty":1.1,"repeat_last_n":-1,"presence_penalty":1.5,"stop":["<|im_end|>"],"num_ctx":4096}`))
	if got, want := c.String(), "temperature=0.6,top_k=20,repetition_penalty=1.1,repeat_last_n=-1,presence_penalty=1.5"; err != nil || got != want {
		t.Errorf("read %s, want %s: %v", got, want, err)
	}
	if len(warnings) != 2 || !strings.Contains(warnings[0], "min_p") || !strings.Contains(warnings[1], "top_p") {
		t.Errorf("warnings %q, want one of min_p and one of top_p", warnings)
	}
	for _, text := range []string{"", "[]", "5", "{", `"x"`} {
		if c, _, err := FromOllama([]byte(text)); err == nil {
			t.Errorf("FromOllama(%q) = %v", text, c)
		}
	}
}

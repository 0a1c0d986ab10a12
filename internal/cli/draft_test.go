package cli

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

func TestADraftModelIsForEveryModelButItself(t *testing.T) {
	l, s := ModelConfig{Embedded: "lutra-tiny-l"}, ModelConfig{Embedded: "lutra-tiny-s"}
	file := ModelConfig{Path: "m.gguf"}
	with := func(m ModelConfig, draft string) ModelConfig { m.Draft = draft; return m }
	for _, c := range []struct {
		m      ModelConfig
		engine string
		off    bool
		want   string // "": none
	}{
		{m: l},
		{m: l, engine: "lutra-tiny-s", want: "lutra-tiny-s"},
		{m: s, engine: "lutra-tiny-s"},
		{m: file, engine: "./m.gguf"},
		{m: file, engine: "d.gguf", want: "d"},
		{m: with(l, "d.gguf"), engine: "lutra-tiny-s", want: "d"},
		{m: with(l, "none"), engine: "lutra-tiny-s"},
		{m: with(s, "lutra-tiny-s"), want: "lutra-tiny-s"}, // as wished
		{m: l, engine: "lutra-tiny-s", off: true},
		{m: VerifierConfig{Embedded: "lutra-tiny-prm"}.model(), engine: "lutra-tiny-s"},
	} {
		cfg := DefaultConfig()
		cfg.Engine.DraftModel = c.engine
		if c.off {
			cfg.Engine.Speculation = batcher.SpeculateOff
		}
		got := ""
		if d, ok := cfg.draftOf(c.m); ok {
			got = d.apiName()
		}
		if got != c.want {
			t.Errorf("%+v with draft_model %q: %q drafts, want %q", c.m, c.engine, got, c.want)
		}
	}
}

func TestADraftModelHasTheVocabularyOfItsModel(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other.gguf")
	mustLutra(t, "bench", "model", "--shape", "tiny", "--out", other)
	for draft, want := range map[string]error{other: tokenizer.ErrVocabulary, "lutra-tiny-prm": nil, "no-such.gguf": nil} {
		cfg := DefaultConfig()
		cfg.Models, cfg.Engine.DraftModel = cfg.Models[:1], draft
		_, err := newRuntime(cfg, zerolog.Nop(), watcher{})
		if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), "lutra-tiny-l") || !strings.Contains(err.Error(), strings.TrimSuffix(filepath.Base(draft), ".gguf")) {
			t.Errorf("%s drafts for lutra-tiny-l: %v, want an error that names both and is %v", draft, err, want)
		}
	}
}

func TestAnswersAreTheSameWithADraftModel(t *testing.T) {
	for _, sampling := range [][]string{{"--temperature", "0"}, {"--temperature", "0.8", "--seed", "7"}} {
		ask := func(args ...string) string {
			return mustLutra(t, append(append([]string{"ask"}, sampling...), append(args, "Ben has 12 pens. He buys 3 bags with 7 pens each. How many pens does he have?")...)...)
		}
		if got, want := ask("--draft-model", "lutra-tiny-s", "--speculation", "4"), ask("--speculation", "off"); got != want || want == "" {
			t.Errorf("%v: %q with a draft model, %q without", sampling, got, want)
		}
	}
}

func TestBenchEngineDictatesWhatADraftModelKnows(t *testing.T) {
	out := mustLutra(t, "bench", "engine", "--json", "--reps", "1", "--draft-model", "lutra-tiny-s", "--speculation", "3", "--tests", "dr16,sp16")
	var results []engineResult
	if err := json.Unmarshal([]byte(out), &results); err != nil || len(results) != 2 {
		t.Fatalf("bench engine = %s", out)
	}
	for _, args := range [][]string{{"--tests", "dr16"}, {"--tests", "sp16", "--speculation", "much"}} {
		var mistake usage.Error
		if _, err := lutra(t, append([]string{"bench", "engine"}, args...)...); !errors.As(err, &mistake) {
			t.Errorf("bench engine %v: %v, want an error of usage", args, err)
		}
	}
}

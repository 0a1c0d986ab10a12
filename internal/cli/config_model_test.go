package cli

import (
	"testing"

	"github.com/lutra-lm/lutra/batcher"
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

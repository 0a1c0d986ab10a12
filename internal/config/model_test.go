package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models/gguf"
)

func TestADraftModelIsForEveryModelButItself(t *testing.T) {
	l, s := Model{Embedded: "lutra-tiny-l"}, Model{Embedded: "lutra-tiny-s"}
	file := Model{Path: "m.gguf"}
	with := func(m Model, draft string) Model { m.Draft = draft; return m }
	for _, c := range []struct {
		m      Model
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
		{m: Verifier{Embedded: "lutra-tiny-prm"}.Model(), engine: "lutra-tiny-s"},
	} {
		cfg := Default()
		cfg.Engine.DraftModel = c.engine
		if c.off {
			cfg.Engine.Speculation = batcher.SpeculateOff
		}
		got := ""
		if d, ok := cfg.DraftOf(c.m); ok {
			got = d.APIName()
		}
		if got != c.want {
			t.Errorf("%+v with draft_model %q: %q drafts, want %q", c.m, c.engine, got, c.want)
		}
	}
}

func TestMetadataOfAModelIsReadAsAFileHasIt(t *testing.T) {
	c, err := Load(writeConfig(t, "models:\n  - embedded: lutra-tiny-s\n    metadata: {a: \"true\", b: \"12\", c: \"1.5\", d: words}\n"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := gguf.Metadata{"a": true, "b": int64(12), "c": 1.5, "d": "words"}
	if got := c.Models[0].Overrides(); !reflect.DeepEqual(got, want) {
		t.Errorf("the metadata is %v, want %v", got, want)
	}
	if _, err := Load(writeConfig(t, "models:\n  - embedded: lutra-tiny-s\n    metadata: [a]\n"), nil, nil); err == nil || !strings.Contains(err.Error(), "models[0].metadata") {
		t.Errorf("a list gives %v, want an error that names the key", err)
	}
}

func TestAnOptionalEmbeddedModelIsLoadedOnlyWhereItIsNamed(t *testing.T) {
	m, cfg := Model{Embedded: "lutra-tiny-moe"}, Default()
	if names := cfg.Names(); slices.Contains(names, m.APIName()) {
		t.Errorf("%s is loaded without being named: %v", m.Embedded, names)
	}
	if named, err := ModelFlag(m.Embedded); err != nil || named.Embedded != m.Embedded {
		t.Errorf("--model %s is %+v, %v", m.Embedded, named, err)
	}
	if file, err := m.Open(); err != nil || file.Tensor("blk.0.ffn_gate_exps.weight") == nil {
		t.Errorf("%s is no mixture: %v", m.Embedded, err)
	}
}

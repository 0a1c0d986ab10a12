package tts_test

import (
	"errors"
	"testing"

	. "github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/structure"
	"github.com/lutra-lm/lutra/tts/toolcall"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

func TestCallsThatMeanTheSameAreReadAlike(t *testing.T) {
	c := Calling{Format: toolcall.Hermes, Tools: []toolcall.Tool{{Name: "f"}}}
	const want = `f({"a":1,"b":[2,"x"]})`
	for _, arguments := range []string{`{"a":1,"b":[2,"x"]}`, `{ "b": [2, "x"],  "a": 1 }`} {
		if got, ok := c.Read("I call.\n" + toolcall.Hermes.Write("f", arguments)); !ok || got != want {
			t.Errorf("%s is read as %q, want %q", arguments, got, want)
		}
	}
	two := toolcall.Hermes.Write("f", `{}`) + toolcall.Hermes.Write("f", `{"a":2}`)
	if got, _ := c.Read(two); got != "f({})\nf({\"a\":2})" {
		t.Errorf("two calls are read as %q", got)
	}
	c.Single = true
	if got, _ := c.Read(two); got != "f({})" {
		t.Errorf("of which one counts: %q", got)
	}
	if got, ok := (&Calling{Format: toolcall.Hermes}).Read("Answer: 12"); ok {
		t.Errorf("text is read as the calls %q", got)
	}
}

func TestAToolIsNotLeftUnheldBecauseOthersTakeTheMemory(t *testing.T) {
	m := ttstest.Run(t, ttstest.Thinks(t))
	m.Formats.Share(structure.NewCache(structure.CacheOptions{Memory: 1 << 10, Largest: 1 << 20}))
	c := Calling{Format: toolcall.Hermes, Tools: []toolcall.Tool{{Name: "a", Schema: []byte(`{"type": "object", "properties": {"x": {"enum": [1]}}}`)}}}
	if err := c.Hold(t.Context(), &Request{}, m, true, ""); !errors.Is(err, structure.ErrBusy) {
		t.Errorf("%v, want ErrBusy", err)
	}
}

package server

import (
	"bytes"
	"testing"

	"github.com/lutra-lm/lutra/tts"
)

// FuzzFragment holds a chunk put together against the one that is encoded whole.
func FuzzFragment(f *testing.F) {
	for _, s := range []string{"", "plain", `"quoted" \ back`, "<b>&amp;</b>", "line\nfeed\ttab\x00\x1f\x7f", "grüße 🦦", "\u2028\u2029", "\ufffd", "\xff\xe2\x82", hole} {
		f.Add(s)
	}
	c := &chatShape{id: "chatcmpl-\u2028", created: 1, model: `toy"\`, usage: true}
	f.Fuzz(func(t *testing.T, text string) {
		var got, want bytes.Buffer
		if err := c.chunk(tts.Delta{Choice: 3, Text: text}).(*chunkTemplate).write(&got); err != nil {
			t.Fatal(err)
		}
		if err := encode(&want, c.delta(chatChoice{Index: 3, Delta: &chatDelta{Content: &text}})); err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() {
			t.Errorf("%q is put together as %s, want %s", text, got.Bytes(), want.Bytes())
		}
	})
}

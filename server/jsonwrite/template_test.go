package jsonwrite

import (
	"bytes"
	"testing"
)

// FuzzTemplate holds a chunk put together against the one that is encoded whole.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"", "plain", `"quoted" \ back`, "<b>&amp;</b>", "line\nfeed\ttab\x00\x1f\x7f", "grüße 🦦", "\u2028\u2029", "\ufffd", "\xff\xe2\x82", Hole} {
		f.Add(s)
	}
	type chunk struct {
		ID      string  `json:"id"`
		Content *string `json:"content"`
		Usage   *int    `json:"usage"`
	}
	whole := func(text string) chunk { return chunk{ID: "\u2028\"", Content: &text} }
	template := NewTemplate(whole(Hole))
	f.Fuzz(func(t *testing.T, text string) {
		var got, want bytes.Buffer
		if err := template.With(text).write(&got); err != nil {
			t.Fatal(err)
		}
		if err := Encode(&want, whole(text)); err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() {
			t.Errorf("%q is put together as %s, want %s", text, got.Bytes(), want.Bytes())
		}
	})
}

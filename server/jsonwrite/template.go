package jsonwrite

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// Template is a chunk that differs from others of its stream in one string alone:
// what is around that is encoded once.
type Template struct {
	head, tail []byte
	text       string
}

// Hole marks where the text goes: no other string in a chunk is this one.
const Hole = "\x00"

// NewTemplate encodes a chunk whose text is a hole.
func NewTemplate(chunk any) (f Template) {
	var b bytes.Buffer
	_ = Encode(&b, chunk) // plain fields, which cannot fail
	f.head, f.tail, _ = bytes.Cut(b.Bytes(), []byte(`"\u0000"`))
	return f
}

// With returns the chunk with text in its place.
func (f Template) With(text string) *Template {
	f.text = text
	return &f
}

// write appends the chunk and a line's end to b, as encode would.
func (f *Template) write(b *bytes.Buffer) error {
	b.Write(f.head)
	if strings.IndexFunc(f.text, special) < 0 {
		b.WriteByte('"')
		b.WriteString(f.text)
		b.WriteByte('"')
	} else {
		if err := Encode(b, f.text); err != nil {
			return err
		}
		b.Truncate(b.Len() - 1) // the line's end
	}
	b.Write(f.tail)
	return nil
}

// special tells whether JSON has another way to write r, or none.
func special(r rune) bool {
	return r < ' ' || r == '"' || r == '\\' || r == '\u2028' || r == '\u2029' || r == '\ufffd'
}

// Encode writes v and a line's end.
func Encode(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Package jsonwrite writes JSON answers piece by piece: whole ones (Reply), and
// streams of server-sent events (Events).
//
// A slow client holds one piece in memory. Every write has a deadline; after one
// has failed, nothing more is written.
package jsonwrite

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Reply writes a JSON answer piece by piece: a slow client holds one piece in
// memory, and what the answer is made from. After a write has failed, nothing more
// is written.
type Reply struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration // for the client to take a piece
	end     time.Time     // of the time for the whole answer; zero: none
	buf     bytes.Buffer
	err     error
}

// pieceLen is about how many bytes are written together.
const pieceLen = 32 << 10

// NewReply begins an answer of status 200. A client has the timeout to take a
// piece, and until end, if that is not zero, to take all of them.
func NewReply(w http.ResponseWriter, timeout time.Duration, end time.Time) *Reply {
	w.Header().Set("Content-Type", "application/json")
	return &Reply{w: w, rc: http.NewResponseController(w), timeout: timeout, end: end}
}

// Raw writes encoded JSON.
func (p *Reply) Raw(json string) {
	p.buf.WriteString(json)
	p.pass()
}

// Value writes v.
func (p *Reply) Value(v any) {
	if p.err != nil {
		return
	}
	if p.err = Encode(&p.buf, v); p.err == nil {
		p.buf.Truncate(p.buf.Len() - 1) // the line's end
	}
	p.pass()
}

// Text writes a string.
func (p *Reply) Text(s string) {
	p.Raw(`"`)
	for s != "" && p.err == nil {
		end := min(pieceLen, len(s))
		for end < len(s) && end > pieceLen-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		at := p.buf.Len()
		p.err = Encode(&p.buf, s[:end])
		inner := p.buf.Bytes()[at:]
		copy(inner, inner[1:]) // drops the quotes and the line's end
		p.buf.Truncate(p.buf.Len() - 3)
		p.pass()
		s = s[end:]
	}
	p.Raw(`"`)
}

// List writes n elements, each by a call of element.
func (p *Reply) List(n int, element func(i int)) {
	p.Raw("[")
	for i := 0; i < n && p.err == nil; i++ {
		if i > 0 {
			p.buf.WriteByte(',')
		}
		element(i)
	}
	p.Raw("]")
}

// Int writes a number.
func (p *Reply) Int(v int32) {
	p.buf.Write(strconv.AppendInt(p.buf.AvailableBuffer(), int64(v), 10))
	p.pass()
}

// Float writes a finite number with the digits that a float32 has.
func (p *Reply) Float(v float32) {
	p.buf.Write(strconv.AppendFloat(p.buf.AvailableBuffer(), float64(v), 'g', -1, 32))
	p.pass()
}

// Floats writes a list of finite numbers.
func (p *Reply) Floats(list []float32) {
	p.List(len(list), func(i int) { p.Float(list[i]) })
}

// Bytes writes bytes as a string; those that belong to no character are U+FFFD.
func (p *Reply) Bytes(text []byte) {
	if !utf8.Valid(text) || bytes.IndexFunc(text, special) >= 0 {
		p.Value(strings.ToValidUTF8(string(text), "\ufffd"))
		return
	}
	p.buf.WriteByte('"')
	p.buf.Write(text)
	p.buf.WriteByte('"')
	p.pass()
}

// Around writes v, and what fill writes in place of empty, an empty field in v's
// encoding. No string in v is mistaken for it, because quotes in strings are escaped.
func (p *Reply) Around(v any, empty string, fill func()) {
	var b bytes.Buffer
	if p.err == nil {
		p.err = Encode(&b, v)
	}
	head, tail, _ := bytes.Cut(bytes.TrimSuffix(b.Bytes(), []byte("\n")), []byte(empty))
	p.Raw(string(head))
	fill()
	p.Raw(string(tail))
}

// Filled writes v with n elements in its field of an empty list, as List does.
func (p *Reply) Filled(v any, field string, n int, element func(i int)) {
	p.Around(v, `"`+field+`":[]`, func() {
		p.Raw(`"` + field + `":`)
		p.List(n, element)
	})
}

// pass writes what has gathered, once that is a piece.
func (p *Reply) pass() {
	if p.buf.Len() >= pieceLen {
		p.write()
	}
}

func (p *Reply) write() {
	if p.err == nil {
		until := time.Now().Add(p.timeout)
		if !p.end.IsZero() && p.end.Before(until) {
			until = p.end
		}
		_ = p.rc.SetWriteDeadline(until) // recorders in tests know no deadlines
		_, p.err = p.w.Write(p.buf.Bytes())
	}
	p.buf.Reset()
}

// Done writes the rest, and returns the error of the write that failed.
func (p *Reply) Done() error {
	p.Raw("\n")
	p.write()
	_ = p.rc.SetWriteDeadline(time.Time{})
	return p.err
}

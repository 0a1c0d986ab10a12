package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// Bounds of what is read of a server's answer, in bytes.
const (
	maxRefusal = 64 << 10  // of an error; what comes after is not read
	maxListing = 8 << 20   // of what is not generated, such as the list of models
	maxAnswer  = 64 << 20  // of what is generated, as a whole
	maxStream  = 256 << 20 // likewise in pieces: a million tokens in chunks of their own
	maxLine    = 16 << 20  // of a stream: the last chunk of a search has all its candidates
)

// ErrTooMuch says that an answer is longer than any should be.
var ErrTooMuch = errors.New("the server sends more than an answer can be")

// doer sends requests with what the context says of them, and bounds the answers.
type doer struct{}

// Do implements openai.HTTPDoer.
func (doer) Do(r *http.Request) (*http.Response, error) {
	if x, ok := r.Context().Value(extraKey{}).(Extra); ok {
		if err := x.addTo(r); err != nil {
			return nil, err
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err == nil {
		Bound(resp)
	}
	return resp, err
}

// Bound has reading an answer fail with ErrTooMuch where it is longer than any should
// be. The body of an error ends there.
func Bound(resp *http.Response) {
	b := &bounded{ReadCloser: resp.Body, left: maxListing}
	switch {
	case resp.StatusCode < 200 || resp.StatusCode >= 400:
		b.left, b.cut = maxRefusal, true
	case resp.Request.Header.Get("Accept") == "text/event-stream": // whatever it is that comes
		b.left, b.lines = maxStream, true
	case resp.Request.Method == http.MethodPost:
		b.left = maxAnswer
	}
	resp.Body = b
}

// bounded is the body of an answer.
type bounded struct {
	io.ReadCloser
	left  int  // bytes that may still come
	cut   bool // they end there; else it is an error that more come
	lines bool // lines are bounded too
	line  int  // bytes of the line so far
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 && b.cut {
		_ = b.Close() // nobody else closes the body of a refused stream
		return 0, io.EOF
	}
	if b.left < len(p) {
		p = p[:max(1, b.left)] // one more byte shows that there are more
	}
	n, err := b.ReadCloser.Read(p)
	if n > b.left {
		return 0, ErrTooMuch
	}
	b.left -= n
	if b.lines && n > 0 {
		if at := bytes.LastIndexByte(p[:n], '\n'); at >= 0 {
			b.line = n - at - 1
		} else if b.line += n; b.line > maxLine {
			return n, ErrTooMuch
		}
	}
	return n, err
}

// Extra holds the fields that the typed client lacks.
type Extra struct {
	Scaling string         // a search's written form, which only a lutra server knows; empty: none
	Fields  map[string]any // further fields of a chat's body
}

// scalingHeader asks for a search; a lutra server answers with appliedHeader.
const (
	scalingHeader = "X-Lutra-Scaling"
	appliedHeader = "X-Lutra-Scaling-Applied"
)

// extraKey finds the Extra of a request in its context.
type extraKey struct{}

func (x Extra) addTo(r *http.Request) error {
	if x.Scaling != "" {
		r.Header.Set(scalingHeader, x.Scaling)
	}
	if len(x.Fields) == 0 || r.Body == nil || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		return nil
	}
	body, err := io.ReadAll(r.Body) // what this program wrote
	if err != nil {
		return err
	}
	more, err := json.Marshal(x.Fields)
	if err != nil {
		return err
	}
	if rest, ok := bytes.CutPrefix(body, []byte("{")); ok {
		body = append(append(bytes.TrimSuffix(more, []byte("}")), ','), rest...)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return nil
}

// with returns a context whose requests ask for x too.
func (x Extra) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, extraKey{}, x)
}

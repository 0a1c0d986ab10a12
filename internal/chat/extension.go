package chat

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// extension adds to requests what only a lutra server knows, for which the typed
// client has no fields.
type extension struct {
	scaling  string // a search's written form; empty: none
	truncate bool   // leave out the oldest messages of a conversation that does not fit
}

// Do implements openai.HTTPDoer.
func (e *extension) Do(r *http.Request) (*http.Response, error) {
	if e.scaling != "" {
		r.Header.Set("X-Lutra-Scaling", e.scaling)
	}
	if e.truncate && r.Body != nil && strings.HasSuffix(r.URL.Path, "/chat/completions") {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if rest, ok := bytes.CutPrefix(body, []byte("{")); ok {
			body = append([]byte(`{"truncation":"auto",`), rest...)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return http.DefaultClient.Do(r)
}

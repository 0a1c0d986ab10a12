// Package replay asks a replica for an answer that somebody has kept, and finds where
// the two part.
//
//	file ──receipt.Read──▶ request ──▶ replica ──▶ answer ──receipt.Compare──▶ verdict
package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/server/receipt"
)

// MaxFile bounds the files that are read.
const MaxFile = 64 << 20

// Replica is a server that computes an answer again. Its Client follows no redirects:
// nobody is asked but the one that was named.
type Replica struct {
	Client *http.Client
	Base   string // of its URLs, without a slash at its end
	Key    string // bearer; empty: none
	Model  string // the name to ask for; empty: the request's
	// Scales has the scale of each adapter of the model; nil: the request's.
	Scales []receipt.Scale
}

// NewReplica returns the server at an address, as apiclient.Address reads it.
func NewReplica(address, key, model string) (*Replica, error) {
	base, err := apiclient.Address(address)
	if err != nil {
		return nil, err
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Replica{Client: client, Base: trimVersion(base), Key: key, Model: model}, nil
}

// trimVersion leaves out the /v1 that addresses of APIs often end with.
func trimVersion(base string) string {
	if b, ok := bytes.CutSuffix([]byte(base), []byte("/v1")); ok {
		return string(b)
	}
	return base
}

// Run has the replica compute the answer of was again, whose request has that body.
func Run(ctx context.Context, was *receipt.Receipt, body []byte, r *Replica) (*receipt.Verdict, error) {
	request, err := was.Repeat(body, r.Model, r.Scales)
	if err != nil {
		return nil, err
	}
	answer, err := r.post(ctx, was.Endpoint, request)
	if err != nil {
		return nil, err
	}
	now, err := receipt.Read(answer)
	if err != nil {
		return nil, fmt.Errorf("the answer of %s: %w", r.Base, err)
	}
	return receipt.Compare(was, &now.Receipt), nil
}

// post sends a body and returns the answer.
func (r *Replica) post(ctx context.Context, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if r.Key != "" {
		req.Header.Set("Authorization", "Bearer "+r.Key)
	}
	resp, err := r.Client.Do(req)
	if err != nil {
		return nil, apiclient.Explain(r.Base, err)
	}
	apiclient.Bound(resp)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, apiclient.Explain(r.Base, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s%s: %s%s", r.Base, path, resp.Status, said(answer))
	}
	return answer, nil
}

// said returns what a server says of an error.
func said(answer []byte) string {
	var e struct{ Error struct{ Message string } }
	if json.Unmarshal(answer, &e) != nil || e.Error.Message == "" {
		return ""
	}
	return ": " + output.Shortened(output.WithoutControls(e.Error.Message), 1000)
}

// spell returns the texts of token ids in the replica's model, nil if it does not tell.
func (r *Replica) spell(ctx context.Context, model string, ids ...int32) *string {
	body, err := json.Marshal(map[string]any{"model": model, "tokens": ids})
	if err != nil {
		return nil
	}
	answer, err := r.post(ctx, "/detokenize", body)
	if err != nil {
		return nil
	}
	var text struct{ Prompt, Content *string }
	if json.Unmarshal(answer, &text) != nil {
		return nil
	}
	if text.Prompt != nil {
		return text.Prompt
	}
	return text.Content
}

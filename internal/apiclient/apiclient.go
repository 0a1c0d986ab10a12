// Package apiclient is what all commands that ask a server of the OpenAI API share:
// reading its address, asking it, bounds of what it may send, and describing its errors.
package apiclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
)

// DefaultModel is the name that means a server's first model.
const DefaultModel = "default"

// Client asks one server.
type Client struct {
	Base string // of the API, as in http://host:8080/v1
	API  *openai.Client
}

// New makes a client of the server at an address, as Address reads it. The key may be
// empty.
func New(address, key string) (*Client, error) {
	base, err := Address(address)
	if err != nil {
		return nil, err
	}
	cfg := openai.DefaultConfig(key)
	cfg.BaseURL, cfg.HTTPClient = withVersion(base), doer{}
	return &Client{Base: cfg.BaseURL, API: openai.NewClientWithConfig(cfg)}, nil
}

// Address completes an address that somebody wrote, without a slash at its end. A host and a port, or a
// host's full name, get http:// before them.
func Address(s string) (string, error) {
	full := s
	if !strings.Contains(s, "://") {
		full = "http://" + s
	}
	u, err := url.Parse(full)
	bare := full != s && err == nil && u.Port() == "" && u.Hostname() != "localhost" && net.ParseIP(u.Hostname()) == nil && !strings.Contains(u.Hostname(), ".")
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || bare {
		return "", usage.Errorf("%q is not an address such as http://127.0.0.1:8080", usage.Brief(s))
	}
	return strings.TrimSuffix(full, "/"), nil
}

// withVersion completes an API's base URL: an address without a path, as in
// http://host:8080, gets the usual /v1.
func withVersion(base string) string {
	if u, err := url.Parse(base); err == nil && u.Path == "" && u.RawQuery == "" {
		return base + "/v1"
	}
	return base
}

// Listing holds a server's list of models.
type Listing struct {
	Names []string
	Roots map[string]string // the models behind names, as far as the server says
	Lutra bool              // it is a lutra server, which can search
}

// Named returns the model that a name means: DefaultModel is the first, unless the server has
// one of that name or lists none.
func (l Listing) Named(name string) string {
	if name == DefaultModel && len(l.Names) > 0 && !slices.Contains(l.Names, name) {
		return l.Names[0]
	}
	return name
}

// List asks for the server's models.
func (c *Client) List(ctx context.Context) (l Listing, err error) {
	list, err := c.API.ListModels(ctx)
	if err != nil {
		return l, Explain(c.Base, err)
	}
	l.Roots = map[string]string{}
	for _, m := range list.Models {
		l.Names, l.Roots[m.ID] = append(l.Names, m.ID), m.Root
		l.Lutra = l.Lutra || m.OwnedBy == "lutra"
	}
	return l, nil
}

// explained is an error in words, of which errors.Is and errors.As find the cause.
type explained struct {
	text  string
	cause error
}

func (e explained) Error() string { return e.text }
func (e explained) Unwrap() error { return e.cause }

// mostSaid bounds how much of what a server says of an error is repeated, in runes.
const mostSaid = 1000

// Explain describes a failed request to the server at base.
func Explain(base string, err error) error {
	words := func(format string, args ...any) error { return explained{base + format + fmt.Sprint(args...), err} }
	status, refused := Status(err)
	var answer *openai.APIError
	var net *url.Error
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case status == http.StatusUnauthorized:
		return words(" requires an API key, or a different one: LUTRA_API_KEY or --api-key KEY")
	case errors.As(err, &answer):
		return words(": ", output.Shortened(output.WithoutControls(answer.Message), mostSaid))
	case refused:
		return words(": ", fmt.Sprintf("%d %s", status, http.StatusText(status)))
	case errors.Is(err, ErrTooMuch):
		return words(": ", ErrTooMuch)
	case errors.As(err, &net):
		return fmt.Errorf("no server answers at %s: %w", base, net.Err)
	}
	return words(": ", output.Shortened(output.WithoutControls(err.Error()), mostSaid))
}

// ExplainAnswer explains the error of a request for a model's answer as Explain does. If the server
// has no such model, it adds the models that were probably meant.
func (c *Client) ExplainAnswer(ctx context.Context, model string, err error) error {
	explanation := Explain(c.Base, err)
	if status, _ := Status(err); status != http.StatusNotFound {
		return explanation
	}
	list, failed := c.List(ctx)
	if failed != nil || len(list.Names) == 0 || slices.Contains(list.Names, model) {
		return explanation
	}
	return explained{strings.TrimSuffix(explanation.Error(), ".") + list.Hint(model), err}
}

// Hint ends an error about a model that the server does not have: with the name that was
// probably meant, or with the first names that there are.
func (l Listing) Hint(name string) string {
	if hint := usage.DidYouMean(name, l.Names); hint != "" || len(l.Names) == 0 {
		return hint
	}
	const most = 5
	hint := "; there are " + strings.Join(l.Names[:min(most, len(l.Names))], ", ")
	if len(l.Names) > most {
		hint += ", ..."
	}
	return output.Shortened(output.WithoutControls(hint), mostSaid)
}

// Status returns the HTTP status that a server answered with, if it did.
func Status(err error) (status int, ok bool) {
	var answer *openai.APIError
	var request *openai.RequestError
	switch {
	case errors.As(err, &answer):
		return answer.HTTPStatusCode, true
	case errors.As(err, &request) && request.HTTPStatusCode != 0:
		return request.HTTPStatusCode, true
	}
	return 0, false
}

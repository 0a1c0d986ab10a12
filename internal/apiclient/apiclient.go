// Package apiclient is what all commands that ask a server of the OpenAI API share:
// reading its address and describing its errors.
package apiclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
)

// CheckURL checks the value of --url.
func CheckURL(s string) error {
	if u, err := url.Parse(s); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return usage.Errorf("--url: %q is not an address such as http://127.0.0.1:8080", usage.Brief(s))
	}
	return nil
}

// Base completes an API's base URL: an address without a path, http://host:8080,
// gets the usual /v1.
func Base(s string) string {
	s = strings.TrimSuffix(s, "/")
	if u, err := url.Parse(s); err == nil && u.Host != "" && u.Path == "" && u.RawQuery == "" {
		return s + "/v1"
	}
	return s
}

// Explain describes a failed request to the server at base.
func Explain(base string, err error) error {
	status, refused := Status(err)
	var answer *openai.APIError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case status == http.StatusUnauthorized:
		return fmt.Errorf("%s requires an API key, or a different one: --api-key KEY", base)
	case errors.As(err, &answer):
		return fmt.Errorf("%s: %s", base, output.WithoutControls(answer.Message))
	case refused:
		return fmt.Errorf("%s: %d %s", base, status, http.StatusText(status))
	}
	var net *url.Error
	if errors.As(err, &net) {
		return fmt.Errorf("no server answers at %s: %w", base, net.Err)
	}
	return fmt.Errorf("%s: %w", base, err)
}

// Status is the HTTP status that a server answered with, if it did.
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

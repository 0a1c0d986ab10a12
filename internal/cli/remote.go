package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/sashabaranov/go-openai"
)

// defaultName asks a server for its first model.
const defaultName = "default"

// remote has a server of the OpenAI API answer.
type remote struct {
	base   string // of the API
	model  string
	lutra  bool // it knows the fields of this one's
	client *openai.Client
	via    *extension
}

// newRemote finds out what the server is and has.
func newRemote(ctx context.Context, o *askOptions) (*remote, error) {
	base := apiBase(o.url)
	if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usagef("--url: %q is no address such as http://127.0.0.1:8080", brief(o.url))
	}
	cfg := openai.DefaultConfig(o.key)
	cfg.BaseURL = base
	r := &remote{base: base, model: o.name, via: &extension{}}
	cfg.HTTPClient = r.via
	r.client = openai.NewClientWithConfig(cfg)
	list, err := r.client.ListModels(ctx)
	switch status, refused := statusOf(err); {
	case err != nil && (!refused || status == http.StatusUnauthorized || status == http.StatusForbidden):
		return nil, r.explain(err)
	case err == nil && len(list.Models) > 0:
		r.lutra = list.Models[0].OwnedBy == "lutra"
		if r.model == defaultName && !slices.ContainsFunc(list.Models, func(m openai.Model) bool { return m.ID == defaultName }) {
			r.model = list.Models[0].ID
		}
	}
	return r, nil // servers without a list of models answer too
}

// canSearch leaves limits to the server; others than this one's would ignore the plan.
func (r *remote) canSearch(plan string) error {
	if !r.lutra {
		return fmt.Errorf("%s is no lutra server, and would answer without a search", r.base)
	}
	return checkPlan(plan, noLimits)
}

func (r *remote) models(ctx context.Context) ([]string, error) {
	list, err := r.client.ListModels(ctx)
	if err != nil {
		return nil, r.explain(err)
	}
	var names []string
	for _, m := range list.Models {
		names = append(names, m.ID)
	}
	return names, nil
}

func (r *remote) use(ctx context.Context, name string) error {
	names, err := r.models(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(names, name) {
		return fmt.Errorf("%s has no model %q%s", r.base, brief(name), didYouMean(name, names))
	}
	r.model = name
	return nil
}

func (r *remote) about() (name, words string) { return r.model, "at " + r.base }
func (r *remote) close() error                { return nil }

func (r *remote) answer(ctx context.Context, o *askOptions, conversation []message, emit func(string) error) (done answered, err error) {
	seed := int(o.seed)
	req := openai.ChatCompletionRequest{Model: r.model, Temperature: o.heat(), TopP: o.topP, Seed: &seed}
	req.MaxTokens = o.maxTokens //lint:ignore SA1019 every server knows it, not all know its successor
	for _, m := range conversation {
		req.Messages = append(req.Messages, openai.ChatCompletionMessage{Role: m.role, Content: m.content})
	}
	if req.Temperature == 0 {
		req.TopP = 1e-6 // the client's types drop a zero temperature; one token of nucleus is greedy too
		req.Temperature = 1e-6
	}
	r.via.scaling = o.scaling
	stream, err := r.client.CreateChatCompletionStream(ctx, req)
	if err != nil {
		return done, r.explain(err)
	}
	defer stream.Close()
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return done, nil
		}
		if err != nil {
			return done, r.explain(err)
		}
		for _, c := range chunk.Choices {
			if c.FinishReason == openai.FinishReasonLength {
				done.cut = true
			}
			if c.Delta.Content == "" {
				continue
			}
			if err := emit(c.Delta.Content); err != nil {
				return done, err
			}
		}
	}
}

// explain words a failed request for people.
func (r *remote) explain(err error) error {
	status, refused := statusOf(err)
	var answer *openai.APIError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case status == http.StatusUnauthorized:
		return fmt.Errorf("%s wants an API key, or another one: --api-key KEY", r.base)
	case errors.As(err, &answer):
		return fmt.Errorf("%s: %s", r.base, withoutControls(answer.Message))
	case refused:
		return fmt.Errorf("%s: %d %s", r.base, status, http.StatusText(status))
	}
	var net *url.Error
	if errors.As(err, &net) {
		return fmt.Errorf("no server answers at %s: %w", r.base, net.Err)
	}
	return fmt.Errorf("%s: %w", r.base, err)
}

// statusOf is the HTTP status that a server answered with, if it did.
func statusOf(err error) (status int, ok bool) {
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

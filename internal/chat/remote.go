package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/internal/usage"
)

// DefaultModel is the name that means a server's first model.
const DefaultModel = "default"

// remote answers by asking a server of the OpenAI API.
type remote struct {
	base   string // of the API
	model  string
	lutra  bool // a lutra server: it knows search plans
	client *openai.Client
	via    *extension
}

// NewRemote asks the server for its models, and learns whether it can search.
func NewRemote(ctx context.Context, o *Options) (Answerer, error) {
	if err := apiclient.CheckURL(o.URL); err != nil {
		return nil, err
	}
	base := apiclient.Base(o.URL)
	cfg := openai.DefaultConfig(o.Key)
	cfg.BaseURL = base
	r := &remote{base: base, model: o.Model, via: &extension{}}
	cfg.HTTPClient = r.via
	r.client = openai.NewClientWithConfig(cfg)
	list, err := r.client.ListModels(ctx)
	switch status, refused := apiclient.Status(err); {
	case err != nil && (!refused || status == http.StatusUnauthorized || status == http.StatusForbidden):
		return nil, apiclient.Explain(r.base, err)
	case err == nil && len(list.Models) > 0:
		r.lutra = list.Models[0].OwnedBy == "lutra"
		if r.model == DefaultModel && !slices.ContainsFunc(list.Models, func(m openai.Model) bool { return m.ID == DefaultModel }) {
			r.model = list.Models[0].ID
		}
	}
	return r, nil // some servers do not list their models
}

// CanSearch leaves limits to the server. Servers other than lutra's ignore plans.
func (r *remote) CanSearch(plan string) error {
	if !r.lutra {
		return fmt.Errorf("%s is not a lutra server and would answer without a search", r.base)
	}
	return checkPlan(plan, noLimits)
}

func (r *remote) Models(ctx context.Context) ([]string, error) {
	list, err := r.client.ListModels(ctx)
	if err != nil {
		return nil, apiclient.Explain(r.base, err)
	}
	var names []string
	for _, m := range list.Models {
		names = append(names, m.ID)
	}
	return names, nil
}

func (r *remote) Use(ctx context.Context, name string) error {
	names, err := r.Models(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(names, name) {
		return fmt.Errorf("%s has no model %q%s", r.base, usage.Brief(name), usage.DidYouMean(name, names))
	}
	r.model = name
	return nil
}

func (r *remote) About() (name, words string) { return r.model, "at " + r.base }
func (r *remote) Close() error                { return nil }

func (r *remote) Answer(ctx context.Context, o *Options, conversation []Message, emit func(string) error) (done Answered, err error) {
	seed := int(o.Seed)
	req := openai.ChatCompletionRequest{Model: r.model, Temperature: o.samplingTemperature(), TopP: o.TopP, Seed: &seed}
	req.MaxTokens = o.MaxTokens //lint:ignore SA1019 every server knows it, not all know its successor
	for _, m := range conversation {
		req.Messages = append(req.Messages, openai.ChatCompletionMessage{Role: m.Role, Content: m.Content})
	}
	if o.Thinking != nil {
		req.ChatTemplateKwargs = map[string]any{"enable_thinking": *o.Thinking}
	}
	if req.Temperature == 0 {
		req.TopP = 1e-6 // the client's types drop a zero temperature; one token of nucleus is greedy too
		req.Temperature = 1e-6
	}
	r.via.scaling, r.via.truncate = o.Scaling, r.lutra
	stream, err := r.client.CreateChatCompletionStream(ctx, req)
	if err != nil {
		return done, apiclient.Explain(r.base, err)
	}
	defer stream.Close()
	finished := false
	for {
		chunk, err := receive(stream)
		if errors.Is(err, io.EOF) && !finished {
			err = errors.New("the connection broke off during the answer")
		}
		if errors.Is(err, io.EOF) {
			return done, nil
		}
		if err != nil {
			return done, apiclient.Explain(r.base, err)
		}
		done.Dropped += chunk.Truncation.Dropped
		for _, c := range chunk.Choices {
			finished = finished || c.FinishReason != ""
			done.Cut = done.Cut || c.FinishReason == openai.FinishReasonLength
			if c.Delta.Content == "" {
				continue
			}
			if err := emit(c.Delta.Content); err != nil {
				return done, err
			}
		}
	}
}

// piece is a chunk of a stream with the fields that only a lutra server sends.
type piece struct {
	openai.ChatCompletionStreamResponse
	Truncation struct {
		Dropped int `json:"dropped_messages"`
	} `json:"truncation"`
}

func receive(stream *openai.ChatCompletionStream) (p piece, err error) {
	raw, err := stream.RecvRaw()
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	return p, err
}

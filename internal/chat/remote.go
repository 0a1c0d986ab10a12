package chat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/internal/usage"
)

// remote answers by asking a server of the OpenAI API.
type remote struct {
	client *apiclient.Client
	model  string
	lutra  bool // a lutra server: it knows search plans
}

// NewRemote asks the server for its models, and learns whether it can search.
func NewRemote(ctx context.Context, o *Options) (Answerer, error) {
	client, err := apiclient.New(o.URL, o.Key)
	if err != nil {
		return nil, err
	}
	list, err := client.List(ctx)
	switch status, refused := apiclient.Status(err); {
	case err != nil && (!refused || status == http.StatusUnauthorized || status == http.StatusForbidden):
		return nil, err
	case err != nil: // some servers do not list their models
		return &remote{client: client, model: o.Model}, nil
	}
	return &remote{client: client, model: list.Named(o.Model), lutra: list.Lutra}, nil
}

// CanSearch leaves limits to the server. Servers other than lutra's ignore plans.
func (r *remote) CanSearch(plan string) error {
	if !r.lutra {
		return fmt.Errorf("%s is not a lutra server and would answer without a search", r.client.Base)
	}
	return checkPlan(plan, noLimits)
}

func (r *remote) Models(ctx context.Context) ([]string, error) {
	list, err := r.client.List(ctx)
	return list.Names, err
}

func (r *remote) Use(ctx context.Context, name string) error {
	names, err := r.Models(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(names, name) {
		return fmt.Errorf("%s has no model %q%s", r.client.Base, usage.Brief(name), usage.DidYouMean(name, names))
	}
	r.model = name
	return nil
}

func (r *remote) About() (name, words string) { return r.model, "at " + r.client.Base }
func (r *remote) Close() error                { return nil }

func (r *remote) Answer(ctx context.Context, o *Options, conversation []Message, emit func(string) error) (done Answered, err error) {
	done.Model = r.model
	extra := apiclient.Extra{Scaling: o.Scaling, Truncate: r.lutra}
	if o.Candidates && o.Scaling != "" && !strings.Contains(o.Scaling, ";include=") {
		extra.Scaling += ";include=candidates"
	}
	length := 0
	for chunk, err := range r.client.Stream(ctx, r.request(o, conversation), extra) {
		if err != nil {
			return done, err
		}
		done.Dropped += chunk.Truncation.Dropped
		if u := chunk.Usage; u != nil {
			done.Usage = Usage{Prompt: u.Prompt, Completion: u.Completion}
			if u.Search != nil {
				done.Usage.Verifier, done.Usage.Critiques = u.Search.Verifier, u.Search.Critiques
			}
		}
		for _, c := range chunk.Choices {
			if c.Index != 0 {
				continue
			}
			if c.FinishReason != "" {
				done.Finish, done.Search = c.FinishReason, searchOf(chunk.Search, c.Chosen)
			}
			if c.Delta.Content == "" {
				continue
			}
			if length += len(c.Delta.Content); length > maxAnswer {
				return done, errLong
			}
			if err := emit(c.Delta.Content); err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

// errLong means that a server's answer is longer than a person reads.
var errLong = errors.New("the server's answer does not end")

// maxAnswer bounds what is kept of an answer, in bytes.
const maxAnswer = 64 << 20

func (r *remote) request(o *Options, conversation []Message) openai.ChatCompletionRequest {
	seed := int(o.Seed)
	req := openai.ChatCompletionRequest{Model: r.model, Temperature: o.samplingTemperature(), TopP: o.TopP, Seed: &seed}
	req.MaxTokens = o.MaxTokens //lint:ignore SA1019 every server knows it, not all know its successor
	req.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
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
	return req
}

// searchOf describes what a server says of a search, and of the candidate that it chose.
func searchOf(s *apiclient.Search, chosen *apiclient.Candidate) *Search {
	if s == nil {
		return nil
	}
	out := &Search{Method: s.Method, N: s.N, Width: s.Width, StopReason: s.StopReason, Agreement: s.Agreement}
	if chosen != nil {
		out.Score = chosen.Score
	}
	for _, c := range s.Candidates {
		out.Candidates = append(out.Candidates, Candidate{
			Text: c.Text, Answer: c.Answer, Score: c.Score, Votes: c.Votes, Tokens: c.Tokens, Finish: c.FinishReason,
			Chosen: chosen != nil && c.Index == chosen.Index,
		})
	}
	return out
}

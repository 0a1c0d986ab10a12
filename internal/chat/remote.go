package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models/embedded"
)

// remote answers by asking a server of the OpenAI API.
type remote struct {
	client  *apiclient.Client
	model   string
	lutra   bool // a lutra server: it knows search plans
	builtIn bool // the model is one that the server's program has in it
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
	r := &remote{client: client, lutra: list.Lutra}
	r.use(list, list.Named(o.Model))
	return r, nil
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
	list, err := r.client.List(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(list.Names, name) {
		return fmt.Errorf("%s has no model %q%s", r.client.Base, usage.Brief(name), list.Hint(name))
	}
	r.use(list, name)
	return nil
}

// use takes a model of the list.
func (r *remote) use(list apiclient.Listing, name string) {
	r.model = name
	r.builtIn = list.Lutra && slices.ContainsFunc(embedded.Models(), func(e embedded.Entry) bool { return e.Name == list.Roots[name] })
}

func (r *remote) About() (name, words string) { return r.model, "at " + r.client.Base }
func (r *remote) Close() error                { return nil }

func (r *remote) Answer(ctx context.Context, o *Options, conversation []Message, emit func(Piece) error) (done Answered, err error) {
	done.Model = r.model
	extra := apiclient.Extra{Scaling: o.Scaling, Fields: o.fields(r.sampled(o))}
	if r.lutra {
		extra.Fields["truncation"] = "auto"
		extra.Fields["repetition_detection"] = map[string]int{"min_pattern_size": loops.MinPattern, "max_pattern_size": loops.MaxPattern, "min_count": loops.MinCount}
	}
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
			for _, piece := range c.Delta.ToolCalls {
				if length += len(piece.Function.Arguments) + 1; length > maxAnswer {
					return done, errLong
				}
				if done.Calls, err = joined(done.Calls, piece); err != nil {
					return done, fmt.Errorf("%s: %w", r.client.Base, err)
				}
			}
			piece := Piece{Text: c.Delta.Content, Thought: cmp.Or(c.Delta.ReasoningContent, c.Delta.Reasoning)}
			if piece == (Piece{}) {
				continue
			}
			if length += len(piece.Text) + len(piece.Thought); length > maxAnswer {
				return done, errLong
			}
			if err := emit(piece); err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

// joined adds a piece of a call to the calls so far.
func joined(calls []Call, piece apiclient.ToolCall) ([]Call, error) {
	switch {
	case piece.Index == len(calls) && len(calls) < mostCalls:
		return append(calls, newCall(piece.ID, piece.Function.Name, piece.Function.Arguments)), nil
	case piece.Index < 0 || piece.Index >= len(calls):
		return calls, fmt.Errorf("a call of a tool has the index %d after %d calls", piece.Index, len(calls))
	}
	calls[piece.Index].Function.Arguments += piece.Function.Arguments
	return calls, nil
}

// errLong means that a server's answer is longer than a person reads.
var errLong = errors.New("the server's answer does not end")

// maxAnswer bounds what is kept of an answer, in bytes.
const maxAnswer = 64 << 20

// sampled returns what the server is told of sampling; what is left out is the model's default.
func (r *remote) sampled(o *Options) sampling.Config {
	if r.builtIn {
		return o.Sampling.Or(o.builtIn())
	}
	return o.Sampling
}

func (r *remote) Greedy(o *Options) bool {
	t := r.sampled(o).Temperature
	return t != nil && *t == 0
}

// fields returns the fields of a request that the client's types lack, or drop where they are 0.
func (o *Options) fields(c sampling.Config) map[string]any {
	f := map[string]any{}
	for name, value := range c.Fields() {
		f[name] = value
	}
	if o.Schema != nil {
		f["response_format"] = map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "answer", "strict": true, "schema": o.Schema}}
	}
	if len(o.Tools) > 0 {
		var list []json.RawMessage
		for _, t := range o.Tools {
			list = append(list, t.Definition)
		}
		f["tools"] = list
	}
	return f
}

func (r *remote) request(o *Options, conversation []Message) openai.ChatCompletionRequest {
	seed := int(o.Seed)
	req := openai.ChatCompletionRequest{
		Model: r.model, Seed: &seed, Stop: o.Stop,
	}
	if r.lutra || o.MaxTokens != nil { // others have bounds of their own, and models that refuse this one
		req.MaxTokens = o.most() //lint:ignore SA1019 every server knows it, not all know its successor
	}
	req.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	for _, m := range conversation {
		one := openai.ChatCompletionMessage{Role: m.Role, Content: m.Content, ToolCallID: m.CallID}
		for _, c := range m.Calls {
			one.ToolCalls = append(one.ToolCalls, openai.ToolCall{ID: c.ID, Type: openai.ToolTypeFunction, Function: openai.FunctionCall{Name: c.Function.Name, Arguments: c.Function.Arguments}})
		}
		req.Messages = append(req.Messages, one)
	}
	if o.Thinking != nil {
		req.ChatTemplateKwargs = map[string]any{"enable_thinking": *o.Thinking}
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

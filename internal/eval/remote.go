package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// appliedHeader names the search that a lutra server carried out.
const appliedHeader = "X-Lutra-Scaling-Applied"

// Remote solves with the OpenAI-compatible server at the base url, as in
// http://host/v1. A lutra server gets the plan in the request's metadata and searches
// itself. Any other is asked for n choices, on which this program votes: that is
// self-consistency; other methods are refused.
func Remote(ctx context.Context, url, apiKey string, a Asking) (Solve, error) {
	cfg := openai.DefaultConfig(apiKey)
	cfg.BaseURL = url
	r := remote{client: openai.NewClientWithConfig(cfg), Asking: a}
	list, err := r.client.ListModels(ctx)
	if err != nil {
		return nil, fmt.Errorf("eval: list the models of %s: %w", url, err)
	}
	r.searches = slices.ContainsFunc(list.Models, func(m openai.Model) bool { return m.OwnedBy == "lutra" })
	return r.solve, nil
}

type remote struct {
	Asking
	client   *openai.Client
	searches bool // the server knows plans
}

func (r remote) solve(ctx context.Context, p Point, q Question) (Solution, error) {
	plan, search, err := p.Plan()
	if err != nil {
		return Solution{}, err
	}
	req := r.chat(p.Model, q)
	switch {
	case search && r.searches:
		req.Metadata = map[string]string{"test_time_scaling": p.String()}
	case search && plan.Method != scaling.SelfConsistency:
		return Solution{}, fmt.Errorf("eval: this server cannot search: %q requires a lutra server", p)
	default:
		req.N = p.N
	}
	resp, err := r.client.CreateChatCompletion(ctx, req)
	if err != nil {
		return Solution{}, err
	}
	if len(resp.Choices) == 0 {
		return Solution{}, errors.New("eval: the server answered without choices")
	}
	if req.Metadata != nil && resp.Header().Get(appliedHeader) == "" {
		return Solution{}, fmt.Errorf("eval: the server did not apply %q: its answer has no %s header", p, appliedHeader)
	}
	out := Solution{Text: tts.AnswerText(resp.Choices[0].Message.Content, false), Tokens: resp.Usage.CompletionTokens}
	if req.N > 1 {
		for _, c := range resp.Choices {
			out.Candidates = append(out.Candidates, tts.AnswerText(c.Message.Content, false))
		}
		out.Text = vote(out.Candidates)
	}
	return out, nil
}

func (r remote) chat(model string, q Question) openai.ChatCompletionRequest {
	seed := int(q.Seed)
	// The client's types drop a zero temperature; one this small is greedy too.
	req := openai.ChatCompletionRequest{Model: model, Temperature: max(r.Temperature, 1e-6), Seed: &seed}
	req.MaxTokens = r.MaxTokens //lint:ignore SA1019 every server knows it, not all know its successor
	if r.Thinking != nil {
		req.ChatTemplateKwargs = map[string]any{"enable_thinking": *r.Thinking}
	}
	if r.System != "" {
		req.Messages = append(req.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: r.System})
	}
	req.Messages = append(req.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: q.Text})
	return req
}

// vote is the first candidate of the most frequent answer; of equally frequent
// ones, the one that came first. Candidates without an answer have no vote.
func vote(candidates []string) string {
	votes := map[string]int{}
	keys := make([]string, len(candidates))
	for i, c := range candidates {
		if a, ok := defaultReader.Read(c); ok {
			keys[i] = a.Key
			votes[a.Key]++
		}
	}
	best := 0
	for i, k := range keys {
		if votes[k] > votes[keys[best]] {
			best = i
		}
	}
	return candidates[best]
}

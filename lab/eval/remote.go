package eval

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/text"
)

// Remote solves with an OpenAI-compatible server. If it is lutra's, it gets the plan and
// searches itself. Any other is asked for n choices, on which this program votes: that
// is self-consistency; other methods are refused.
func Remote(client *apiclient.Client, lutra bool, a Asking) Solve {
	return remote{client: client, lutra: lutra, Asking: a}.solve
}

type remote struct {
	Asking
	client *apiclient.Client
	lutra  bool // the server knows plans
}

func (r remote) solve(ctx context.Context, p Point, q Question) (Solution, error) {
	plan, search, err := p.Plan()
	if err != nil {
		return Solution{}, err
	}
	req, err := r.chat(p, q)
	switch {
	case err != nil:
		return Solution{}, err
	case search && r.lutra:
		return r.searched(ctx, req, p)
	case search && plan.Method != scaling.SelfConsistency:
		return Solution{}, fmt.Errorf("this server cannot search: %q requires a lutra server", p)
	}
	req.N = p.N
	resp, err := r.client.API.CreateChatCompletion(ctx, req)
	if err != nil {
		return Solution{}, r.client.ExplainAnswer(ctx, req.Model, err)
	}
	if len(resp.Choices) == 0 {
		return Solution{}, errors.New("the server answered without choices")
	}
	out := Solution{Text: text.Think.Answer(resp.Choices[0].Message.Content, false), Tokens: resp.Usage.CompletionTokens}
	if req.N > 1 {
		for _, c := range resp.Choices {
			out.Candidates = append(out.Candidates, Candidate{
				Text: text.Think.Answer(c.Message.Content, false), Cut: c.FinishReason == openai.FinishReasonLength,
			})
		}
		out.Text = vote(out.Candidates)
	}
	return out, nil
}

// searched has a lutra server search, and say what it chose among.
func (r remote) searched(ctx context.Context, req openai.ChatCompletionRequest, p Point) (out Solution, err error) {
	plan := p.String()
	if !strings.Contains(plan, ";include=") {
		plan += ";include=candidates"
	}
	req.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	said, chosen := "", -1
	for chunk, err := range r.client.Stream(ctx, req, apiclient.Extra{Scaling: plan}) {
		if err != nil {
			return out, err
		}
		if u := chunk.Usage; u != nil {
			out.Tokens = u.Completion
			if u.Search != nil {
				out.Verifier = u.Search.Verifier + u.Search.Critiques
			}
		}
		for _, c := range chunk.Choices {
			if c.Index != 0 {
				continue
			}
			said += c.Delta.Content
			if c.Chosen != nil {
				chosen = c.Chosen.Index
			}
			if c.FinishReason == "" || chunk.Search == nil {
				continue
			}
			for _, one := range chunk.Search.Candidates {
				out.Candidates = append(out.Candidates, Candidate{
					Text: text.Think.Answer(one.Text, false), Score: one.Score, Votes: one.Votes,
					Chosen: one.Index == chosen, Cut: one.Filtered || one.FinishReason != string(openai.FinishReasonStop),
				})
			}
		}
	}
	out.Text = text.Think.Answer(said, false)
	return out, nil
}

func (r remote) chat(p Point, q Question) (openai.ChatCompletionRequest, error) {
	seed := int(q.Seed)
	t, err := p.Temperature(r.Temperature)
	// The client's types drop a zero temperature; one this small is greedy too.
	req := openai.ChatCompletionRequest{Model: p.Model, Temperature: max(t, 1e-6), Seed: &seed}
	req.MaxTokens = r.MaxTokens //lint:ignore SA1019 every server knows it, not all know its successor
	if r.Thinking != nil {
		req.ChatTemplateKwargs = map[string]any{"enable_thinking": *r.Thinking}
	}
	if r.System != "" {
		req.Messages = append(req.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: r.System})
	}
	req.Messages = append(req.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: q.Text})
	return req, err
}

// vote chooses the first candidate of the most frequent answer; of equally frequent
// ones, the one that came first. Candidates without an answer have no vote.
func vote(candidates []Candidate) (text string) {
	var all []*Candidate
	for i := range candidates {
		all = append(all, &candidates[i])
	}
	voters := Complete(all, func(c *Candidate) bool { return c.Cut })
	votes, keys := map[string]int{}, map[*Candidate]string{}
	for _, c := range voters {
		if a, ok := defaultReader.Read(c.Text); ok {
			keys[c] = a.Key
			votes[a.Key]++
		}
	}
	best := voters[0]
	for _, c := range voters {
		if c.Votes = votes[keys[c]]; c.Votes > best.Votes {
			best = c
		}
	}
	best.Chosen = true
	return best.Text
}

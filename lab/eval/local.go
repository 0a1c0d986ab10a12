package eval

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/probe"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/search"
)

// Asking has the settings by which models are asked, at all points alike.
type Asking struct {
	System      string // system message; empty: none
	Temperature float32
	MaxTokens   int   // of a candidate
	Thinking    *bool // on or off, for models whose template can switch it; nil: as the template has it
}

// Searcher is a model in this process with the verifiers that can score its text.
type Searcher struct {
	Model     *tts.Model
	Verifiers tts.Verifiers
	States    bool // candidates keep what the engine reads of their states
}

// Local solves with models in this process, found by name.
func Local(models map[string]Searcher, a Asking) Solve {
	return func(ctx context.Context, p Point, q Question) (Solution, error) {
		m, ok := models[p.Model]
		if !ok {
			return Solution{}, fmt.Errorf("eval: there is no model %q", p.Model)
		}
		plan, searches, err := p.Plan()
		if err != nil {
			return Solution{}, err
		}
		if a.Thinking != nil && !m.Model.ThinkingSwitches() {
			return Solution{}, fmt.Errorf("eval: the chat template of %s cannot switch thinking on or off", p.Model)
		}
		var s tts.Strategy = tts.Single{Model: m.Model}
		if searches {
			limits := scaling.DefaultLimits()
			limits.N = max(limits.N, p.N)
			limits.Tokens = max(limits.Tokens, p.N*a.MaxTokens) // other candidates must not cut one short
			limits.Time = 24 * time.Hour                        // nor a slow machine
			s = search.Search{Model: m.Model, Plan: plan, Limits: limits, Verifiers: m.Verifiers}
		}
		req := a.request(q)
		if req.Sampling.Temperature, err = p.Temperature(a.Temperature); err != nil {
			return Solution{}, err
		}
		return ask(ctx, s, &m, req)
	}
}

func (a Asking) request(q Question) *tts.Request {
	req := &tts.Request{}
	if a.System != "" {
		req.Prompt.Messages = append(req.Prompt.Messages, template.Message{Role: "system", Content: a.System})
	}
	req.Prompt.Messages = append(req.Prompt.Messages, template.Message{Role: "user", Content: q.Text})
	if a.Thinking != nil {
		req.Prompt.SwitchThinking(*a.Thinking)
	}
	req.Sampling.Temperature, req.Sampling.Seed, req.Sampling.MaxTokens = a.Temperature, q.Seed, a.MaxTokens
	return req
}

func ask(ctx context.Context, s tts.Strategy, m *Searcher, req *tts.Request) (Solution, error) {
	marks := m.Model.ThoughtMarks()
	var out Solution
	var spent tts.Usage
	inThought := false
	for e, err := range s.Run(ctx, req) {
		if err != nil {
			return out, err
		}
		spent.Count(e)
		switch w := e.What.(type) {
		case tts.Opening:
			inThought = w.Thinking
		case tts.Text:
			out.Text += w.Text
		case *tts.Outcome:
			for _, c := range w.Candidates {
				kept := Candidate{
					Text: marks.Answer(c.Text, inThought), Score: finite(c.Score), Votes: c.Votes,
					Chosen: slices.Contains(w.Choices, c), Cut: !c.Complete(),
				}
				if m.States && c.Readings.Tokens > 0 {
					kept.States = probe.Features(nil, &c.Readings)
				}
				out.Candidates = append(out.Candidates, kept)
			}
		}
	}
	out.Text, out.Tokens, out.Verifier = marks.Answer(out.Text, inThought), spent.Completion, spent.Verifier+spent.Critiques
	return out, nil
}

// finite returns x as JSON can have it.
func finite(x float32) float64 {
	if x-x != 0 {
		return 0
	}
	return float64(x)
}

package reward

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// ErrBlank says that a response to be rated says nothing.
var ErrBlank = errors.New("reward: a response is blank")

// MaxSteps bounds the solution steps of a response to be rated: each is read
// with all that comes before it.
const MaxSteps = 1024

// ErrSteps says that a response has more steps than are rated.
var ErrSteps = errors.New("reward: too many solution steps in a response")

// Rating is a reward model's judgement of one response.
type Rating struct {
	Score      float32   // the aggregate of StepScores
	StepScores []float32 // of each solution step with all before it
	Steps      []Extent  // where the steps stand in the response
}

// Rate scores responses to a prompt, which may come from anywhere. Their lines are the solution steps; a line's end that is
// missing at the end of a response is the end of its turn. The prompt is computed once, the responses together. The second
// result counts the tokens read and written.
func (v *Scorer) Rate(ctx context.Context, prompt *tts.Prompt, by scaling.Aggregate, responses ...string) ([]Rating, int, error) {
	for _, text := range responses {
		if strings.TrimSpace(text) == "" {
			return nil, 0, ErrBlank
		}
		if least := v.model.LeastTokens(text); least > v.model.Context {
			return nil, 0, &tts.ContextError{Limit: v.model.Context, Prompt: least, Part: tts.PartResponses}
		}
		if n := len(v.format.steps(text)); n > MaxSteps {
			return nil, 0, fmt.Errorf("%w: %d, at most %d are rated", ErrSteps, n, MaxSteps)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx) // the first error ends all
	defer cancel(nil)
	req := &tts.Request{Prompt: *prompt}
	var ids []int32
	if v.format.write == nil && v.writer == nil {
		prepared, err := v.model.PrepareRequest(ctx, req)
		if err != nil {
			return nil, 0, err
		}
		ids = prepared.Tokens
	}
	root, err := v.Open(ctx, v.model, req, ids)
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	judges, err := root.Fork(ctx, len(responses))
	if err != nil {
		return nil, 0, err
	}
	critic, writes := root.(tts.Critic)
	if writes {
		limits := scaling.DefaultLimits()
		critic.Grant(limits.Tokens / max(1, len(responses)))
	}
	ratings := make([]Rating, len(responses))
	err = parallel.Each(responses, func(i int, text string) (err error) {
		defer judges[i].Close()
		if ratings[i], err = v.rate(ctx, judges[i], text); err != nil {
			if errors.Is(err, batcher.ErrTooLong) {
				err = &tts.ContextError{Limit: v.model.Context, Prompt: v.model.Context + 1, Part: tts.PartResponses}
			}
			cancel(err)
			return err
		}
		judges[i].Charge()
		ratings[i].Score = by.Of(ratings[i].StepScores)
		return nil
	})
	if err != nil {
		return nil, 0, context.Cause(ctx)
	}
	spent := root.Spent()
	if writes {
		written, _ := critic.Written()
		spent += written
	}
	return ratings, spent, nil
}

// rate scores one response, step by step.
func (v *Scorer) rate(ctx context.Context, judge tts.Judge, text string) (Rating, error) {
	c, r := &tts.Candidate{}, Rating{Steps: v.format.steps(text)}
	if j, ok := judge.(*textJudge); ok {
		err := j.judge(ctx, c, text)
		r.StepScores = c.StepScores
		return r, err
	}
	if v.writer != nil {
		c.Text = text
		err := judge.Score(ctx, c)
		r.StepScores = c.StepScores
		r.Steps = r.Steps[max(0, len(r.Steps)-len(r.StepScores)):] // thoughts are not judged, nor the first of very many
		return r, err
	}
	from := 0
	eos, ends := v.model.Tokenizer.EOS()
	for _, step := range r.Steps {
		c.IDs = v.model.Tokenizer.Encode(c.IDs, text[from:step.End], tokenizer.Options{})
		from = step.End
		if ends && text[step.End-1] != '\n' {
			c.IDs = append(c.IDs, eos)
		}
		if err := judge.Score(ctx, c); err != nil {
			return r, err
		}
	}
	r.StepScores = c.StepScores
	return r, nil
}

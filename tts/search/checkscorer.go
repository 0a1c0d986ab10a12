package search

import (
	"context"
	"slices"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/text"
	"github.com/lutra-lm/lutra/tts/verify"
)

// ByCheck scores candidates by a check of their texts, which takes no tokens.
func ByCheck(c verify.Check) tts.Scorer { return checkScorer{c} }

type checkScorer struct{ check verify.Check }

// ByWebhook scores by a service, which judges the candidates of a request together.
func ByWebhook(w *verify.Webhook) tts.Scorer { return webhookScorer{w} }

type webhookScorer struct{ hook *verify.Webhook }

// Open implements Scorer.
func (s webhookScorer) Open(ctx context.Context, m *tts.Model, req *tts.Request, prompt []int32) (tts.Judge, error) {
	q := verify.Question{Model: m.Name}
	for _, m := range req.Prompt.Messages {
		q.Messages = append(q.Messages, verify.Message{Role: m.Role, Content: m.Content})
	}
	if q.Messages == nil {
		if q.Prompt = req.Prompt.Text; q.Prompt == "" {
			q.Prompt = m.Decode(prompt)
		}
	}
	return checkScorer{s.hook.About(q)}.Open(ctx, m, req, prompt)
}

// judgesSteps tells whether a scorer can judge answers that are not whole.
func judgesSteps(s tts.Scorer) bool {
	switch s := s.(type) {
	case webhookScorer:
		return s.hook.Steps()
	case product:
		return !slices.ContainsFunc(s, func(s tts.Scorer) bool { return !judgesSteps(s) })
	}
	return true
}

// Open implements Scorer.
func (s checkScorer) Open(_ context.Context, m *tts.Model, req *tts.Request, prompt []int32) (tts.Judge, error) {
	j := checkJudge{check: s.check, marks: m.ThoughtMarks(), thinking: tts.EndsInThought(m, prompt)}
	if p := &req.Prompt; p.Ending == tts.ContinueFinalMessage && len(p.Messages) > 0 {
		j.begun, _ = p.Messages[len(p.Messages)-1].Content.(string)
	}
	return j, nil
}

// checkJudge judges a candidate by all of its text, each time anew.
type checkJudge struct {
	check    verify.Check
	marks    text.Marks
	thinking bool   // answers begin in a thought
	begun    string // of the answer, in the prompt
}

// Score implements Judge.
func (j checkJudge) Score(ctx context.Context, c *tts.Candidate) error {
	v, err := j.check.Check(ctx, j.marks.Answer(j.begun+c.Text, j.thinking))
	if err != nil {
		return err
	}
	c.StepScores, c.Verdict = append(c.StepScores, v.Score), v.Words
	return nil
}

// Fork implements Judge.
func (j checkJudge) Fork(_ context.Context, n int) ([]tts.Judge, error) {
	judges := make([]tts.Judge, n)
	for i := range judges {
		judges[i] = j
	}
	return judges, nil
}

// Charge implements Judge.
func (checkJudge) Charge() {}

// Spent implements Judge.
func (checkJudge) Spent() int { return 0 }

// Close implements Judge.
func (checkJudge) Close() {}

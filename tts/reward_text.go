package tts

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// textJudge writes solutions anew for a reward model with words of its own.
// What a further step leaves unchanged of the text is not computed again.
type textJudge struct {
	v        *Reward
	from     *Model // the generator
	question string
	seq      *batcher.Sequence // nil before the first step
	fed      []int32           // its tokens
	judged   int               // steps
	spent    *atomic.Int64
}

// Score implements Judge: one score a line, the last one only when it has
// ended.
func (j *textJudge) Score(ctx context.Context, c *Candidate) error {
	text := j.from.Decode(c.IDs)
	if c.Finish == "" {
		text = text[:strings.LastIndexByte(text, '\n')+1]
	}
	steps := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	steps = slices.DeleteFunc(steps, func(s string) bool { return strings.TrimSpace(s) == "" })
	for j.judged < len(steps) {
		text, err := j.v.format.Write(ctx, j.v.model, j.question, steps[:j.judged+1])
		if err != nil {
			return err
		}
		if err := j.feed(ctx, text); err != nil {
			return err
		}
		s, err := j.v.read(ctx, j.seq)
		if err != nil {
			return err
		}
		j.judged++
		c.StepScores = append(c.StepScores, s)
	}
	return nil
}

// feed makes the sequence hold text.
func (j *textJudge) feed(ctx context.Context, text string) error {
	opt := tokenizer.Options{AddSpecial: j.v.format.Special, ParseSpecial: !j.v.format.Special}
	ids := j.v.model.Tokenizer.Encode(nil, text, opt)
	if j.seq != nil && len(ids) >= len(j.fed) && slices.Equal(ids[:len(j.fed)], j.fed) {
		j.seq.Append(ids[len(j.fed):]...)
		j.spent.Add(int64(len(ids) - len(j.fed)))
		j.fed = ids
		return nil
	}
	seq, err := j.v.model.Engine.Open(ctx, ids)
	if err != nil {
		return err
	}
	j.Close()
	j.seq, j.fed = seq, ids
	j.spent.Add(int64(len(ids)))
	return nil
}

// Fork implements Judge.
func (j *textJudge) Fork(ctx context.Context, n int) ([]Judge, error) {
	judges := make([]Judge, n)
	var seqs []*batcher.Sequence
	if j.seq != nil {
		var err error
		if seqs, err = j.seq.Fork(ctx, n); err != nil {
			return nil, err
		}
	}
	for i := range judges {
		k := *j
		if j.seq != nil {
			k.seq = seqs[i]
		}
		judges[i] = &k
	}
	return judges, nil
}

// Spent implements Judge.
func (j *textJudge) Spent() int { return int(j.spent.Load()) }

// Close implements Judge.
func (j *textJudge) Close() {
	if j.seq != nil {
		j.seq.Close()
	}
}

// question is what was asked: the last user message, or the prompt's text.
func question(m *Model, req *Request, prompt []int32) string {
	for _, msg := range slices.Backward(req.Prompt.Messages) {
		if text, ok := msg.Content.(string); ok && msg.Role == "user" {
			return text
		}
	}
	if req.Prompt.Text != "" {
		return req.Prompt.Text
	}
	return m.Decode(prompt)
}

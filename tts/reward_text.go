package tts

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models/template"
)

// textJudge writes solutions anew for a reward model with words of its own.
// What a further step leaves unchanged of what it reads is not computed again.
type textJudge struct {
	v     *Reward
	from  *Model // the generator
	asked []template.Message
	seq   *batcher.Sequence // nil before the first step
	fed   []int32           // its tokens
	steps []Extent          // judged, in the text so far
	spent *atomic.Int64
}

// Score implements Judge. Where the search has divided the text there a step
// ends, whether or not a separator stands there.
func (j *textJudge) Score(ctx context.Context, c *Candidate) error {
	return j.judge(ctx, c, j.from.Decode(c.IDs))
}

// judge scores each step that text has gained. Where answers are judged whole,
// that is all of it once more.
func (j *textJudge) judge(ctx context.Context, c *Candidate, text string) error {
	f, from := &j.v.format, 0
	if f.whole {
		j.steps = nil
	} else if n := len(j.steps); n > 0 {
		from = min(j.steps[n-1].End, len(text))
	}
	for _, step := range f.steps(text[from:]) {
		step = Extent{from + step.Start, from + step.End}
		j.steps = append(j.steps, step)
		r := reading{Model: j.v.model, Format: f, asked: j.asked, text: text[:step.End]}
		for _, s := range j.steps {
			s.End = min(s.End, len(text))
			r.steps = append(r.steps, strings.Trim(strings.TrimSuffix(text[min(s.Start, s.End):s.End], f.Separator), "\n"))
		}
		ids, err := f.write(ctx, &r)
		if err != nil {
			return err
		}
		if err := j.feed(ctx, ids); err != nil {
			return err
		}
		s, err := j.v.read(ctx, j.seq)
		if err != nil {
			return err
		}
		c.StepScores = append(c.StepScores, s)
	}
	return nil
}

// feed makes the sequence hold ids.
func (j *textJudge) feed(ctx context.Context, ids []int32) error {
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
		k.steps = slices.Clip(k.steps)
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

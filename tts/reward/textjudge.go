package reward

import (
	"context"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts"
)

// textJudge writes solutions in the reward model's own format. What a further step
// leaves unchanged of that is not computed again.
type textJudge struct {
	reader
	from  *tts.Model // the generator
	asked []template.Message
	begun string   // of the answer, before the candidate's first token
	fed   []int32  // the tokens that were read
	steps []Extent // judged, in the text so far
}

// Score implements tts.Judge. Where the search has divided the text there a step
// ends, whether or not a separator stands there.
func (j *textJudge) Score(ctx context.Context, c *tts.Candidate) error {
	return j.judge(ctx, c, j.begun+j.from.Decode(c.IDs))
}

// judge scores each step that text has gained. Where answers are judged whole,
// that is all of it once more.
func (j *textJudge) judge(ctx context.Context, c *tts.Candidate, text string) error {
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
		ids, err := r.ids(ctx)
		if err != nil {
			return err
		}
		at, more := j.root, ids
		if len(ids) >= len(j.fed) && slices.Equal(ids[:len(j.fed)], j.fed) {
			at, more = j.at, ids[len(j.fed):]
		}
		s, err := j.step(ctx, at, more)
		if err != nil {
			return err
		}
		j.fed = ids
		c.StepScores = append(c.StepScores, s)
	}
	return nil
}

// ids returns what the reward model reads. To write and encode what is long is work
// alongside the engines.
func (r *reading) ids(ctx context.Context) ([]int32, error) {
	ctx, leave, err := cpulimit.EnterForText(ctx, len(r.text))
	if err != nil {
		return nil, err
	}
	defer leave()
	return r.Format.write(ctx, r)
}

// Fork implements tts.Judge.
func (j *textJudge) Fork(_ context.Context, n int) ([]tts.Judge, error) {
	judges := make([]tts.Judge, n)
	for i, r := range j.copies(n) {
		k := *j
		k.reader, k.steps = r, slices.Clip(k.steps)
		judges[i] = &k
	}
	return judges, nil
}

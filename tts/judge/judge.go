package judge

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/text"
)

// planned is a Scorer with what a plan wants of it.
type planned struct {
	*Scorer
	how   scaling.Judge
	stops []string // that end solution steps
}

// desk holds what all judges of a request share.
type desk struct {
	*planned
	model    *tts.Model
	marks    text.Marks      // of the answers' thoughts
	ctx      context.Context // of the request
	asked    string
	begun    string // of the answer, in the prompt
	thinking bool   // answers begin in a thought
	seed     uint64
	rows     *semaphore.Weighted // critiques under way
	granted  atomic.Int64

	mu      sync.Mutex // guards what follows
	rulings map[string]*ruling
	read    int // tokens charged for
	written int // likewise
	spent   int // tokens written, charged or not

	heading sync.Mutex // guards what follows, and is held to fork seq
	head    []int32    // with which all prompts begin
	seq     *batcher.Sequence
}

// ruling is the result of an asking.
type ruling struct {
	done      chan struct{} // closed when what follows is known
	err       error
	score     float32
	critiques []tts.Critique
	read      int
	paid      bool // guarded by the desk
}

// judge follows one candidate.
type judge struct {
	*desk
	judged int       // solution steps, where each is judged
	due    []*ruling // not charged for
}

// Open implements tts.Scorer.
func (s *planned) Open(ctx context.Context, m *tts.Model, req *tts.Request, prompt []int32) (tts.Judge, error) {
	marks := m.ThoughtMarks()
	d := &desk{planned: s, model: cmp.Or(s.model, m), marks: marks, ctx: ctx, seed: sampling.Mix(req.Sampling.Seed + judgingNumbers), rulings: map[string]*ruling{},
		rows: semaphore.NewWeighted(mostTogether), thinking: marks.EndsInThought(m.Spell(prompt[max(0, len(prompt)-2*len(marks.Begin)):]))}
	d.asked, d.begun = conversation(m, &req.Prompt, prompt)
	d.granted.Store(int64(s.how.TotalTokens))
	return &judge{desk: d}, nil
}

// conversation returns the question, which is the user's only message, else all messages, and the part of
// the answer that the prompt holds.
func conversation(m *tts.Model, p *tts.Prompt, prompt []int32) (asked, begun string) {
	messages := p.Messages
	if messages == nil {
		if p.Text != "" {
			return p.Text, ""
		}
		return m.Decode(prompt), ""
	}
	if p.Ending == tts.ContinueFinalMessage && len(messages) > 0 {
		begun, _ = messages[len(messages)-1].Content.(string)
		messages = messages[:len(messages)-1]
	}
	turns := slices.DeleteFunc(slices.Clone(messages), func(m template.Message) bool { return m.Role == "system" || m.Role == "developer" })
	if len(turns) == 1 {
		asked, _ = turns[0].Content.(string)
		return asked, begun
	}
	var all strings.Builder
	for _, m := range turns {
		if content, ok := m.Content.(string); ok {
			all.WriteString(m.Role + ": " + content + "\n")
		}
	}
	return all.String(), begun
}

// currentText returns a candidate's answer; while it thinks, its thought.
func (d *desk) currentText(c *tts.Candidate) string {
	all := d.begun + c.Text
	if answer := strings.TrimSpace(d.marks.Answer(all, d.thinking)); answer != "" {
		return answer
	}
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(all), d.marks.Begin))
}

// Score implements tts.Judge.
func (j *judge) Score(ctx context.Context, c *tts.Candidate) error {
	askings := j.askings(j.currentText(c))
	rulings := make([]*ruling, len(askings))
	err := parallel.Each(askings, func(i int, a asking) (err error) {
		rulings[i], err = j.ask(ctx, &a, int(j.granted.Load())/len(askings))
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range rulings {
		c.StepScores = append(c.StepScores, r.score)
		c.Critiques = append(c.Critiques, r.critiques...)
		c.Verdict = j.words(r)
	}
	if j.opt.Format == FormatGen {
		j.judged += len(rulings)
	}
	j.due = append(j.due, rulings...)
	return nil
}

// askings returns the questions to ask of an answer so far.
func (j *judge) askings(currentText string) (all []asking) {
	divided := steps(currentText, j.stops)
	switch j.opt.Format {
	case FormatGen:
		j.judged = max(j.judged, len(divided)-mostSteps)
		for n := j.judged + 1; n <= len(divided); n++ {
			all = append(all, checksLast(j.asked, divided[:n]))
		}
		return all
	case FormatThink:
		return []asking{checks(j.asked, divided)}
	}
	return []asking{j.opt.grades(j.asked, currentText, len(divided))}
}

// Fork implements tts.Judge.
func (j *judge) Fork(_ context.Context, n int) ([]tts.Judge, error) {
	judges := make([]tts.Judge, n)
	for i := range judges {
		judges[i] = &judge{desk: j.desk, judged: j.judged}
	}
	return judges, nil
}

// Charge implements tts.Judge.
func (j *judge) Charge() {
	for _, r := range j.due {
		j.charge(r)
	}
	j.due = nil
}

// charge counts what a ruling has cost, once.
func (d *desk) charge(r *ruling) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.paid {
		return
	}
	r.paid = true
	if d.read == 0 {
		d.read = len(d.head)
	}
	d.read += r.read
	for i := range r.critiques {
		d.written += r.critiques[i].Tokens
	}
}

// Spent implements tts.Judge.
func (d *desk) Spent() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.read
}

// Grant implements tts.Critic.
func (d *desk) Grant(tokens int) { d.granted.Store(int64(tokens)) }

// Written implements tts.Critic.
func (d *desk) Written() (charged, all int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.written, d.spent
}

// Close implements tts.Judge. The request's end closes what its judges share.
func (j *judge) Close() {}

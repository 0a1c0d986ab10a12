package probe

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/lab/eval"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// answer is one of the different answers to a problem.
type answer struct {
	ids   []int32 // with the token that ends it, as far as it has one
	votes int     // candidates that gave it
	key   string  // of its final answer; empty: it has none
	right bool
	score float64   // of the verifier that probes are compared with; 0: not known
	whole []float32 // features; nil: they were not read
	begun []float32 // of one of its beginnings; nil: likewise
	probe float64   // the trained probe's score
}

// problem is a question with its answers.
type problem struct {
	question string
	system   string
	prompt   []int32
	answers  []answer
	part     part
}

// part says what a problem serves for.
type part uint8

const (
	fitting part = iota
	tuning       // chooses the regularisation
	held         // is reported on
)

// Sampling says how candidates are sampled.
type Sampling struct {
	N           int
	Concurrency int // problems at once
	Seed        uint64
	eval.Asking
}

// request asks a question.
func request(system, question string) *tts.Request {
	req := &tts.Request{}
	if system != "" {
		req.Prompt.Messages = append(req.Prompt.Messages, template.Message{Role: "system", Content: system})
	}
	req.Prompt.Messages = append(req.Prompt.Messages, template.Message{Role: "user", Content: question})
	return req
}

// Sample has a model answer problems. verifier scores the candidates; empty: none does.
func (t *Trainer) Sample(ctx context.Context, m eval.Searcher, problems []eval.Problem, s Sampling, done func()) error {
	t.n = s.N
	limits := scaling.DefaultLimits()
	limits.N, limits.Tokens, limits.Time = max(limits.N, s.N), max(limits.Tokens, s.N*s.MaxTokens), 24*time.Hour
	plan := scaling.Plan{Method: scaling.BestOfN, N: s.N, Select: scaling.SelectMax, Verifier: cmp.Or(m.Verifiers.Default, scaling.VerifierLogprob)}
	t.verifier = m.Verifiers.Default
	t.problems = make([]problem, len(problems))
	for i := range problems {
		t.problems[i].question, t.problems[i].system = problems[i].Question, s.System
	}
	t.divide()
	return t.each(ctx, s.Concurrency, done, func(ctx context.Context, i int) error {
		p := &t.problems[i]
		req := request(s.System, p.question)
		if s.Thinking != nil {
			req.Prompt.SwitchThinking(*s.Thinking)
		}
		req.Sampling.Temperature, req.Sampling.Seed, req.Sampling.MaxTokens = s.Temperature, s.Seed+uint64(i), s.MaxTokens
		prepared, err := m.Model.Prepare(ctx, &req.Prompt, s.MaxTokens)
		if err != nil {
			return err
		}
		p.prompt = prepared.Tokens
		search := tts.Search{Model: m.Model, Plan: plan, Limits: limits, Verifiers: m.Verifiers}
		for e, err := range search.Run(ctx, req) {
			if err != nil {
				return err
			}
			out, ok := e.What.(*tts.Outcome)
			if !ok {
				continue
			}
			slices.SortFunc(out.Candidates, func(a, b *tts.Candidate) int { return cmp.Compare(a.Index, b.Index) })
			for _, c := range out.Candidates {
				a := answer{ids: c.IDs, votes: 1, score: float64(c.Score)}
				a.key, a.right = problems[i].Right(m.Model.ThoughtMarks().Answer(c.Text, prepared.Thinking))
				p.add(a)
			}
		}
		return t.features(ctx, m.Model, p)
	})
}

// add adds an answer, or a vote for the same.
func (p *problem) add(a answer) {
	for i := range p.answers {
		if slices.Equal(p.answers[i].ids, a.ids) {
			p.answers[i].votes += a.votes
			return
		}
	}
	p.answers = append(p.answers, a)
}

// Recall takes the answers of a model from the journals of lutra-lab eval in folders.
func (t *Trainer) Recall(ctx context.Context, m *tts.Model, folders []string, limit, concurrency int, begin func(total int) (done func())) error {
	byQuestion := map[string]int{}
	for _, dir := range folders {
		err := eval.ReadJournal(filepath.Join(dir, "journal.jsonl"), func(s eval.Setup, r eval.Record) error {
			if r.Model != m.Name || r.Sample == nil || len(r.Candidates) < 2 {
				return nil
			}
			at, known := byQuestion[r.Question]
			if !known {
				if limit > 0 && len(t.problems) >= limit {
					return nil
				}
				at = len(t.problems)
				byQuestion[r.Question] = at
				t.problems = append(t.problems, problem{question: r.Question, system: s.System})
			}
			t.n = max(t.n, len(r.Candidates))
			graded := eval.Problem{Question: r.Question, Answer: r.Reference}
			for _, c := range r.Candidates {
				a := answer{ids: m.Tokenizer.Encode(nil, c.Text, tokenizer.Options{}), votes: 1, score: c.Score}
				a.key, a.right = graded.Right(c.Text)
				t.problems[at].add(a)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(t.problems) == 0 {
		return fmt.Errorf("no journal has candidates of %s", m.Name)
	}
	t.verifier = "the journal's"
	t.divide()
	for i := range t.problems {
		p := &t.problems[i]
		prepared, err := m.Prepare(ctx, &request(p.system, p.question).Prompt, 0)
		if err != nil {
			return fmt.Errorf("problem %d: %w", i, err)
		}
		p.prompt = prepared.Tokens
	}
	end, err := t.end(ctx, m)
	if err != nil {
		return err
	}
	return t.each(ctx, concurrency, begin(len(t.problems)), func(ctx context.Context, i int) error {
		p := &t.problems[i]
		for k := range p.answers {
			p.answers[k].ids = append(p.answers[k].ids, end)
		}
		return t.features(ctx, m, p)
	})
}

// end returns the token with which the model ends an answer, as it would end the first of a journal:
// some have several, of which the text does not tell.
func (t *Trainer) end(ctx context.Context, m *tts.Model) (int32, error) {
	ends := m.Tokenizer.EOGs()
	if len(ends) == 0 {
		return 0, fmt.Errorf("model %s has no token that ends an answer", m.Name)
	}
	p := &t.problems[0]
	seq, err := m.Engine.OpenBackground(ctx, slices.Concat(p.prompt, p.answers[0].ids))
	if err != nil {
		return 0, err
	}
	defer seq.Close()
	logits, err := seq.Logits(ctx, ends...)
	if err != nil {
		return 0, err
	}
	return ends[slices.Index(logits, slices.Max(logits))], nil
}

// each calls do for all problems, some at once, until the first error.
func (t *Trainer) each(ctx context.Context, atOnce int, done func(), do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan int)
	wait := parallel.Start(make([]struct{}, max(1, atOnce)), func(int, struct{}) error {
		for i := range work {
			if err := do(ctx, i); err != nil {
				err = fmt.Errorf("problem %d: %w", i, err)
				cancel(err)
				return err
			}
			done()
		}
		return nil
	})
	for i := range t.problems {
		select {
		case work <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(work)
	return cmp.Or(wait(), context.Cause(ctx))
}

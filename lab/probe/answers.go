package probe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/lab/eval"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/search"
)

// answer is one of the different answers to a problem.
type answer struct {
	text  string  // empty: it was sampled here
	ids   []int32 // with the token that ends it, as far as it has one
	votes int     // candidates that gave it
	key   string  // of its final answer; empty: it has none
	right bool
	cut   bool      // its end is missing
	score float64   // of the verifier that probes are compared with; 0: not known
	whole []float32 // features; nil: they were not read
	begun []float32 // of one of its beginnings; nil: likewise
	probe float64   // of a probe that was fitted without this problem
}

// problem is a question with its answers.
type problem struct {
	question string
	system   string
	prompt   []int32
	answers  []answer
	part     part
	judged   bool // answers have the score of a probe that was fitted without it
}

// part says what a problem serves for.
type part uint8

const (
	fitting part = iota
	tuning       // chooses the regularisation
	held         // is judged and reported on
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
	t.divide(0)
	if err := t.bound(); err != nil {
		return err
	}
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
		strategy := search.Search{Model: m.Model, Plan: plan, Limits: limits, Verifiers: m.Verifiers}
		for e, err := range strategy.Run(ctx, req) {
			if err != nil {
				return err
			}
			out, ok := e.What.(*tts.Outcome)
			if !ok {
				continue
			}
			slices.SortFunc(out.Candidates, func(a, b *tts.Candidate) int { return cmp.Compare(a.Index, b.Index) })
			for _, c := range out.Candidates {
				a := answer{ids: c.IDs, votes: 1, cut: !c.Complete(), score: float64(c.Score)}
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
	byQuestion, kept := map[string]int{}, 0
	for _, dir := range folders {
		err := eval.ReadJournal(filepath.Join(dir, "journal.jsonl"), func(s eval.Setup, r eval.Record) error {
			if r.Model != m.Name || r.Sample == nil || len(r.Candidates) < 2 || limit > 0 && r.Problem >= limit {
				return nil
			}
			at, known := byQuestion[r.Question]
			if !known {
				at = len(t.problems)
				byQuestion[r.Question] = at
				t.problems = append(t.problems, problem{question: r.Question, system: s.System})
			}
			if s.States != nil {
				if !slices.Equal(s.States, t.read.Layers) {
					return fmt.Errorf("its states are of layers %v, and not of %v", s.States, t.read.Layers)
				}
				if kept += 4 * t.width() * len(r.Candidates); kept > memory {
					return fmt.Errorf("the states of its first %d problems take more than %d MiB: set --limit", len(t.problems), memory>>20)
				}
				if err := eval.ReadStates(filepath.Join(dir, eval.StatesDir), &r, t.width()); err != nil {
					return err
				}
			}
			for i := range r.Candidates {
				c := &r.Candidates[i]
				t.problems[at].add(answer{
					text: c.Text, ids: m.Tokenizer.Encode(nil, c.Text, tokenizer.Options{}), votes: 1,
					key: c.Answer, right: c.Right, cut: c.Cut, score: c.Score, whole: c.States,
				})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	// What was answered first does not count: sums are rounded in the order of the problems.
	slices.SortFunc(t.problems, func(a, b problem) int { return cmp.Compare(a.question, b.question) })
	for i := range t.problems {
		slices.SortFunc(t.problems[i].answers, func(a, b answer) int { return cmp.Compare(a.text, b.text) })
		candidates := 0 // in all journals together
		for k := range t.problems[i].answers {
			candidates += t.problems[i].answers[k].votes
		}
		t.n = max(t.n, candidates)
	}
	if len(t.problems) == 0 {
		return fmt.Errorf("no journal has candidates of %s", m.Name)
	}
	t.verifier = "the journal's"
	t.divide(0)
	if err := t.bound(); err != nil {
		return err
	}
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

// Rescore writes the journal of a folder again, with scores of probes that were fitted without the problem. It leaves
// out problems that no probe has judged.
func (t *Trainer) Rescore(dir, path string) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	scores := map[string]map[string]float64{}
	for i := range t.problems {
		if p := &t.problems[i]; p.judged {
			byText := map[string]float64{}
			for k := range p.answers {
				byText[p.answers[k].text] = p.answers[k].probe
			}
			scores[p.question] = byText
		}
	}
	write := json.NewEncoder(out)
	began := false
	err = eval.ReadJournal(filepath.Join(dir, "journal.jsonl"), func(s eval.Setup, r eval.Record) error {
		if !began {
			began = true
			if err := write.Encode(s); err != nil {
				return err
			}
		}
		byText, judged := scores[r.Question]
		if r.Sample == nil || !judged {
			return nil
		}
		for i := range r.Candidates {
			r.Candidates[i].Score = byText[r.Candidates[i].Text]
		}
		return write.Encode(r)
	})
	return errors.Join(err, out.Close())
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

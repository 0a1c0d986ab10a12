package tts

import (
	"context"
	"sync"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts/answer"
)

// Problem is a question with its right answer.
type Problem struct {
	Question string
	Answer   string
}

// Result is what a strategy made of one problem.
type Result struct {
	Text    string
	Answer  string // extracted; empty: none found
	Right   bool
	Usage   Usage
	Outcome *Outcome // nil for strategies that do not search
	Passed  float64  // share of the complete candidates that are right; without a search, 1 or 0
	Any     bool     // some candidate is right
}

// Measurement sums up results.
type Measurement struct {
	Problems int
	Right    int     // problems whose first choice is right
	Any      int     // problems with a right candidate
	Passed   float64 // mean share of right candidates: pass@1, when they are whole answers
	Degraded int     // problems whose search had to shrink
	Usage    Usage
}

// Add counts a result too.
func (m *Measurement) Add(r Result) {
	m.Passed = (m.Passed*float64(m.Problems) + r.Passed) / float64(m.Problems+1)
	m.Problems++
	if r.Right {
		m.Right++
	}
	if r.Any {
		m.Any++
	}
	if r.Outcome != nil && r.Outcome.Degraded {
		m.Degraded++
	}
	m.Usage.Add(r.Usage)
}

// Measure asks a strategy for one choice to each problem, parallel problems at
// a time, and compares the answers as rule says. The request is a template:
// its prompt is replaced by the question, and its seed is counted up from
// problem to problem. each, when not nil, is told every result in the
// problems' order. The first error ends everything.
func Measure(ctx context.Context, s Strategy, problems []Problem, req Request, rule answer.Rule, parallel int, each func(i int, r Result)) (Measurement, error) {
	reader, err := rule.Compile()
	if err != nil {
		return Measurement{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type reply struct {
		result Result
		err    error
	}
	replies := make([]chan reply, len(problems))
	for i := range replies {
		replies[i] = make(chan reply, 1)
	}
	slots := make(chan struct{}, max(parallel, 1))
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		for i, p := range problems {
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				r, err := ask(ctx, s, p, req, uint64(i), reader)
				replies[i] <- reply{r, err}
			})
		}
	})
	var m Measurement
	for i, c := range replies {
		r := <-c
		if r.err != nil {
			cancel()
			return m, r.err
		}
		m.Add(r.result)
		if each != nil {
			each(i, r.result)
		}
	}
	return m, nil
}

// ask puts one problem.
func ask(ctx context.Context, s Strategy, p Problem, req Request, i uint64, reader *answer.Reader) (Result, error) {
	req.N = 1
	req.Sampling.Seed += i
	req.Prompt = Prompt{Messages: []template.Message{{Role: "user", Content: p.Question}}, Extra: req.Prompt.Extra}
	var r Result
	for d, err := range s.Run(ctx, &req) {
		if err != nil {
			return r, err
		}
		r.Text += d.Text
		r.Usage.Add(d.Usage)
		if d.Outcome != nil {
			r.Outcome = d.Outcome
		}
	}
	want := reader.Key(p.Answer)
	right := func(text string) bool {
		a, ok := reader.Read(text)
		return ok && a.Key == want
	}
	if a, ok := reader.Read(r.Text); ok {
		r.Answer, r.Right = a.Text, a.Key == want
	}
	r.Any = r.Right
	if r.Right {
		r.Passed = 1
	}
	if r.Outcome != nil && len(r.Outcome.Candidates) > 0 {
		n := 0
		for _, c := range r.Outcome.Candidates {
			if right(c.Text) {
				n++
			}
		}
		r.Any, r.Passed = n > 0, float64(n)/float64(len(r.Outcome.Candidates))
	}
	return r, nil
}

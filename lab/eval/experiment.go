package eval

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Question is one problem as it is asked.
type Question struct {
	Text string
	Seed uint64
}

// Solution is a solver's answer to a question.
type Solution struct {
	Text       string      // the answer
	Candidates []Candidate // that it was chosen among; nil: not known
	Tokens     int         // generated, by all candidates
	Verifier   int         // tokens that a verifier read and wrote
	Modelled   *Modelled
}

// Candidate is a whole answer that another or itself was chosen among.
type Candidate struct {
	Text   string  `json:"text"`
	Answer string  `json:"answer"` // extracted; empty: none found
	Right  bool    `json:"right"`
	Score  float64 `json:"score"` // of the verifier, in [0, 1]; 0: not known
	Votes  int     `json:"votes"` // candidates with the same answer; 0: not known
	Chosen bool    `json:"chosen"`
	// Cut: its end is missing, or it was filtered out, so that it has a vote only where all candidates are cut.
	Cut bool `json:"cut,omitempty"`

	States []float32 `json:"-"` // probe.Features; nil: they are not kept
}

// Sample is a question with its answer.
type Sample struct {
	Question   string      `json:"question"`
	Reference  string      `json:"reference"` // the right answer
	Text       string      `json:"text"`      // the answer that was chosen
	Candidates []Candidate `json:"candidates,omitempty"`
}

// Modelled has the modelled cost of an answer on an NPU.
type Modelled struct {
	Seconds float64 `json:"seconds"`
	Joules  float64 `json:"joules"`
}

// Solve answers a question as a point says. Many goroutines call it at once.
type Solve func(ctx context.Context, p Point, q Question) (Solution, error)

// Experiment asks all problems at all points.
type Experiment struct {
	Problems    []Problem
	Points      []Point
	Seed        uint64 // of problem 0
	Concurrency int    // problems at once; 0 means 1
	Solve       Solve
	Journal     *Journal
	States      string // folder for the states of candidates that have some
	Done        func() // if not nil, called after each record, from many goroutines
}

// task is a record to make.
type task struct {
	point   Point
	problem int
}

// left lists the records that the journal lacks. If problems are asked one at a time,
// each is asked at all points before the next, so machine noise affects all points
// equally. If several are asked at once, the points come one after the other, so a
// point shares the machine only with itself.
func (e *Experiment) left() []task {
	var tasks []task
	add := func(point, problem int) {
		if p := e.Points[point]; !e.Journal.Has(p, problem) {
			tasks = append(tasks, task{p, problem})
		}
	}
	if e.Concurrency > 1 {
		for p := range e.Points {
			for i := range e.Problems {
				add(p, i)
			}
		}
		return tasks
	}
	for i := range e.Problems {
		for p := range e.Points {
			add(p, i)
		}
	}
	return tasks
}

// Left returns the number of records that the journal lacks.
func (e *Experiment) Left() int { return len(e.left()) }

// Run makes all records that the journal lacks. It ends at ctx's end or the
// first error; what was recorded until then stays.
func (e *Experiment) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tasks := make(chan task)
	var workers sync.WaitGroup
	for range max(e.Concurrency, 1) {
		workers.Go(func() {
			for t := range tasks {
				if err := e.run(ctx, t); err != nil {
					cancel(fmt.Errorf("%s, %s, problem %d: %w", t.point.Model, t.point, t.problem, err))
				}
			}
		})
	}
	for _, t := range e.left() {
		select {
		case tasks <- t:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(tasks)
	workers.Wait()
	return context.Cause(ctx)
}

func (e *Experiment) run(ctx context.Context, t task) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := e.Problems[t.problem]
	start := time.Now()
	s, err := e.Solve(ctx, t.point, Question{Text: p.Question, Seed: e.Seed + uint64(t.problem)})
	if err != nil {
		return err
	}
	r := Record{Point: t.point, Problem: t.problem, Tokens: s.Tokens, Verifier: s.Verifier, Latency: time.Since(start), Modelled: s.Modelled}
	if err := r.grade(ctx, p, s); err != nil {
		return err
	}
	if err := writeStates(e.States, &r); err != nil {
		return err
	}
	if err := e.Journal.Add(r); err != nil {
		return err
	}
	if e.Done != nil {
		e.Done()
	}
	return nil
}

// grade compares the solution and its candidates with the right answer, and keeps them. Errors are ctx's.
func (r *Record) grade(ctx context.Context, p Problem, s Solution) (err error) {
	r.Sample = &Sample{Question: p.Question, Reference: p.Answer, Text: s.Text, Candidates: s.Candidates}
	if r.Answer, r.Right, err = p.read(ctx, s.Text); err != nil || s.Candidates == nil {
		return err
	}
	found := r.Right
	for i := range r.Candidates {
		c := &r.Candidates[i]
		if c.Answer, c.Right, err = p.read(ctx, c.Text); err != nil {
			return err
		}
		found = found || c.Right
	}
	r.Any = &found
	return nil
}

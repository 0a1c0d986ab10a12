package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/tts"
)

// round is one call of Generate.
type round struct {
	*source
	work *tts.Work
	done func(job int, runs []tts.Run)

	mu   sync.Mutex
	jobs []progress
}

// progress is the state of a job.
type progress struct {
	runs  []tts.Run // the most that workers have got of it
	ended bool
}

// count returns the number of tokens in runs.
func count(runs []tts.Run) (n int) {
	for i := range runs {
		n += len(runs[i].Tokens)
	}
	return n
}

// Generate implements tts.Source.
func (s *source) Generate(ctx context.Context, w *tts.Work, done func(job int, runs []tts.Run)) {
	r := &round{source: s, work: w, done: done, jobs: make([]progress, len(w.Jobs))}
	all := make([]int, len(w.Jobs))
	for i := range all {
		all[i] = i
	}
	r.divide(ctx, all, nil)
}

// divide gives jobs to all workers that are ready, but for those that were tried, in
// equal parts. Without any they are given up.
func (r *round) divide(ctx context.Context, jobs []int, tried []*worker) {
	ready := r.pool.ready(tried)
	if len(ready) == 0 || ctx.Err() != nil {
		for _, j := range jobs {
			r.end(j, nil)
		}
		return
	}
	parts := max(min(len(ready), len(jobs)), (len(jobs)+mostJobs-1)/mostJobs)
	var all parallel.Group
	for i := range parts {
		part := jobs[i*len(jobs)/parts : (i+1)*len(jobs)/parts]
		all.Go(func() { r.part(ctx, ready[i%len(ready)], part, tried) })
	}
	all.Wait()
}

// part has a worker go on with jobs, and with Options.Hedge one more if that takes too
// long. What they leave is divided among those that are left.
func (r *round) part(ctx context.Context, first *worker, jobs []int, tried []*worker) {
	asking, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	tried = slices.Clone(tried)
	ended := make(chan struct{}, 2)
	running := 0
	var hedged atomic.Bool
	var attempts parallel.Group
	over := func() {
		if hedged.Load() && len(r.unfinished(jobs)) == 0 {
			stop(errOver)
		}
	}
	ask := func(w *worker) {
		tried = append(tried, w)
		running++
		a := r.attempt(w, r.unfinished(jobs), over)
		attempts.Go(func() {
			defer func() { ended <- struct{}{} }()
			a.run(asking)
		})
	}
	ask(first)
	var late <-chan time.Time
	if r.pool.opt.Hedge > 0 {
		timer := time.NewTimer(r.pool.opt.Hedge)
		defer timer.Stop()
		late = timer.C
	}
	for running > 0 {
		select {
		case <-ended:
			running--
		case <-late:
			if others := r.pool.ready(tried); len(others) > 0 {
				hedged.Store(true)
				ask(others[0])
			} else {
				stop(errOver) // this server does it
			}
		}
	}
	attempts.Wait()
	if rest := r.unfinished(jobs); len(rest) > 0 {
		r.divide(ctx, rest, tried)
	}
}

// unfinished returns the jobs that have not ended.
func (r *round) unfinished(jobs []int) (left []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range jobs {
		if !r.jobs[j].ended {
			left = append(left, j)
		}
	}
	return left
}

// keep notes what a worker has got of a job that it has not finished.
func (r *round) keep(j int, runs []tts.Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := &r.jobs[j]; count(runs) > count(p.runs) {
		p.runs = runs
	}
}

// end delivers a job, unless it has been delivered: with runs, or if these are nil with
// what there is. It reports whether it did.
func (r *round) end(j int, runs []tts.Run) bool {
	r.mu.Lock()
	p := &r.jobs[j]
	if p.ended {
		r.mu.Unlock()
		return false
	}
	if p.ended = true; runs == nil {
		runs = p.runs
	}
	r.mu.Unlock()
	r.done(j, runs)
	return true
}

var (
	// errOver is why an attempt is left that takes longer than Options.Hedge.
	errOver = errors.New("workers: others are faster")
	// errEnough ends the reading of an answer that goes on beyond what is wanted of it.
	errEnough = errors.New("workers: all that is wanted has come")
)

// attempt is one request to a worker.
type attempt struct {
	*round
	worker *worker
	over   func() // called when a job has ended
	jobs   []try
	longer bool // the worker goes on with a job that has ended
	cancel context.CancelCauseFunc
}

// try is a job in an attempt.
type try struct {
	job   int
	runs  []tts.Run // before the attempt
	n     int       // tokens in them
	got   []sampling.Token
	ended bool
}

// attempt makes one for jobs.
func (r *round) attempt(w *worker, jobs []int, over func()) *attempt {
	a := &attempt{round: r, worker: w, over: over}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range jobs {
		runs := r.jobs[j].runs
		a.jobs = append(a.jobs, try{job: j, runs: runs, n: count(runs)})
	}
	return a
}

// run asks the worker, and notes how that ended.
func (a *attempt) run(ctx context.Context) {
	if len(a.jobs) == 0 {
		return
	}
	asking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.cancel = cancel
	timeout := a.pool.opt.Timeout
	began := time.Now()
	silent := time.AfterFunc(timeout, func() {
		cancel(&fault{Slow, 0, fmt.Errorf("it has sent no token for %v", timeout)})
	})
	defer silent.Stop()
	late := time.AfterFunc(timeout+a.expected(), func() {
		cancel(&fault{Slow, 0, fmt.Errorf("its tokens take more than %d times as long as here and %v", slownessFactor, timeout)})
	})
	defer late.Stop()
	a.worker.begin(a)
	request, tokens := a.request()
	err := a.worker.post(asking, request, tokens, func(e *event) error {
		news, err := a.take(e, request.MaxTokens)
		if news {
			silent.Reset(timeout)
			late.Reset(time.Until(began.Add(timeout + a.expected())))
		}
		return err
	})
	if err != nil && asking.Err() != nil { // which is why
		err = context.Cause(asking)
	}
	a.settle(ctx, err)
}

// slownessFactor is the factor by which a worker's tokens may take longer than here, beyond Options.Timeout.
const slownessFactor = 4

// expected returns after how long the longest job must have one more token.
func (a *attempt) expected() time.Duration {
	if a.work.Pace == 0 {
		return longest
	}
	most := 0
	for i := range a.jobs {
		most = max(most, len(a.jobs[i].got))
	}
	return slownessFactor * a.work.Pace * time.Duration(most+1)
}

// request makes the worker's request, and returns the most tokens of its answer.
func (a *attempt) request() (r *request, tokens int) {
	numbers, begun, most := make([]int, len(a.jobs)), make([][]int32, len(a.jobs)), 0
	for i := range a.jobs {
		t := &a.jobs[i]
		job := &a.work.Jobs[t.job]
		numbers[i], begun[i], most = job.Candidate, slices.Clone(job.Begun), max(most, job.MaxTokens-t.n)
		for _, run := range t.runs {
			for _, tok := range run.Tokens {
				begun[i] = append(begun[i], tok.ID)
			}
		}
		if begun[i] == nil {
			begun[i] = []int32{}
		}
	}
	return newRequest(a.model, a.work, numbers, begun, most), most * len(a.jobs)
}

// take takes in an event of an answer that has at most most tokens a choice, and reports
// whether it had any.
func (a *attempt) take(e *event, most int) (news bool, err error) {
	for i := range e.Choices {
		c := &e.Choices[i]
		if c.Index < 0 || c.Index >= len(a.jobs) {
			return false, wrong("there is a choice %d of %d", c.Index, len(a.jobs))
		}
		if len(c.Tokens) > 0 && e.Print != a.print {
			return false, &fault{Refused, mostRest, fmt.Errorf("its fingerprint is %.40q, here it is %q: it is another build, processor, model or packing", e.Print, a.print)}
		}
		tokens, err := c.tokens(a.vocab)
		if err != nil {
			return false, err
		}
		for _, tok := range tokens {
			if err := a.token(&a.jobs[c.Index], tok, most); err != nil {
				return false, err
			}
			news = true
		}
		if c.Finish != nil {
			if err := a.finish(&a.jobs[c.Index], *c.Finish); err != nil {
				return false, err
			}
		}
	}
	if a.longer && a.left() == 0 {
		return news, errEnough
	}
	return news, nil
}

// left counts the jobs that have not ended.
func (a *attempt) left() (n int) {
	for i := range a.jobs {
		if !a.jobs[i].ended {
			n++
		}
	}
	return n
}

// token takes in a token of a job.
func (a *attempt) token(t *try, tok sampling.Token, most int) error {
	t.got = append(t.got, tok)
	n := len(t.got)
	if n > most {
		return wrong("a choice has more than %d tokens", most)
	}
	job := &a.work.Jobs[t.job]
	if t.ended {
		if last := t.got[n-2].ID; a.work.Until.Has(last) {
			return wrong("a choice goes on behind its end")
		}
		return nil // of its neighbours one wants more
	}
	if a.work.Ends(job, tok.ID, t.n+n) {
		a.longer = a.longer || n < most && !a.work.Until.Has(tok.ID)
		t.ended = true
		a.deliver(t, slices.Clone(t.got))
	}
	return nil
}

// finish takes in that the worker has ended a choice.
func (a *attempt) finish(t *try, reason string) error {
	n := len(t.got)
	switch {
	case t.ended:
		return nil
	case n == 0:
		return wrong("a choice ends without a token")
	case reason == string(tts.FinishLength):
		return fmt.Errorf("a choice ends for want of room behind %d tokens: its context is shorter", n)
	case reason != string(tts.FinishStop) || len(a.work.Stops) == 0:
		return wrong("a choice ends with %.20q behind %d tokens, of which none ends it", reason, n)
	}
	t.ended = true // at a text, which the search is to find
	a.deliver(t, slices.Clone(t.got))
	return nil
}

// deliver ends a job with the tokens that have come.
func (a *attempt) deliver(t *try, tokens []sampling.Token) {
	if a.end(t.job, a.runs(t, tokens)) {
		a.worker.finished(len(tokens))
		a.over()
	}
}

// runs returns the job's earlier runs, and this worker's of tokens.
func (a *attempt) runs(t *try, tokens []sampling.Token) []tts.Run {
	return append(slices.Clone(t.runs), tts.Run{From: a.worker.name, Tokens: tokens})
}

// settle notes how the request has ended; ctx belongs to all requests for these jobs.
func (a *attempt) settle(ctx context.Context, err error) {
	left := a.left()
	switch {
	case err == nil && left > 0:
		err = wrong("%d of %d choices do not end", left, len(a.jobs))
	case left == 0 && (errors.Is(err, errEnough) || errors.Is(err, errOver)):
		err = nil
	}
	f := (*fault)(nil)
	if cause := context.Cause(ctx); errors.Is(err, cause) && cause != nil && !errors.As(err, &f) {
		err = &fault{Left, 0, err} // the search has ended, or another worker was faster
	}
	outcome, rest := a.worker.end(a, time.Now(), err)
	if outcome == Left && !errors.Is(err, errOver) {
		return
	}
	a.worker.left(left)
	for i := range a.jobs {
		if t := &a.jobs[i]; !t.ended && len(t.got) > 0 && outcome != Wrong && outcome != Refused {
			a.keep(t.job, a.runs(t, t.got))
		}
	}
	if err != nil && outcome != Left {
		a.pool.log.Warn().Str("worker", a.worker.name).Str("model", a.model).Str("outcome", string(outcome)).Err(err).Int("candidates", left).Dur("rests_ms", rest).
			Msg("a worker has not finished: its candidates are done again elsewhere")
	}
}

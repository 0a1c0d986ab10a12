package tts

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/parallel"
)

// Source goes on with candidates on other machines, which compute the bits that this
// one would. It may be used by many searches at once.
type Source interface {
	// Share is how many of the jobs of w are to be done elsewhere, the last of them.
	Share(w *Work) int
	// Generate goes on with the jobs of w and calls done once for each, from any
	// goroutine, with what machines have generated of it: all there is, or less where
	// they fail. It returns soon after ctx has ended, behind the last call.
	Generate(ctx context.Context, w *Work, done func(job int, runs []Run))
	// Checks reports whether a run of a machine is to be computed again.
	Checks(from string) bool
	// Checked says that some of it was, and was right, or what was wrong with it: the
	// machine is given nothing more for a while.
	Checked(from string, wrong error)
}

// Work is candidates to go on with that share a prompt.
type Work struct {
	Prompt     []int32
	Params     sampling.Params   // of all, but for Candidate and MaxTokens; Stop holds what ends an answer
	Delimiters []string          // that end a job with the token that holds one; none: it goes on to its answer's end
	Until      sampling.TokenSet // Params.Stop, and the tokens that hold a delimiter
	Stops      []string          // texts at which a machine may end a job
	Limit      int               // tokens that prompt and completion may have together
	Jobs       []Job
}

// Job is one candidate of a Work.
type Job struct {
	Candidate int     // as in sampling.Params
	Begun     []int32 // its tokens so far, behind the prompt
	MaxTokens int     // to generate at most, at least 1
}

// Run is tokens that one machine has generated for a job, one after the other. Their
// Finish is for the search to find out.
type Run struct {
	From   string // the machine, as the Source calls it
	Tokens []sampling.Token
}

// Ends reports whether a job ends with a token, its n-th.
func (w *Work) Ends(job *Job, id int32, n int) bool {
	return w.finish(job, id, n) != sampling.Unfinished
}

// finish is how the engine would mark a token, the n-th of a job.
func (w *Work) finish(job *Job, id int32, n int) sampling.Finish {
	switch {
	case w.Until.Has(id):
		return sampling.FinishStop
	case n >= job.MaxTokens || len(w.Prompt)+len(job.Begun)+n >= w.Limit:
		return sampling.FinishLength
	}
	return sampling.Unfinished
}

// elsewhere is what a search knows of the machines that work for it.
type elsewhere struct {
	source Source // nil: all is computed here
	wrong  sync.Map
}

// share makes the candidates of this search known to the model's source, if they are
// of a kind that other machines can go on with: what constrains them is known here alone.
func (r *searchRun) share() {
	p := &r.decoding.params
	if p.Constraint == nil && p.TopLogprobs == 0 {
		r.elsewhere.source = r.Model.Source
	}
}

// send has other machines go on with some of beams, the last ones. The others are left
// to this machine. wait returns when the machines have been left.
func (r *searchRun) send(ctx context.Context, beams []*beam) (here []*beam, wait func()) {
	if r.elsewhere.source == nil || len(beams) == 0 {
		return beams, func() {}
	}
	w := r.offer(beams)
	there := min(r.elsewhere.source.Share(w), len(beams))
	if there <= 0 {
		return beams, func() {}
	}
	here, beams = beams[:len(beams)-there], beams[len(beams)-there:]
	w.Jobs = w.Jobs[len(here):]
	ctx, leave := context.WithCancel(ctx)
	got := make([]chan []Run, len(beams))
	for i, b := range beams {
		got[i] = make(chan []Run, 1)
		b.run = r.fetched(ctx, b, w, &w.Jobs[i], got[i])
	}
	left := parallel.Start([]*Work{w}, func(_ int, w *Work) error {
		r.elsewhere.source.Generate(ctx, w, func(i int, runs []Run) { got[i] <- runs })
		return nil
	})
	return here, func() {
		leave()
		_ = left()
	}
}

// offer is beams as a Work.
func (r *searchRun) offer(beams []*beam) *Work {
	b := beams[0]
	w := &Work{Prompt: r.prompt.ids, Params: b.params, Until: b.params.Stop, Stops: slices.Concat(r.req.Stop, r.Model.chatStops(r.req)), Limit: r.Model.Engine.Limit()}
	if w.Params.Stop = r.decoding.ends; !b.whole {
		w.Delimiters = r.plan.Step.Stop
	}
	for _, b := range beams {
		w.Jobs = append(w.Jobs, Job{Candidate: b.params.Candidate, Begun: slices.Clone(b.cand.IDs), MaxTokens: b.params.MaxTokens})
	}
	return w
}

// fetched yields what other machines have generated for b, once they have done with it.
// It ends before the job does where they did not get that far, or are not to be believed:
// b then goes on here.
func (r *searchRun) fetched(ctx context.Context, b *beam, w *Work, job *Job, got <-chan []Run) iter.Seq2[sampling.Token, error] {
	return func(yield func(sampling.Token, error) bool) {
		var runs []Run
		select {
		case runs = <-got:
		case <-ctx.Done():
			yield(sampling.Token{}, ctx.Err())
			return
		}
		n := 0
		for _, run := range runs {
			if !r.believes(ctx, b, w, job, n, run) {
				return
			}
			for _, tok := range run.Tokens {
				n++
				tok.Finish = w.finish(job, tok.ID, n)
				b.seq.Adopt(tok.ID)
				if !yield(tok, nil) || tok.Finish != sampling.Unfinished {
					return
				}
			}
		}
	}
}

// believes reports whether a run, of which n tokens of the job come before it, may be
// taken for what this machine would have generated.
func (r *searchRun) believes(ctx context.Context, b *beam, w *Work, job *Job, n int, run Run) bool {
	if _, wrong := r.elsewhere.wrong.Load(run.From); wrong || len(run.Tokens) == 0 {
		return false
	}
	err := w.check(job, n, run.Tokens, r.Model.Vocab)
	if err == nil && r.elsewhere.source.Checks(run.From) {
		err = r.recompute(ctx, b, run.Tokens)
		if errors.Is(err, errUnchecked) {
			return true
		}
		if err == nil {
			r.elsewhere.source.Checked(run.From, nil)
		}
	}
	if err != nil {
		r.elsewhere.wrong.Store(run.From, true)
		r.elsewhere.source.Checked(run.From, err)
	}
	return err == nil
}

// roundedUp is more than rounding adds to the log-probability of what is certain.
const roundedUp = 1e-3

// check reports tokens that no machine can have generated.
func (w *Work) check(job *Job, n int, tokens []sampling.Token, vocab int) error {
	for i, t := range tokens {
		switch {
		case t.ID < 0 || int(t.ID) >= vocab:
			return fmt.Errorf("tts: token id %d is outside the vocabulary of %d", t.ID, vocab)
		case t.Logprob > roundedUp || t.Logprob != t.Logprob || math.IsNaN(float64(t.Certainty)) || math.IsInf(float64(t.Certainty), 0):
			return fmt.Errorf("tts: the log-probability %v and the certainty %v belong to no token", t.Logprob, t.Certainty)
		case w.Ends(job, t.ID, n+i+1) && i < len(tokens)-1:
			return fmt.Errorf("tts: %d tokens go on behind the end", len(tokens)-1-i)
		}
	}
	return nil
}

// checkedTokens is how many tokens of a run are computed again, from a random place on.
const checkedTokens = 4

// errUnchecked says that tokens could not be computed again: there is no room for
// another sequence, or the search has ended.
var errUnchecked = errors.New("tts: not checked")

// recompute generates some of tokens, which follow those of b, and compares.
func (r *searchRun) recompute(ctx context.Context, b *beam, tokens []sampling.Token) error {
	at := rand.IntN(len(tokens))
	seq, err := r.Model.Engine.OpenBackground(ctx, r.prompt.ids)
	if err != nil {
		return errUnchecked
	}
	defer seq.Close()
	seq.Adopt(b.cand.IDs...)
	for _, t := range tokens[:at] {
		seq.Adopt(t.ID)
	}
	p := b.params
	p.MaxTokens, p.FlushEvery = min(checkedTokens, len(tokens)-at), 0
	for tok, err := range seq.Generate(ctx, p) {
		if err != nil {
			return errUnchecked
		}
		if t := tokens[at]; tok.ID != t.ID || tok.Logprob != t.Logprob || tok.Certainty != t.Certainty {
			return fmt.Errorf("tts: token %d behind %d others is %d with log-probability %v and certainty %v, not %d with %v and %v",
				at, len(r.prompt.ids)+len(b.cand.IDs), tok.ID, tok.Logprob, tok.Certainty, t.ID, t.Logprob, t.Certainty)
		}
		at++
	}
	return nil
}

// chatStops are the texts that end an answer to req, besides its own.
func (m *Model) chatStops(req *Request) []string {
	if req.Prompt.Messages == nil {
		return nil
	}
	return m.Stops
}

// Continued is a candidate of another machine's search, which a choice goes on with.
type Continued struct {
	Candidate int     // its number in the randomness
	Begun     []int32 // its tokens so far
}

// continued opens the choices of req as candidates that have been begun.
func (req *Request) continued(seqs []*batcher.Sequence, params []sampling.Params) {
	for i := range req.Continued {
		params[i].Candidate = req.Continued[i].Candidate
		seqs[i].Adopt(req.Continued[i].Begun...)
	}
}

// checkContinued checks that prompts with their candidates' tokens fit.
func (req *Request) checkContinued(m *Model, prompt int) error {
	for i := range req.Continued {
		if n := prompt + len(req.Continued[i].Begun); n >= m.Context {
			return &ContextError{Limit: m.Context, Prompt: n, Part: PartPrompt}
		}
	}
	return nil
}

package tts

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/parallel"
)

// share makes the candidates of this search known to the model's source, if they are
// of a kind that other machines can go on with: what constrains them, and what probes read of
// states, is known here alone.
func (r *searchRun) share() {
	p := &r.decoding.params
	if p.Constraint == nil && p.TopLogprobs == 0 && !readsStates(r.scorer) {
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
	w.Jobs, w.Pace = w.Jobs[len(here):], r.Model.Engine.Pace(there)
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

// offer returns beams as a Work.
func (r *searchRun) offer(beams []*beam) *Work {
	b := beams[0]
	w := &Work{Prompt: r.prompt.ids, Params: b.params, Until: b.params.Stop, Stops: slices.Concat(r.req.Stop, r.req.chatStops(r.Model)), Limit: r.Model.Engine.Limit()}
	if w.Params.Stop = r.decoding.ends; !b.whole {
		w.Delimiters = r.delimiters()
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

package search

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/tts"
)

// remote has other machines go on with candidates of a search.
type remote struct {
	*searchInput
	source tts.Source // nil: all is computed here
	wrong  sync.Map   // names of machines that have sent wrong tokens
}

// share makes the candidates of this search known to the model's source, if other machines can go on with
// them. Only this one knows constraints, and the states that probes read.
func (m *remote) share() {
	p := &m.decoding.params
	if p.Constraint == nil && p.TopLogprobs == 0 && !readsStates(m.scorer) {
		m.source = m.model.Source
	}
}

// send has other machines go on with some of beams, the last ones. The others are left
// to this machine. wait returns when the machines have been left.
func (m *remote) send(ctx context.Context, beams []*beam) (here []*beam, wait func()) {
	if m.source == nil || len(beams) == 0 {
		return beams, func() {}
	}
	w := m.offer(ctx, beams)
	there := min(m.source.Share(w), len(beams))
	if there <= 0 {
		return beams, func() {}
	}
	here, beams = beams[:len(beams)-there], beams[len(beams)-there:]
	w.Jobs, w.Pace = w.Jobs[len(here):], m.model.Engine.Pace(there)
	ctx, leave := context.WithCancel(ctx)
	got := make([]chan []tts.Run, len(beams))
	for i, b := range beams {
		got[i] = make(chan []tts.Run, 1)
		b.run = m.fetched(ctx, b, w, &w.Jobs[i], got[i])
	}
	left := parallel.Start([]*tts.Work{w}, func(_ int, w *tts.Work) error {
		m.source.Generate(ctx, w, func(i int, runs []tts.Run) { got[i] <- runs })
		return nil
	})
	return here, func() {
		leave()
		_ = left()
	}
}

// offer returns beams as a Work.
func (m *remote) offer(ctx context.Context, beams []*beam) *tts.Work {
	b := beams[0]
	w := &tts.Work{Prompt: m.prompt.ids, Params: b.params, Until: b.params.Stop, Stops: slices.Concat(m.req.Stop, m.req.ChatStops(m.model)), Breakers: m.req.DRYBreakers, Salt: batcher.Salt(ctx), Limit: m.model.Engine.Limit()}
	if w.Params.Stop = m.decoding.ends; !b.whole {
		w.Delimiters = m.delimiters()
	}
	for _, b := range beams {
		w.Jobs = append(w.Jobs, tts.Job{Candidate: b.params.Candidate, Begun: slices.Clone(b.cand.IDs), MaxTokens: b.params.MaxTokens})
	}
	return w
}

// fetched yields what other machines have generated for b, once they have done with it.
// It ends before the job does where they did not get that far, or are not to be believed:
// b then goes on here.
func (m *remote) fetched(ctx context.Context, b *beam, w *tts.Work, job *tts.Job, got <-chan []tts.Run) iter.Seq2[sampling.Token, error] {
	return func(yield func(sampling.Token, error) bool) {
		var runs []tts.Run
		select {
		case runs = <-got:
		case <-ctx.Done():
			yield(sampling.Token{}, ctx.Err())
			return
		}
		n := 0
		for _, run := range runs {
			if !m.believes(ctx, b, w, job, n, run) {
				return
			}
			for _, tok := range run.Tokens {
				n++
				tok.Finish = w.Finish(job, tok.ID, n)
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
func (m *remote) believes(ctx context.Context, b *beam, w *tts.Work, job *tts.Job, n int, run tts.Run) bool {
	if _, wrong := m.wrong.Load(run.From); wrong || len(run.Tokens) == 0 {
		return false
	}
	err := w.Check(job, n, run.Tokens, m.model.Vocab)
	if err == nil && m.source.Checks(run.From) {
		err = m.recompute(ctx, b, run.Tokens)
		if errors.Is(err, errUnchecked) {
			return true
		}
		if err == nil {
			m.source.Checked(run.From, nil)
		}
	}
	if err != nil {
		m.wrong.Store(run.From, true)
		m.source.Checked(run.From, err)
	}
	return err == nil
}

// checkedTokens is the number of tokens of a run that are computed again, from a random place on.
const checkedTokens = 4

// errUnchecked says that tokens could not be computed again: there is no room for
// another sequence, or the search has ended.
var errUnchecked = errors.New("search: not checked")

// recompute generates some of tokens, which follow b's, and compares.
func (m *remote) recompute(ctx context.Context, b *beam, tokens []sampling.Token) error {
	at := rand.IntN(len(tokens))
	seq, err := m.model.Engine.OpenBackground(ctx, m.prompt.ids)
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
			return fmt.Errorf("search: token %d behind %d others is %d with log-probability %v and certainty %v, not %d with %v and %v",
				at, len(m.prompt.ids)+len(b.cand.IDs), tok.ID, tok.Logprob, tok.Certainty, t.ID, t.Logprob, t.Certainty)
		}
		at++
	}
	return nil
}

package search

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/tts"
)

// grower makes the candidates of a search grow: it forks beams, has them generate within the budget
// of tokens, and has them judged.
type grower struct {
	*searchInput
	*stage
	remote    remote
	critic    tts.Critic   // the prompt's judge, where it writes critiques; else nil
	partials  *partials    // are told what candidates gain; nil: nobody wants to know
	observer  observer     // of the method; nil: there is none
	root      *beam        // of the prompt alone, forked into the candidates; nil: there is no room for it any more
	left      int          // tokens that may still be generated
	generated atomic.Int64 // tokens, whatever became of them
	eachToken bool         // tokens are not gathered: any may be a candidate's last
	degraded  atomic.Bool  // for want of room there are fewer candidates
}

// observer looks at candidates while they grow. Many goroutines call it, each with its own candidate.
type observer interface {
	// token takes in the next token of a candidate. It may mark the candidate as Filtered, which ends it.
	token(c *tts.Candidate, tok *sampling.Token)
	// scored takes in a candidate that has been judged.
	scored(c *tts.Candidate)
}

// newBeam makes an empty beam.
func (g *grower) newBeam(seq *batcher.Sequence, judge tts.Judge) *beam {
	return &beam{cand: &tts.Candidate{}, seq: seq, judge: judge, dec: tts.NewDecoder(g.model, g.req), shape: g.newShape(), place: place{node: -1}}
}

// fork returns b and up to n-1 copies of it: fewer when the engines have no
// more room for sequences.
func (g *grower) fork(b *beam, n int) ([]*beam, error) {
	ctx := g.ctx
	if b == g.root { // waits for the prompt, at most until the work's end
		ctx = g.work
	}
	beams := []*beam{b}
	seqs, err := halveWhileBusy(n-1, func(n int) ([]*batcher.Sequence, error) { return b.seq.Fork(ctx, n) })
	if err != nil {
		return nil, err
	}
	judges, err := halveWhileBusy(len(seqs), func(n int) ([]tts.Judge, error) { return b.judge.Fork(ctx, n) })
	for i, seq := range seqs {
		if i < len(judges) {
			beams = append(beams, b.copyTo(seq, judges[i]))
		} else {
			seq.Close()
		}
	}
	if len(beams) < n {
		g.degraded.Store(true)
	}
	return beams, err
}

// fits returns how many of n beams the whole KV pool can hold at once, when they
// share shared tokens after the prompt and each adds own ones. It depends on
// the search alone, not on what else is running: between requests the engine
// divides the pool.
func (g *grower) fits(n, shared, own int) int {
	st := g.model.Engine.Stats()
	each := own/st.BlockLen + 2 // a begun block at either end
	room := max(1, (st.Blocks-(len(g.prompt.ids)+shared)/st.BlockLen)/each)
	if room < n {
		g.degraded.Store(true)
	}
	return min(n, room)
}

// forkRoot returns n copies of the prompt's beam, or fewer when there is no room. With keep
// the root stays for others, if there is room for a copy beside it; else it is nil.
func (g *grower) forkRoot(n int, keep bool) ([]*beam, error) {
	if keep {
		n++
	}
	beams, err := g.fork(g.root, n)
	switch {
	case err != nil:
		return nil, err
	case keep && len(beams) > 1:
		return beams[1:], nil
	}
	g.root = nil
	return beams, nil
}

// halveWhileBusy asks for n, then for half as many while the engine is too busy for that.
func halveWhileBusy[T any](n int, ask func(n int) ([]T, error)) ([]T, error) {
	for ; n > 0; n /= 2 {
		got, err := ask(n)
		if !errors.Is(err, batcher.ErrBusy) {
			return got, err
		}
	}
	return nil, nil
}

// tokensPerWake is the number of tokens that a beam takes in at once, few enough for a budget of time to
// end the work in time.
const tokensPerWake = 16

// begin makes beams ready to be extended, each to the end of its solution step
// or, with whole set, to its own end. Their places among the search's beams begin
// at first; they are part of the randomness.
func (g *grower) begin(beams []*beam, first int, whole bool) {
	for i, b := range beams {
		b.limit = len(b.cand.IDs) + g.plan.Step.MaxTokens
		p := g.decoding.params
		p.Candidate, p.Temperature, p.Logprobs, p.Stop = first+i, g.temperature, true, g.decoding.breaks
		if b.whole = whole; whole {
			b.limit, p.Stop = g.longest(), g.decoding.ends
		}
		if len(g.req.Stop) == 0 && g.partials == nil && !g.eachToken && g.plan.Deadline == 0 { // else each token may be the last, or is to be shown
			p.FlushEvery = tokensPerWake
		}
		b.limit = min(b.limit, g.longest())
		b.step, b.stepTokens, b.params = b.step[:0], 0, p
	}
	if g.partials != nil {
		g.partials.begin(beams, first)
	}
}

// longest returns how many tokens a candidate may have.
func (g *grower) longest() int {
	if m := g.req.Sampling.MaxTokens; m > 0 {
		return m
	}
	return math.MaxInt
}

// extend lets beams generate until each has ended, and calls done for each as it
// ends. When the budget of tokens is spent, it leaves the others paused.
//
// What is left of the budget is granted in equal shares, and what the beams
// that end have not used is shared out again when all others have used theirs.
// So where the budget ends depends on the beams' tokens, not on their speed.
func (g *grower) extend(ctx context.Context, beams []*beam, done func(b *beam) error) error {
	ctx, end := g.traced(ctx, "search step", len(beams))
	defer end()
	ctx, cancel := context.WithCancelCause(ctx) // the first error ends all
	defer cancel(nil)
	for _, b := range beams {
		b.paused = true
	}
	for len(beams) > 0 && g.left > 0 && ctx.Err() == nil {
		granted := g.share(beams)
		leave := g.startAll(ctx, granted)
		before := 0
		for _, b := range granted {
			before += len(b.cand.IDs)
		}
		err := parallel.Each(granted, func(_ int, b *beam) (err error) {
			defer func() {
				if err != nil {
					cancel(err)
				}
			}()
			if err := g.generate(ctx, b); err != nil || b.paused {
				return err
			}
			return done(b)
		})
		leave()
		if err != nil {
			return err
		}
		for _, b := range granted {
			g.left -= len(b.cand.IDs)
		}
		g.left += before
		beams = slices.DeleteFunc(slices.Clone(beams), func(b *beam) bool { return !b.paused })
	}
	return nil
}

// share grants beams what is left of the budget, and returns those for which
// there is anything.
func (g *grower) share(beams []*beam) []*beam {
	n, extra := g.left/len(beams), g.left%len(beams)
	for i, b := range beams {
		b.granted = len(b.cand.IDs) + min(n, b.limit-len(b.cand.IDs))
		if i < extra && b.granted < b.limit {
			b.granted++
		}
	}
	if n == 0 {
		return beams[:extra]
	}
	return beams
}

// startAll starts the generation of beams: here in one step of the engine, and on other
// machines, which leave ends.
func (g *grower) startAll(ctx context.Context, beams []*beam) (leave func()) {
	for _, b := range beams {
		b.params.MaxTokens = b.granted - len(b.cand.IDs)
	}
	beams, leave = g.remote.send(ctx, beams)
	seqs := make([]*batcher.Sequence, len(beams))
	params := make([]sampling.Params, len(beams))
	for i, b := range beams {
		seqs[i], params[i] = b.seq, b.params
	}
	for i, run := range batcher.GenerateAll(ctx, seqs, params) {
		beams[i].run = run
	}
	return leave
}

// generate reads what startAll has started. When ctx ends because the search
// does, b stays as it is.
func (g *grower) generate(ctx context.Context, b *beam) error {
	defer func() { b.cand.Text = string(b.text) }()
	b.paused = false
	for run := b.run; ; run = b.seq.Generate(ctx, b.params) {
		for tok, err := range run {
			if err != nil {
				return g.dropIfEnded(ctx, err)
			}
			g.take(b, tok)
			if b.cand.Finish != "" || b.cand.Filtered || !b.whole && g.breaksAfter(b, tok.ID) {
				return nil
			}
			if n := len(b.cand.IDs); n >= b.granted {
				if n >= b.limit && !b.whole && b.shape.calling() {
					b.limit = g.longest()
				}
				b.paused = n < b.limit
				return nil
			}
		}
		b.params.MaxTokens = b.granted - len(b.cand.IDs) // a blank line has ended the run, or other machines have
	}
}

// take adds a token to b.
func (g *grower) take(b *beam, tok sampling.Token) {
	c := b.cand
	c.IDs = append(c.IDs, tok.ID)
	g.generated.Add(1)
	// The engine ends generations at solution steps too, where the answer goes on.
	full := g.req.Sampling.MaxTokens > 0 && len(c.IDs) >= g.req.Sampling.MaxTokens || b.seq.Len() >= g.model.Engine.Limit()
	switch {
	case tok.Finish == sampling.FinishStop && !g.decoding.ends.Has(tok.ID):
		tok.Finish = sampling.Unfinished
		if full {
			tok.Finish = sampling.FinishLength
		}
	case tok.Finish == sampling.FinishLength && !full:
		tok.Finish = sampling.Unfinished
	}
	c.Readings.Add(&tok)
	b.logprobs += float64(tok.Logprob)
	b.certainty += float64(tok.Certainty)
	c.Logprob = float32(b.logprobs / float64(len(c.IDs)))
	c.Certainty = float32(b.certainty / float64(len(c.IDs)))
	if g.observer != nil {
		g.observer.token(c, &tok)
	}
	gained, end := b.dec.Push(tok)
	written, listed := len(b.text), len(c.Tokens)
	b.text = append(b.text, gained.Text...)
	b.step = append(b.step, g.model.Tokenizer.Piece(tok.ID)...)
	b.stepTokens++
	c.Tokens = append(c.Tokens, gained.Tokens...)
	c.Finish = end.Finish
	if b.shape != nil && !b.whole {
		b.shape.push(gained.Text)
		if at, over := b.shape.over(b.text); over && c.Finish == "" {
			c.Finish, b.text, c.Tokens = tts.FinishStop, b.text[:max(at, written)], c.Tokens[:listed]
		}
	}
	g.note(b)
}

// score judges what b has gained.
func (g *grower) score(ctx context.Context, b *beam) error {
	err := b.judge.Score(ctx, b.cand)
	switch {
	case errors.Is(err, batcher.ErrTooLong): // longer than the verifier reads: its scores so far stand
		err = nil
	case errors.Is(err, batcher.ErrBusy): // likewise when it has no room
		g.degraded.Store(true)
		err = nil
	}
	if g.observer != nil {
		g.observer.scored(b.cand)
	}
	if s := b.cand.StepScores; len(s) > 0 {
		b.cand.Score = g.plan.Aggregate.Of(s)
		g.note(b)
	}
	if err != nil {
		return g.dropIfEnded(ctx, err)
	}
	return nil
}

// scoreAll judges what beams have gained, but for those within whose solution step the budget has
// ended.
func (g *grower) scoreAll(beams []*beam) error {
	g.shareCritiques(len(beams))
	ctx, end := g.traced(g.work, "verifier", len(beams))
	defer end()
	return parallel.Each(beams, func(_ int, b *beam) error {
		if b.paused {
			return nil
		}
		return g.score(ctx, b)
	})
}

// shareCritiques divides the critiques' remaining tokens among n judgements to come. The tokens written before
// do not depend on the judgements' speed, so their shares do not either.
func (g *grower) shareCritiques(n int) {
	if g.critic != nil && n > 0 {
		_, spent := g.critic.Written()
		g.critic.Grant(max(0, g.plan.Judge.TotalTokens-spent) / n)
	}
}

package search

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// searchRun is one execution of a search: what it works on, what grows its candidates, what they
// have become, and who reports it. Its method (method.go) decides what grows when.
type searchRun struct {
	*searchInput
	*stage
	grow   grower
	tree   searchTree
	report reporter
}

// searchInput holds what a search works on. It does not change while candidates grow, but for
// settings of the plan that a method finds on the way.
type searchInput struct {
	resolvedPlan
	model    *tts.Model
	req      *tts.Request
	ctx      context.Context    // the request's
	work     context.Context    // ends with the budget of time too
	stop     context.CancelFunc // ends work
	prompt   promptState
	decoding decoding
}

// promptState is the request's prompt as the candidates share it.
type promptState struct {
	ids      []int32           // its tokens
	begun    string            // of the answer, in the prompt
	thinking bool              // it ends in a thought
	seq      *batcher.Sequence // computes the prompt
	judge    tts.Judge         // likewise
}

// decoding holds the settings by which every candidate is sampled.
type decoding struct {
	params sampling.Params
	ends   sampling.TokenSet // tokens that end an answer
	breaks sampling.TokenSet // those, and tokens that end a solution step
}

// The reasons for which a search ends its own work.
var (
	errDecided  = errors.New("search: decided")
	errTime     = errors.New("search: budget of time spent")
	errDeadline = errors.New("search: the deadline has come")
	errLeft     = errors.New("search: the reader has left")
)

// timed bounds the work of a search that began at begun. free releases what that takes.
func (s *Search) timed(in *searchInput, begun time.Time) (free func()) {
	work, end := context.WithTimeoutCause(in.ctx, in.plan.Budget.Time, errTime)
	in.work, in.stop = work, end
	if in.plan.Deadline == 0 {
		return end
	}
	in.work, in.stop = context.WithDeadlineCause(work, s.ends(begun, &in.plan), errDeadline)
	return func() { in.stop(); end() }
}

// newSearchRun begins a search whose prompt seq computes and judge reads.
func newSearchRun(in *searchInput, yield func(tts.Event, error) bool) *searchRun {
	r := &searchRun{searchInput: in, stage: &stage{does: in.plan.Method}}
	r.report = reporter{run: r, yield: yield, shownNode: -1}
	r.tree = searchTree{searchInput: in, beams: map[*tts.Candidate]*beam{}}
	r.grow = grower{searchInput: in, stage: r.stage, left: in.plan.Budget.Tokens, remote: remote{searchInput: in}}
	r.grow.critic, _ = in.prompt.judge.(tts.Critic)
	if in.plan.Include.Partial {
		r.report.partials = &partials{due: time.NewTimer(partialInterval)}
		r.grow.partials = r.report.partials
	}
	r.grow.root = r.grow.newBeam(in.prompt.seq, in.prompt.judge)
	return r
}

// close gives back what the run itself holds.
func (r *searchRun) close() {
	if p := r.report.partials; p != nil {
		p.due.Stop()
	}
}

// delimiters are texts after which, but not within a token, a solution step may end.
func (in *searchInput) delimiters() []string {
	if in.plan.Step.Members {
		return append(slices.Clip(in.plan.Step.Stop), ",")
	}
	return in.plan.Step.Stop
}

// read finds the answer in a candidate's text, or the calls of tools that it ends in. What it
// thinks on the way is neither.
func (in *searchInput) read(c *tts.Candidate, written string) {
	said := in.model.ThoughtMarks().Answer(in.prompt.begun+written, in.prompt.thinking)
	if in.req.Calling != nil {
		if calls, ok := in.req.Calling.Read(said); ok {
			c.Answer, c.Key, c.Calls = calls, "\x00"+calls, true // no text has that key
			return
		}
	}
	if a, ok := in.reader.Read(said); ok {
		c.Answer, c.Key = a.Text, a.Key
	}
}

// dropIfEnded drops an error that the end of the search has caused.
func (in *searchInput) dropIfEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && in.ctx.Err() == nil {
		return nil
	}
	return err
}

// stage says what a search is doing.
type stage struct {
	does  scaling.Method // the plan's, or for Auto the one that it has chosen
	steps int            // solution steps so far
}

// traced begins a span of a search whose request is traced, until end is called. Of other
// requests it costs a look at the context.
func (s *stage) traced(ctx context.Context, name string, candidates int) (_ context.Context, end func()) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, func() {}
	}
	ctx, span := parent.TracerProvider().Tracer("github.com/lutra-lm/lutra/tts").Start(ctx, name, trace.WithAttributes(
		attribute.String("lutra.search.method", string(s.does)),
		attribute.Int("lutra.search.step", s.steps),
		attribute.Int("lutra.search.candidates", candidates)))
	return ctx, func() { span.End() }
}

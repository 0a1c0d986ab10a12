package server

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// generation is a checked request for text.
type generation struct {
	model    *registry.Model
	name     string               // of the model as the client calls it
	preset   *scaling.Plan        // that the name asks for; nil: none
	requests []*tts.Request       // one a prompt; choice i of prompt p is choice p*n+i of the answer
	search   *tts.Search          // nil: each choice is one sample
	report   *openai.SearchReport // what the answer says of the searches; nil: nothing
	calling  *tts.Calling         // calls of tools are apart from the answer; nil: there are none
	thinking bool                 // thinking is apart from the answer
	hidden   bool                 // thinking is not sent at all
	echo     string               // that every choice begins with
	stream   bool
	usage    bool // a stream ends with it, as the client asks
	receipt  receiptState
	shape    shape
}

// shape writes answers the way one endpoint does. It may keep state between a
// stream's chunks.
type shape interface {
	Open(first tts.Delta)                                           // takes in what a run's first delta says
	Whole(p *jsonwrite.Reply, choices []tts.Delta, usage tts.Usage) // writes an answer; each choice is one delta
	Begin(choice int) any                                           // the chunk that opens a choice; nil: none
	Chunk(d tts.Delta) any                                          // the chunk for reasoning, for text or for an end; nil: none
	KeepAlive() any                                                 // a chunk that adds nothing, but may say where a search stands
	End(usage tts.Usage) any                                        // the chunk with the usage; nil: none
	Lines() bool                                                    // a stream is lines of JSON in place of events
	Done() any                                                      // what ends a stream, even one that failed; nil: nothing
}

// keeper is a shape that keeps what an answer gains, in the order in which it comes.
// Whole is given no text.
type keeper interface {
	shape
	Add(d *tts.Delta) // takes in a part of an answer that is not streamed
}

// gathered is a choice's deltas so far.
type gathered struct {
	text, reasoning strings.Builder
	calls           []toolcall.Call
	tokens          []tts.Token
	finish          tts.Finish
	stop            string
	timing          tts.Timing
}

// add takes in one more.
func (g *gathered) add(d *tts.Delta) {
	g.text.WriteString(d.Text)
	g.reasoning.WriteString(d.Reasoning)
	g.tokens = append(g.tokens, d.Tokens...)
	for i := range d.Calls {
		g.calls = toolcall.Join(g.calls, &d.Calls[i])
	}
	if d.Finish != "" {
		g.finish, g.stop, g.timing = d.Finish, d.Stop, d.Timing
	}
}

// whole is all of a choice as one delta.
func (g *gathered) whole(choice int) tts.Delta {
	return tts.Delta{Choice: choice, Text: g.text.String(), Reasoning: g.reasoning.String(), Calls: g.calls, Tokens: g.tokens, Finish: g.finish, Stop: g.stop, Timing: g.timing}
}

// generate answers g.
func (s *Server) generate(w http.ResponseWriter, r *http.Request, g *generation) error {
	rec := recordOf(r.Context())
	rec.Model, rec.strategy = g.model.Name, "single"
	rec.N, rec.MaxTokens = g.requests[0].N, g.requests[0].Sampling.MaxTokens
	if g.search != nil {
		rec.strategy = g.search.Plan.String()
		if g.report != nil {
			w.Header().Set(openai.ScalingApplied, rec.strategy)
		}
	}
	if unheld := g.requests[0].Unheld; len(unheld) > 0 { // which all of them share
		w.Header().Set(openai.Warning, openai.Unheld(unheld))
	}
	if err := rec.lease.Grow(g.upFront()); err != nil {
		return err
	}
	for _, req := range g.requests {
		req.Background = g.choices() > interactiveChoices || req.Continued != nil
	}
	ended := false
	defer func() {
		tokens := rec.Usage.Prompt + rec.Usage.Completion
		if !ended { // whoever leaves a search early pays for what was under way
			tokens += rec.Usage.Cancelled
		}
		rec.key.Spend(time.Now(), tokens)
	}()

	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	deltas := g.observed(ctx, g.run(ctx), rec)
	if g.stream {
		err := s.stream(w, g, deltas, rec, cancel)
		ended = err == nil && rec.err == nil
		return err
	}
	gather := make([]gathered, g.choices())
	growth := growth{lease: rec.lease, token: g.receipt.perToken()}
	keeper, keeps := g.shape.(keeper)
	for d, err := range deltas {
		if err == nil {
			err = growth.add(&d, true)
		}
		if err != nil {
			return err
		}
		if keeps {
			keeper.Add(&d)
		} else {
			gather[d.Choice].add(&d)
		}
		g.report.Update(&d)
	}
	ended = true
	choices := make([]tts.Delta, len(gather))
	for i := range choices {
		choices[i] = gather[i].whole(i)
	}
	s.reply(ctx, w, func(p *jsonwrite.Reply) { g.shape.Whole(p, choices, rec.Usage) })
	return nil
}

// interactiveChoices is how many choices an interactive request may have. One with
// more is a search in all but name, and must not make others wait.
const interactiveChoices = 8

// countedAtOnce is about how many bytes of an answer are counted together.
const countedAtOnce = 64 << 10

// growth counts the bytes of an answer that gathers.
type growth struct {
	lease     *admission.Lease
	token     int64 // bytes that a receipt holds of a token
	uncounted int64
}

// add counts a delta, and its text if that is kept. Errors: those of Lease.Grow.
func (c *growth) add(d *tts.Delta, text bool) error {
	if text {
		c.uncounted += held(d)
	}
	if c.uncounted += c.token * int64(d.Usage.Completion); c.uncounted <= countedAtOnce {
		return nil
	}
	n := c.uncounted
	c.uncounted = 0
	return c.lease.Grow(n)
}

// held is about how many bytes a delta holds in an answer that gathers.
func held(d *tts.Delta) int64 {
	n := 2 * int64(len(d.Text)+len(d.Reasoning))
	for i := range d.Calls {
		n += 128 + 4*int64(len(d.Calls[i].Arguments))
	}
	for i := range d.Tokens {
		n += tokenBytes(len(d.Tokens[i].Top))
	}
	return n
}

// tokenBytes is about how many bytes a token holds whose log-probability is sent,
// with so many alternatives.
func tokenBytes(top int) int64 { return 128 + 48*int64(top) }

// upFront is about how many bytes an answer is known to hold from the beginning: its
// choices, the log-probabilities of an echoed prompt, the candidates of searches.
func (g *generation) upFront() int64 {
	n := perChoice * int64(g.choices())
	for _, req := range g.requests {
		token := int64(16)
		if req.Sampling.Logprobs {
			token = tokenBytes(req.Sampling.TopLogprobs)
		}
		limit := int64(g.model.Context)
		if req.Echo {
			n += token * int64(req.N) * min(limit, int64(len(req.Prompt.Text)+len(req.Prompt.Tokens)))
		}
		if g.search != nil {
			if m := int64(req.Sampling.MaxTokens); m > 0 {
				limit = min(limit, m)
			}
			n += token * min(int64(g.search.Plan.Budget.Tokens), limit*int64(max(g.search.Plan.N, batcher.Tile)))
		}
	}
	return n
}

// answerTime is a context that ends when a whole answer has taken too long.
func (s *Server) answerTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.opt.RequestTimeout > 0 {
		return context.WithTimeout(ctx, s.opt.RequestTimeout)
	}
	return context.WithCancel(ctx)
}

// choices is the number of choices in the answer.
func (g *generation) choices() int { return len(g.requests) * g.requests[0].N }

// candidatesAtOnce bounds the candidates that the searches of one request decode at
// once.
const candidatesAtOnce = 64

// run answers all prompts at once, or as many searches at a time as
// candidatesAtOnce allows.
func (g *generation) run(ctx context.Context) iter.Seq2[tts.Delta, error] {
	var strategy tts.Strategy = tts.Single{Model: g.model.Model}
	if g.search != nil {
		strategy = g.search
	}
	if g.echo != "" {
		strategy = echoing{strategy, g.echo}
	}
	if g.thinking {
		strategy = tts.Thinking{Strategy: strategy}
	}
	if g.calling != nil {
		g.calling.Strategy = strategy
		strategy = g.calling
	}
	running := make(chan struct{}, g.atOnce())
	sources := make([]func(context.Context) iter.Seq2[tts.Delta, error], len(g.requests))
	for p, req := range g.requests {
		sources[p] = func(ctx context.Context) iter.Seq2[tts.Delta, error] {
			return func(yield func(tts.Delta, error) bool) {
				select {
				case running <- struct{}{}:
				case <-ctx.Done():
					return
				}
				defer func() { <-running }()
				for d, err := range strategy.Run(ctx, req) {
					d.Choice += p * req.N
					if !yield(d, err) {
						return
					}
				}
			}
		}
	}
	return tts.Interleave(ctx, sources...)
}

// echoing is a strategy with a text before every choice.
type echoing struct {
	tts.Strategy
	text string
}

// Run implements tts.Strategy.
func (e echoing) Run(ctx context.Context, req *tts.Request) iter.Seq2[tts.Delta, error] {
	return func(yield func(tts.Delta, error) bool) {
		begun := false
		for d, err := range e.Strategy.Run(ctx, req) {
			opens := !begun && err == nil
			if begun = true; opens {
				d.Thinking, d.Midway = false, false // its text begins with the prompt
			}
			if !yield(d, err) {
				return
			}
			for i := range req.N {
				if opens && !yield(tts.Delta{Choice: i, Text: e.text}, nil) {
					return
				}
			}
		}
	}
}

// atOnce is the number of prompts that are answered at a time.
func (g *generation) atOnce() int {
	if g.search == nil {
		return len(g.requests)
	}
	return max(1, candidatesAtOnce/g.search.Plan.N)
}

// observed notes in rec what passes. An error that follows from the context's end
// becomes the cause of that end.
func (g *generation) observed(ctx context.Context, deltas iter.Seq2[tts.Delta, error], rec *record) iter.Seq2[tts.Delta, error] {
	return func(yield func(tts.Delta, error) bool) {
		tokens := make([]int, g.choices())
		for d, err := range deltas {
			if err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if d.Usage.Prompt > 0 {
				g.shape.Open(d)
			}
			if g.hidden {
				d.Reasoning = ""
			}
			g.receipt.builder.Update(&d)
			rec.Usage.Add(d.Usage)
			if d.Outcome != nil {
				rec.Searches = append(rec.Searches, d.Outcome)
				for _, c := range d.Outcome.Choices {
					rec.Longest = max(rec.Longest, len(c.IDs))
				}
			}
			if g.search == nil {
				tokens[d.Choice] += d.Usage.Completion
				rec.Longest = max(rec.Longest, tokens[d.Choice])
			}
			// A search spends tokens long before its reader gets any.
			if d.Usage.Completion > 0 && g.search == nil || d.Text+d.Reasoning != "" && g.search != nil {
				rec.Last = time.Now()
				if rec.First.IsZero() {
					rec.First = rec.Last
				}
			}
			if d.Finish != "" && d.Choice == 0 {
				rec.Finish, rec.Timing = d.Finish, d.Timing
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// trace logs what the client sent, at the only level where prompts are shown.
func (s *Server) trace(r *http.Request, g *generation) {
	e := s.log.Trace()
	if !e.Enabled() {
		return
	}
	prompts := make([]tts.Prompt, len(g.requests))
	for i, req := range g.requests {
		prompts[i] = req.Prompt
	}
	e.Str("id", recordOf(r.Context()).id).Interface("prompts", prompts).Msg("prompt")
}

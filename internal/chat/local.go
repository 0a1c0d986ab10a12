package chat

import (
	"context"
	"fmt"
	"slices"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/constrain"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// local answers with a model in this process, one answer at a time.
type local struct {
	cfg           config.Config // Models: all that Use knows by name
	verifiers     []config.Verifier
	log           zerolog.Logger
	model         config.Model // in use
	withVerifiers bool         // its verifiers are loaded
	r             *engines.Runtime
	get           config.Getter
	loading       Loading
	stop          func() error // ends the engines and closes r
}

// Loading is told how many bytes of a model's file have been read, and when the reading
// has ended.
type Loading interface {
	Show(model string, done, total int64)
	End()
}

// NewLocal loads the first of the configured models, and the verifiers if search is set, until ctx
// ends. get downloads models that are not on this machine, when they are used; shown shows what is
// loaded.
func NewLocal(ctx context.Context, cfg config.Config, log zerolog.Logger, get config.Getter, shown Loading, search bool) (Answerer, error) {
	l := &local{cfg: cfg, verifiers: cfg.Verifiers, log: log, get: get, loading: shown}
	if err := l.load(ctx, cfg.Models[0], search); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *local) CanSearch(plan string) error { return checkPlan(plan, l.cfg.Search.Limits) }

// load loads a model, and the verifiers if withVerifiers is set. The former model is closed
// after the new one is loaded.
func (l *local) load(ctx context.Context, m config.Model, withVerifiers bool) error {
	cfg := l.cfg
	cfg.Partial = len(cfg.Models) > 1
	cfg.Models, cfg.Verifiers = []config.Model{m}, nil
	if withVerifiers {
		cfg.Verifiers = slices.Clone(l.verifiers)
	}
	if err := cfg.Get(ctx, l.get); err != nil {
		return err
	}
	r, err := engines.New(ctx, cfg, l.log, engines.Watcher{Loading: l.loading.Show})
	l.loading.End()
	if err != nil {
		return err
	}
	if err = r.Writes(); err == nil {
		err = r.Adapt()
	}
	if err != nil {
		r.Close()
		return err
	}
	err = l.Close()
	l.model, l.withVerifiers, l.r, l.stop = m, withVerifiers, r, engines.Start(context.Background(), r)
	return err
}

func (l *local) Close() error {
	if l.stop == nil {
		return nil
	}
	stop := l.stop
	l.stop = nil
	return stop()
}

// Models returns the configured models, then the embedded ones.
func (l *local) Models(context.Context) ([]string, error) {
	var names []string
	for _, m := range l.cfg.Models {
		names = append(names, m.APIName())
	}
	for _, e := range embedded.Models() {
		if e.Role == embedded.Generator && !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
	}
	return names, nil
}

// Use loads a model by its name, also one of the hub, or a GGUF file.
func (l *local) Use(ctx context.Context, name string) error {
	i := slices.IndexFunc(l.cfg.Models, func(m config.Model) bool { return m.APIName() == name })
	if i >= 0 {
		return l.load(ctx, l.cfg.Models[i], l.withVerifiers)
	}
	return l.load(ctx, config.ModelNamed(name), l.withVerifiers)
}

func (l *local) About() (name, words string) {
	shape := l.r.Hosts[0].Bundle.Model.Config()
	words = fmt.Sprintf("%s, %s, a context of %d tokens", shape.Arch, output.Bytes(shape.Bytes), l.r.Hosts[0].Model.Context)
	if l.model.Embedded != "" {
		words = "a small demonstration that solves short arithmetic stories, and nothing else"
	}
	return l.model.APIName(), words
}

func (l *local) Answer(ctx context.Context, o *Options, conversation []Message, emit func(Piece) error) (done Answered, err error) {
	if o.Scaling != "" && !l.withVerifiers {
		if err := l.load(ctx, l.model, true); err != nil {
			return done, err
		}
	}
	strategy, err := o.strategy(l.r, l.cfg.Search.Limits)
	if err != nil {
		return done, err
	}
	req, err := l.request(ctx, o, conversation)
	if err != nil {
		return done, err
	}
	done.Model = l.model.APIName()
	var spent tts.Usage
	var calls []toolcall.Call
	for e, err := range tts.Filtered(strategy.Run(ctx, req), l.r.Hosts[0].Model.Apart(req.Calling, 1)...) {
		if err != nil {
			return done, err
		}
		spent.Count(e)
		switch w := e.What.(type) {
		case tts.Opening:
			done.Dropped = w.Dropped
		case tts.Reasoning:
			err = emit(Piece{Thought: string(w)})
		case tts.Text:
			if w.Text != "" {
				err = emit(Piece{Text: w.Text})
			}
		case tts.Calls:
			for i := range w {
				calls = toolcall.Join(calls, &w[i])
			}
		case tts.End:
			if e.Choice == 0 {
				done.Finish = string(w.Finish)
			}
		case *tts.Outcome:
			done.Search = outcome(w, o.Candidates)
		}
		if err != nil {
			return done, err
		}
	}
	for _, c := range calls {
		done.Calls = append(done.Calls, newCall(c.ID, c.Name, c.Arguments))
	}
	done.Usage = Usage{Prompt: spent.Prompt, Completion: spent.Completion, Verifier: spent.Verifier, Critiques: spent.Critiques}
	return done, nil
}

// request makes what the model in use is asked.
func (l *local) request(ctx context.Context, o *Options, conversation []Message) (*tts.Request, error) {
	m := l.r.Hosts[0].Model
	req := &tts.Request{Prompt: tts.Prompt{Truncate: true}, Stop: o.Stop, Repetition: loops}
	if o.Thinking != nil {
		if !m.ThinkingSwitches() {
			return nil, fmt.Errorf("the chat template of %s cannot switch thinking on or off", m.Name)
		}
		req.Prompt.SwitchThinking(*o.Thinking)
	}
	for _, said := range conversation {
		one := template.Message{Role: said.Role, Content: said.Content, ToolCallID: said.CallID}
		if len(said.Calls) > 0 {
			one.ToolCalls = said.Calls
		}
		req.Prompt.Messages = append(req.Prompt.Messages, one)
	}
	req.Sampling = sampling.Params{MaxTokens: o.most(), Seed: o.Seed}
	if l.sampled(o).Apply(&req.Sampling); o.Scaling == "" {
		m.Guard(&req.Sampling, o.Sampling)
	}
	if o.Schema != nil {
		format, err := m.Formats.Format(ctx, constrain.Schema, string(o.Schema))
		if err != nil {
			return nil, fmt.Errorf("the schema: %w", err)
		}
		req.Format, req.JSON = format, true
	}
	if len(o.Tools) == 0 {
		return req, nil
	}
	for _, t := range o.Tools {
		req.Prompt.Tools = append(req.Prompt.Tools, t.Definition)
	}
	known, fault := toolcall.Definitions(req.Prompt.Tools)
	if fault != nil {
		return nil, fmt.Errorf("tools[%d].function%s: %s", fault.Index, fault.Field, fault.Message)
	}
	return req, (&tts.Calling{Format: m.ToolFormat(), Tools: known}).Hold(ctx, req, m, false, "")
}

// sampled returns how the model in use samples its answers.
func (l *local) sampled(o *Options) sampling.Config {
	switch m := l.r.Hosts[0].Model; {
	case o.Scaling != "":
		return o.Sampling.Or(tts.SearchDefaults())
	case l.model.Embedded != "":
		return o.Sampling.Or(m.Sampling).Or(o.builtIn())
	default:
		return o.Sampling.Or(m.Defaults(sampling.Config{}))
	}
}

func (l *local) Greedy(o *Options) bool {
	t := l.sampled(o).Temperature
	return t != nil && *t == 0
}

// outcome describes what a search here came to, with its candidates if they are wanted.
func outcome(o *tts.Outcome, candidates bool) *Search {
	s := &Search{Method: string(o.Method), N: o.N, StopReason: string(o.Reason), Agreement: o.Agreement}
	if o.Method.Beams() {
		s.Width = o.Plan.Width
	}
	for _, c := range o.Choices[:min(1, len(o.Choices))] {
		s.Score = finite(c.Score)
	}
	if !candidates {
		return s
	}
	for _, c := range o.Candidates {
		s.Candidates = append(s.Candidates, Candidate{
			Text: c.Text, Answer: c.Answer, Score: finite(c.Score), Votes: c.Votes, Tokens: len(c.IDs), Finish: string(c.Finish),
			Chosen: slices.Contains(o.Choices, c),
		})
	}
	return s
}

// finite returns x as JSON can have it.
func finite(x float32) float64 {
	if x-x != 0 {
		return 0
	}
	return float64(x)
}

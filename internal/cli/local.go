package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts"
)

// local answers with a model loaded here, one at a time.
type local struct {
	cfg    config.Config // Models are all that can be used
	judges []config.Verifier
	log    zerolog.Logger
	model  config.Model // in use
	judged bool         // its verifiers are loaded
	r      *engines.Runtime
	stop   func() error // ends the engines and closes r
}

// newLocal loads the first of the configured models, with its verifiers if
// answers are to be searched for.
func newLocal(cfg config.Config, log zerolog.Logger, search bool) (answerer, error) {
	l := &local{cfg: cfg, judges: cfg.Verifiers, log: log}
	return l, l.load(cfg.Models[0], search)
}

func (l *local) canSearch(plan string) error { return checkPlan(plan, l.cfg.Search) }

// load takes a model in use, with its verifiers where answers are searched for.
// The former one goes when the new one is there.
func (l *local) load(m config.Model, judged bool) error {
	cfg := l.cfg
	cfg.Models, cfg.Verifiers = []config.Model{m}, nil
	if judged {
		cfg.Verifiers = l.judges
	}
	r, err := engines.New(cfg, l.log, engines.Watcher{})
	if err != nil {
		return err
	}
	err = l.close()
	l.model, l.judged, l.r, l.stop = m, judged, r, engines.Start(context.Background(), r)
	return err
}

func (l *local) close() error {
	if l.stop == nil {
		return nil
	}
	stop := l.stop
	l.stop = nil
	return stop()
}

// models are the configured ones, then those in the binary.
func (l *local) models(context.Context) ([]string, error) {
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

// use loads a model by its name, or a GGUF file.
func (l *local) use(_ context.Context, name string) error {
	i := slices.IndexFunc(l.cfg.Models, func(m config.Model) bool { return m.APIName() == name })
	if i >= 0 {
		return l.load(l.cfg.Models[i], l.judged)
	}
	m := config.Model{Path: name}
	if config.IsEmbedded(name) {
		m = config.Model{Embedded: name}
	}
	return l.load(m, l.judged)
}

func (l *local) about() (name, words string) {
	shape := l.r.Hosts[0].Bundle.Model.Config()
	words = fmt.Sprintf("%s, %s, a context of %d tokens", shape.Arch, output.Bytes(shape.Bytes), l.r.Hosts[0].Model.Context)
	if l.model.Embedded != "" {
		words = "a small demonstration that solves short arithmetic stories, and nothing else"
	}
	return l.model.APIName(), words
}

func (l *local) answer(ctx context.Context, o *askOptions, conversation []message, emit func(string) error) (done answered, err error) {
	if o.scaling != "" && !l.judged {
		if err := l.load(l.model, true); err != nil {
			return done, err
		}
	}
	strategy, err := o.strategy(l.r, l.cfg.Search)
	if err != nil {
		return done, err
	}
	req := &tts.Request{Prompt: tts.Prompt{Truncate: true}}
	for _, m := range conversation {
		req.Prompt.Messages = append(req.Prompt.Messages, template.Message{Role: m.role, Content: m.content})
	}
	req.Sampling.Temperature = o.samplingTemperature()
	req.Sampling.TopP = o.topP
	req.Sampling.MaxTokens = o.maxTokens
	req.Sampling.Seed = o.seed
	for d, err := range strategy.Run(ctx, req) {
		if err != nil {
			return done, err
		}
		done.dropped += d.Dropped
		if d.Choice == 0 && d.Finish == tts.FinishLength {
			done.cut = true
		}
		if d.Text == "" {
			continue
		}
		if err := emit(d.Text); err != nil {
			return done, err
		}
	}
	return done, nil
}

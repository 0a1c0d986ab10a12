package engines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf/parts"
	"github.com/lutra-lm/lutra/models/huggingface"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/embed"
	"github.com/lutra-lm/lutra/tts/reward"
)

// load loads the configured models, drafts and verifiers, until ctx ends.
func (r *Runtime) load(ctx context.Context, cfg config.Config) error {
	if r.watch.Loading != nil { // all of them, before the first
		for _, name := range cfg.Names() {
			r.watch.Loading(name, 0, 0)
		}
	}
	for _, m := range cfg.Models {
		h, err := r.loadHost(ctx, cfg, m)
		if err == nil {
			r.Hosts = append(r.Hosts, h)
			err = h.giveTask()
		}
		if err != nil {
			return fmt.Errorf("model %s: %w", m.APIName(), err)
		}
	}
	for _, v := range cfg.Verifiers {
		p, err := r.openProbe(v)
		switch {
		case err != nil:
		case p != nil:
			r.probes = append(r.probes, p)
		default:
			err = r.loadVerifier(ctx, cfg, v)
		}
		if err != nil {
			return fmt.Errorf("verifier %s: %w", v.Model().APIName(), err)
		}
	}
	return checkProbes(r)
}

// giveTask makes what a model does that answers requests of its own.
func (h *Host) giveTask() (err error) {
	switch h.Bundle.Task() {
	case models.TaskEmbed:
		h.Embed, err = embed.NewEmbedder(h.Model)
		h.Rank = h.Embed
	case models.TaskRank:
		h.Rank, err = embed.NewRanker(h.Model, h.Bundle.Rerank, h.Bundle.Classifier)
	case models.TaskReward:
		err = errors.New("a reward model scores text and cannot be asked; serve a generator, and this one as a verifier")
	}
	return err
}

// loadHost loads a model and its draft model. The caller closes the host.
func (l *loader) loadHost(ctx context.Context, cfg config.Config, m config.Model) (*Host, error) {
	start := time.Now()
	m.Backend = cfg.BackendOf(m)
	bundle, err := l.loadBundle(ctx, cfg, m)
	if err != nil {
		return nil, err
	}
	bundle.Name = m.APIName()
	h := &Host{Config: m, Bundle: bundle, took: time.Since(start), Served: registry.Served{Model: tts.NewModel(bundle, nil), Aliases: m.Aliases, Demo: m.Embedded != ""}}
	h.Model.Formats.Share(l.Formats)
	author, vain := sampling.FromFile(bundle.Sampling)
	h.Model.SampleAs(m.Published.Or(author), m.Sampling, h.Demo)
	for _, w := range slices.Concat(bundle.Warnings, vain, m.Warnings) {
		l.log.Warn().Str("model", bundle.Name).Msg(w)
	}
	if err := h.Model.CallsUnclear(); err != nil {
		l.log.Warn().Str("model", bundle.Name).Err(err).Msg("the chat template does not show how the model calls tools: calls are read in the most usual form, Hermes'")
	}
	if err := h.loadAdapters(ctx); err != nil {
		return nil, errors.Join(err, l.close(h))
	}
	if d, ok := cfg.DraftOf(m); ok {
		d.Backend = cfg.BackendOf(d)
		draft, err := l.loadBundle(ctx, cfg, d)
		if err == nil {
			h.draft, draft.Name = draft, d.APIName()
			err = drafts(draft, bundle)
		}
		if err != nil {
			return nil, errors.Join(draftError(d, bundle, err), l.close(h))
		}
	}
	return h, nil
}

// loadVerifier loads a reward model. One that cannot read the text of any model is
// closed again: the embedded one knows the vocabulary of the embedded models alone.
func (r *Runtime) loadVerifier(ctx context.Context, cfg config.Config, v config.Verifier) error {
	h, err := r.loadHost(ctx, cfg, v.Model())
	if err != nil {
		return err
	}
	format, err := v.FormatFor(h.Bundle.Verifier)
	if err == nil {
		h.Reward, err = reward.New(h.Model, format)
	}
	if err != nil {
		return errors.Join(err, r.close(h))
	}
	if !slices.ContainsFunc(r.Hosts, func(g *Host) bool { return h.Reward.Reads(g.Model) }) {
		r.log.Info().Str("verifier", h.Bundle.Name).Msg("not used: the models have other vocabularies")
		return r.close(h)
	}
	r.verifiers = append(r.verifiers, h)
	return nil
}

// loadBundle reads a file or an embedded model, and reports progress.
func (l *loader) loadBundle(ctx context.Context, cfg config.Config, m config.Model) (*models.Bundle, error) {
	experts, err := cfg.Experts.Bytes()
	if err != nil {
		return nil, fmt.Errorf("experts.memory: %w", err)
	}
	key := KeyOf(m)
	if b := l.shelf.find(key, m.Context); b != nil {
		l.tell(m, 1, 1)
		return b, nil
	}
	p := fileProgress{log: l.log.With().Str("model", m.APIName()).Logger(), now: time.Now}
	if m.Path != "" {
		p.begin(m.Path, sizeOf(m.Path))
	}
	var before int64
	opt := models.LoadOptions{Pool: l.Pool, Packing: m.Packing, Context: m.Context, Metadata: m.Overrides(), Interrupt: Until(ctx), Progress: func(done, total int64) {
		p.update(done, total)
		l.read, before = l.read+done-before, done
		l.tell(m, done, total)
	}}
	if opt.ExpertMemory = experts; experts == 0 && m.Backend == config.CPU {
		opt.WeightMemory = max(1, l.room(l.promised()))
	}
	b, err := LoadBundle(m, l.cfg.Hexagon, opt)
	if err != nil {
		return nil, err
	}
	return l.shelf.put(key, b), nil
}

// tell tells how much of a model has been read.
func (l *loader) tell(m config.Model, done, total int64) {
	switch {
	case l.adding != nil:
		l.adding(done, total)
	case l.watch.Loading != nil:
		l.watch.Loading(m.APIName(), done, total)
	}
}

// Until returns a models.LoadOptions.Interrupt that ends the loading with ctx.
func Until(ctx context.Context) func() error {
	return func() error { return context.Cause(ctx) }
}

// sizeOf returns how many bytes a model's files have, all its parts.
func sizeOf(path string) (size int64) {
	files := []string{path}
	if n, split := parts.Parse(path); split {
		files = n.All()
	} else if huggingface.Is(path) {
		files, _ = filepath.Glob(filepath.Join(path, "*.safetensors")) // an error: a name of odd characters
	}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil { // what cannot be read is an error soon
			size += info.Size()
		}
	}
	return size
}

// LoadBundle reads a file or an embedded model.
func LoadBundle(m config.Model, h config.Hexagon, opt models.LoadOptions) (*models.Bundle, error) {
	return LoadOn(m.Backend, h, opt, func(opt models.LoadOptions) (*models.Bundle, error) {
		if m.Embedded == "" {
			if err := config.CheckModelFile(m.Path); err != nil {
				return nil, err
			}
			return models.Load(m.Path, opt)
		}
		f, err := embedded.Open(m.Embedded)
		if err != nil {
			return nil, err
		}
		return models.LoadFile(f, opt)
	})
}

// fileProgress logs the progress of loading a file.
type fileProgress struct {
	log  zerolog.Logger
	now  func() time.Time
	last time.Time // logged; zero: there is no file
}

// logEvery is the least time between two lines about a file.
const logEvery = 5 * time.Second

func (p *fileProgress) begin(path string, size int64) {
	p.last = p.now()
	p.log.Info().Str("path", path).Str("size", output.Bytes(size)).Msg("loading")
}

func (p *fileProgress) update(done, total int64) {
	now := p.now()
	if p.last.IsZero() || done >= total || now.Sub(p.last) < logEvery {
		return
	}
	p.last = now
	p.log.Info().Int("percent", int(100*float64(done)/float64(total))).Msg("loading")
}

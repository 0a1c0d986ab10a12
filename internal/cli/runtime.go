package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/tts"
)

// host is one loaded model with the engine that runs it.
type host struct {
	bundle  *models.Bundle
	draft   *models.Bundle // that drafts for it; nil: none
	engine  *batcher.Engine
	model   *tts.Model
	reward  *tts.Reward // of a verifier
	aliases []string

	embedded bool // the model is built into the program
}

// runtime is everything that computes: models and engines over one worker pool.
type runtime struct {
	pool   *kernels.Pool
	turns  *batcher.Turns
	hosts  []*host // of generators
	judges []*host // of verifiers
	caches []*models.KVCache
	log    zerolog.Logger
}

// contextsKept bounds what "auto" KV memory grows to: this many full contexts
// at once are more than a CPU serves.
const contextsKept = 64

// committedAhead is for how many more tokens than were ever kept at once memory
// is made ready while the models run.
const committedAhead = 4096

// newRuntime loads the configured models. onStep, if any, observes each model's
// steps. The caller closes the runtime.
func newRuntime(cfg Config, log zerolog.Logger, onStep func(model string) func(batcher.StepStats)) (*runtime, error) {
	r := &runtime{pool: newPool(cfg.Threads), turns: batcher.NewTurns(), log: log}
	if cfg.KernelTimes {
		r.pool.Meter().Enable()
	}
	for _, m := range cfg.Models {
		h, err := r.load(cfg, m, onStep)
		if err == nil {
			r.hosts = append(r.hosts, h)
			if h.model.Outputs != h.model.Vocab {
				err = errors.New("a reward model scores text and cannot be asked; serve a generator, and this one as a verifier")
			}
		}
		if err != nil {
			r.Close()
			return nil, fmt.Errorf("model %s: %w", m.apiName(), err)
		}
	}
	for _, v := range cfg.Verifiers {
		if err := r.loadVerifier(cfg, v, onStep); err != nil {
			r.Close()
			return nil, fmt.Errorf("verifier %s: %w", v.model().apiName(), err)
		}
	}
	return r, nil
}

// load makes a model ready to run. The host is the caller's to close.
func (r *runtime) load(cfg Config, m ModelConfig, onStep func(string) func(batcher.StepStats)) (*host, error) {
	start := time.Now()
	bundle, err := loadBundle(m, models.LoadOptions{Pool: r.pool, Packing: m.Packing, Context: m.Context})
	if err != nil {
		return nil, err
	}
	h := &host{bundle: bundle, aliases: m.Aliases, embedded: m.Embedded != ""}
	bundle.Name = m.apiName()
	for _, w := range bundle.Warnings {
		r.log.Warn().Str("model", bundle.Name).Msg(w)
	}
	shape := bundle.Model.Config()
	opt := cfg.Engine.Options
	opt.Context = shape.Context
	kv, err := newKV(cfg, shape, &opt.Context)
	if err != nil {
		return nil, errors.Join(err, bundle.Close())
	}
	if opt.Context < shape.Context {
		if m.Context > 0 {
			return nil, errors.Join(fmt.Errorf("kv.memory: there is room for %d tokens, fewer than the context of %d that is configured", opt.Context, m.Context), bundle.Close())
		}
		r.log.Warn().Str("model", bundle.Name).Int("context", opt.Context).Int("model_context", shape.Context).
			Msg("the KV cache has no room for the model's whole context; raise kv.memory")
	}
	r.caches = append(r.caches, kv)
	opt.Pool, opt.Turns = r.pool, r.turns
	if d, ok := cfg.draftOf(m); ok {
		if h.draft, opt.Drafters, err = r.loadDrafters(cfg, d, bundle); err != nil {
			return nil, errors.Join(err, bundle.Close())
		}
	}
	if onStep != nil {
		opt.OnStep = onStep(bundle.Name)
	}
	h.engine = batcher.New(bundle.Model, kv, opt)
	h.model = tts.NewModel(bundle, h.engine)
	r.log.Info().Str("model", bundle.Name).Str("arch", shape.Arch).Str("packing", shape.Packings).
		Str("weights", byteSize(shape.Bytes)).Int("context", opt.Context).Int("kv_tokens", kv.Blocks()*kv.BlockLen()).
		Stringer("kernels", kernels.ActiveISA()).Int("threads", r.pool.Threads()).
		Dur("took_ms", time.Since(start)).Msg("model loaded")
	return h, nil
}

// loadDrafters makes what guesses for a model with the help of another, which is
// the caller's to close.
func (r *runtime) loadDrafters(cfg Config, d ModelConfig, target *models.Bundle) (*models.Bundle, []batcher.Drafter, error) {
	draft, err := loadDraft(d, r.pool, target)
	if err != nil {
		return nil, nil, err
	}
	shape := draft.Model.Config()
	kv, err := newKV(cfg, shape, &shape.Context)
	if err != nil {
		return nil, nil, errors.Join(err, draft.Close())
	}
	r.caches = append(r.caches, kv)
	r.log.Info().Str("model", target.Name).Str("draft", d.apiName()).Str("weights", byteSize(shape.Bytes)).
		Int("kv_tokens", kv.Blocks()*kv.BlockLen()).Msg("draft model loaded")
	return draft, drafters(draft, kv, r.pool), nil
}

// newKV sizes a model's cache. A context that the memory cannot hold once is
// shortened to what fits.
func newKV(cfg Config, shape models.Config, contextLen *int) (*models.KVCache, error) {
	kind, err := models.ParseKVType(cfg.KV.Type)
	if err != nil {
		return nil, err
	}
	opt := models.KVOptions{Type: kind, BlockLen: cfg.KV.Block, Cold: !cfg.KV.Prefix}
	perBlock := models.KVBytesPerBlock(shape, opt)
	oneContext := (*contextLen + opt.BlockLen - 1) / opt.BlockLen
	budget, err := cfg.KV.bytes()
	if err != nil {
		return nil, err
	}
	if budget > 0 {
		opt.Blocks = int(budget / perBlock)
	} else {
		share := freeMemory() / 4 / int64(cfg.caches())
		opt.Blocks = int(min(share/perBlock, int64(contextsKept*oneContext)))
	}
	if opt.Blocks < 1 {
		return nil, fmt.Errorf("kv.memory: %s do not hold one block of %d tokens (%s)", byteSize(budget), opt.BlockLen, byteSize(perBlock))
	}
	*contextLen = min(*contextLen, opt.Blocks*opt.BlockLen)
	return models.NewKVCache(shape, opt)
}

// Run steps all engines until ctx ends or one of them fails.
func (r *runtime) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, h := range r.all() {
		g.Go(func() error {
			if err := h.engine.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				return fmt.Errorf("engine of %s: %w", h.bundle.Name, err)
			}
			return nil
		})
	}
	for _, kv := range r.caches {
		g.Go(func() error {
			kv.CommitAhead(ctx, committedAhead)
			return nil
		})
	}
	return g.Wait()
}

// caches is the number of KV caches that share the memory.
func (c *Config) caches() int {
	n := len(c.Models) + len(c.Verifiers)
	for _, m := range c.Models {
		if _, ok := c.draftOf(m); ok {
			n++
		}
	}
	return n
}

// close gives back the files of a host.
func (h *host) close() error {
	err := h.bundle.Close()
	if h.draft != nil {
		err = errors.Join(err, h.draft.Close())
	}
	return err
}

func (r *runtime) all() []*host { return slices.Concat(r.hosts, r.judges) }

// Close releases the models and stops the workers. Run must have returned.
func (r *runtime) Close() {
	for _, kv := range r.caches {
		if err := kv.Close(); err != nil {
			r.log.Warn().Err(err).Msg("closing")
		}
	}
	for _, h := range r.all() {
		if err := h.close(); err != nil {
			r.log.Warn().Err(err).Str("model", h.bundle.Name).Msg("closing")
		}
	}
	r.pool.Close()
}

// loadBundle reads a file or an embedded model.
func loadBundle(m ModelConfig, opt models.LoadOptions) (*models.Bundle, error) {
	if m.Embedded == "" {
		if err := modelFile(m.Path); err != nil {
			return nil, err
		}
		return models.Load(m.Path, opt)
	}
	f, err := embedded.Open(m.Embedded)
	if err != nil {
		return nil, err
	}
	return models.LoadFile(f, opt)
}

// defaultModels are the embedded generators, the default first.
func defaultModels() []ModelConfig {
	var list []ModelConfig
	for _, e := range embedded.Models() {
		if e.Role == embedded.Generator {
			list = append(list, ModelConfig{Embedded: e.Name})
		}
	}
	return list
}

func embeddedNames() []string {
	var names []string
	for _, e := range embedded.Models() {
		names = append(names, e.Name)
	}
	return names
}

func isEmbedded(name string) bool { return slices.Contains(embeddedNames(), name) }

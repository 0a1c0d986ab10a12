package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/memory"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/reward"
)

// host is one loaded model with the engine that runs it.
type host struct {
	config config.Model
	bundle *models.Bundle
	draft  *models.Bundle // that drafts for it; nil: none
	caches []*kv.Cache
	engine *batcher.Engine
	model  *tts.Model
	took   time.Duration  // to load bundle
	format reward.Format  // of a verifier
	reward *reward.Scorer // likewise
}

// runtime is everything that computes: models and engines over one worker pool.
type runtime struct {
	pool    *pool.Pool
	arbiter *batcher.StepArbiter
	hosts   []*host // of generators
	judges  []*host // of verifiers
	log     zerolog.Logger
	watch   watcher
	free    func() int64 // bytes of memory that can be had
}

// watcher is told what a runtime does; each may be nil.
type watcher struct {
	// loading is told how many bytes of a model have been read.
	loading func(model string, done, total int64)
	// steps makes what a model's engine calls after each step.
	steps func(model string) func(batcher.StepStats)
}

// committedAhead is for how many more tokens than were ever kept at once memory
// is made ready while the models run.
const committedAhead = 4096

// newRuntime loads the configured models, then divides the memory that they
// leave among their caches and makes the engines. The caller closes the runtime.
func newRuntime(cfg config.Config, log zerolog.Logger, watch watcher) (*runtime, error) {
	pool, err := newPool(cfg.Threads)
	if err != nil {
		return nil, err
	}
	r := &runtime{pool: pool, arbiter: batcher.NewStepArbiter(), log: log, watch: watch, free: memory.Free}
	if cfg.KernelTimes {
		r.pool.Meter().Enable()
	}
	if err = r.load(cfg); err == nil {
		debug.FreeOSMemory() // what the files were read into
		err = r.makeEngines(cfg)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// makeEngines makes caches and engines for what has been loaded.
func (r *runtime) makeEngines(cfg config.Config) error {
	n := 0
	for _, h := range r.all() {
		n += len(h.bundles())
	}
	share := r.free() / kvShare / int64(max(1, n))
	for _, h := range r.all() {
		if err := r.makeEngine(cfg, h, share); err != nil {
			return fmt.Errorf("model %s: %w", h.bundle.Name, err)
		}
	}
	return nil
}

// makeEngine makes a model's caches, of up to share bytes each where the
// configuration does not say how many, and its engine.
func (r *runtime) makeEngine(cfg config.Config, h *host, share int64) error {
	opt := cfg.Engine.Options
	opt.Pool, opt.Arbiter, opt.Name = r.pool, r.arbiter, h.bundle.Name
	opt.OnDraftError = func(err error) {
		r.log.Error().Err(err).Str("model", opt.Name).Msg("the draft model has failed; answers go on without it")
	}
	for _, b := range h.bundles() {
		cache, err := newKV(cfg.KV, b.Model.Config(), share)
		if err != nil {
			return err
		}
		h.caches = append(h.caches, cache)
	}
	cache := h.caches[0]
	if h.draft != nil {
		opt.Drafters = drafters(h.draft, h.caches[1], r.pool)
	}
	if r.watch.steps != nil {
		opt.OnStep = r.watch.steps(opt.Name)
	}
	h.engine = batcher.New(h.bundle.Model, cache, opt)
	h.model = tts.NewModel(h.bundle, h.engine)
	shape := h.bundle.Model.Config()
	if room := h.engine.Limit(); room < shape.Context {
		if h.config.Context > 0 {
			return fmt.Errorf("kv.memory: there is room for %d tokens, fewer than the context of %d that is configured", room, h.config.Context)
		}
		r.log.Warn().Str("model", opt.Name).Int("context", room).Int("model_context", shape.Context).
			Msg("the KV cache has no room for the model's whole context; raise kv.memory")
	}
	r.log.Info().Str("model", opt.Name).Str("arch", shape.Arch).Str("packing", shape.Packings).
		Str("weights", output.Bytes(shape.Bytes)).Int("context", h.engine.Limit()).Int("kv_tokens", cache.Blocks()*cache.BlockLen()).
		Stringer("kernels", cpu.Active()).Int("threads", r.pool.Threads()).Dur("took_ms", h.took).Msg("model loaded")
	if h.draft != nil {
		r.log.Info().Str("model", opt.Name).Str("draft", h.draft.Name).Str("weights", output.Bytes(h.draft.Model.Config().Bytes)).
			Int("kv_tokens", h.caches[1].Blocks()*h.caches[1].BlockLen()).Msg("draft model loaded")
	}
	if h.format.Name == "" {
		return nil
	}
	var err error
	h.reward, err = reward.New(h.model, h.format)
	return err
}

// Run steps all engines until ctx ends. A model whose engine fails is left out
// from then on; only what may have harmed the others ends them all.
func (r *runtime) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, h := range r.all() {
		g.Go(func() error {
			err := h.engine.Run(ctx)
			if err == nil {
				return nil
			}
			if errors.Is(err, batcher.ErrPanic) {
				return err
			}
			r.log.Error().Err(err).Str("model", h.bundle.Name).Msg("the model has failed and answers no more requests; the others go on. Restart to load it again")
			<-ctx.Done()
			return nil
		})
		for _, cache := range h.caches {
			g.Go(func() error {
				cache.CommitAhead(ctx, committedAhead)
				return nil
			})
		}
	}
	return g.Wait()
}

func (r *runtime) all() []*host { return slices.Concat(r.hosts, r.judges) }

// bundles are the model's and that of its draft.
func (h *host) bundles() []*models.Bundle {
	if h.draft == nil {
		return []*models.Bundle{h.bundle}
	}
	return []*models.Bundle{h.bundle, h.draft}
}

// close gives back the files and the memory of a host.
func (h *host) close() error {
	var errs []error
	for _, cache := range h.caches {
		errs = append(errs, cache.Close())
	}
	for _, b := range h.bundles() {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// Close releases the models and stops the workers. Run must have returned.
func (r *runtime) Close() {
	for _, h := range r.all() {
		if err := h.close(); err != nil {
			r.log.Warn().Err(err).Str("model", h.bundle.Name).Msg("closing")
		}
	}
	r.pool.Close()
}

// verifiers are those that can judge what a model writes, the default first.
func (r *runtime) verifiers(m *tts.Model) tts.Verifiers {
	return reward.VerifiersFor(m, func(yield func(string, *reward.Scorer) bool) {
		for _, h := range r.judges {
			if !yield(h.bundle.Name, h.reward) {
				return
			}
		}
	})
}

// withRuntime loads the models, runs their engines beside f and takes all down.
func withRuntime(ctx context.Context, cfg config.Config, log zerolog.Logger, f func(context.Context, *runtime) error) error {
	cfg.Warn(log)
	r, err := newRuntime(cfg, log, watcher{})
	if err != nil {
		return err
	}
	stop := startEngines(ctx, r)
	return errors.Join(f(ctx, r), stop())
}

// startEngines runs a runtime until stop is called, which closes it.
func startEngines(ctx context.Context, r *runtime) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx) }()
	return func() error {
		defer r.Close()
		cancel()
		return <-ran
	}
}

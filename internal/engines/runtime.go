// Package engines loads the configured models and makes what runs them: one pool
// of workers, and for each model its caches and its engine.
//
//	New: load all ──▶ divide the memory that is left ──▶ caches, engines
//	Run: all engines step until the context ends
package engines

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/memory"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/kv/offload"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/probe"
	"github.com/lutra-lm/lutra/tts/reward"
	"github.com/lutra-lm/lutra/tts/structure"
)

// loader reads models, each file once, and frees them.
type loader struct {
	Pool    *pool.Pool
	Formats *structure.Cache
	shelf   *shelf
	cfg     config.Config
	log     zerolog.Logger
	watch   Watcher
	adding  func(done, total int64)    // Add's; nil: Watcher.Loading
	read    int64                      // bytes of models that were read, into memory that has served
	room    func(promised int64) int64 // memory.ForWeights
}

// Runtime is everything that computes: models and engines over one worker pool. Models may come
// and go while it runs, one at a time.
type Runtime struct {
	loader
	arbiter *batcher.StepArbiter
	folder  *offload.Folder // of blocks; nil: there is none
	free    func() int64    // bytes of memory that are free

	mu        sync.Mutex // guards what follows
	Hosts     []*Host    // generators, and models that make vectors or score documents
	verifiers []*Host    // reward models
	probes    []*probe.Probe
	steps     *steps // nil: the engines do not step
}

// Watcher holds callbacks about what a runtime does. Each may be nil.
type Watcher struct {
	// Loading gets how many bytes of a model have been read.
	Loading func(model string, done, total int64)
	// Steps makes the function that a model's engine calls after each step.
	Steps func(model string) func(batcher.StepStats)
	// Cache makes the observer of the cache of a model that is no verifier.
	Cache func(model string) kv.Observer
	// Probe returns what a model's engine reads of its states, in place of what probes want.
	Probe func(shape *models.Config) *models.Probe
	// Model may put something before a model, to see what its engine has it compute.
	Model func(name string, m models.Model) models.Model
}

// committedAhead is the number of tokens for which caches commit memory before it is
// needed.
const committedAhead = 4096

// muchRead is so many bytes of models that what they were read into goes back to the
// system at once: that takes a collection of the whole heap.
const muchRead = 128 << 20

// New loads the configured models, divides the memory that is left among their caches
// and makes the engines. The end of ctx ends the loading, and frees what was loaded:
// the error is its cause. The caller closes the runtime.
func New(ctx context.Context, cfg config.Config, log zerolog.Logger, watch Watcher) (*Runtime, error) {
	formats, err := cfg.Formats.Options()
	if err != nil {
		return nil, fmt.Errorf("formats.%w", err)
	}
	pool, err := NewPool(cfg.Threads)
	if err != nil {
		return nil, err
	}
	load := loader{Pool: pool, Formats: structure.NewCache(formats), shelf: newShelf(), cfg: cfg, log: log, watch: watch, room: memory.ForWeights}
	r := &Runtime{loader: load, arbiter: batcher.NewStepArbiter(), free: memory.Free}
	if cfg.KV.Disk.Path != "" {
		r.folder = offload.NewFolder(cfg.KV.Disk, log)
	}
	if cfg.KernelTimes {
		r.Pool.Meter().Enable()
	}
	if err = r.load(ctx, cfg); err == nil {
		r.settle()
		err = r.makeEngines(cfg)
	}
	if err != nil {
		r.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return r, nil
}

// settle gives what files were read into back to the system.
func (l *loader) settle() {
	if l.read > muchRead {
		debug.FreeOSMemory()
	}
	l.read = 0
}

// makeEngines makes caches and engines for what has been loaded.
func (r *Runtime) makeEngines(cfg config.Config) error {
	n := 0
	for _, h := range r.All() {
		n += len(h.bundles())
	}
	room := max(0, r.free()-r.promised())
	if limit, err := cfg.Loading.Bytes(); err == nil && limit > 0 {
		room = max(0, min(room, limit-r.Taken()))
	}
	share := room / kvShare / int64(max(1, n))
	for _, h := range r.All() {
		if err := r.makeEngine(cfg, h, share, room); err != nil {
			return fmt.Errorf("model %s: %w", h.Bundle.Name, err)
		}
	}
	return nil
}

// promised returns memory that experts will have taken once they have been wanted.
func (l *loader) promised() (bytes int64) {
	l.shelf.each(func(b *models.Bundle) {
		if st, ok := b.Experts(); ok {
			bytes += st.Bytes
		}
	})
	return bytes
}

// makeEngine makes a model's engine and its caches, of up to share bytes each if the configuration does not set their
// size. If a share holds too little, they may take more of the room.
func (r *Runtime) makeEngine(cfg config.Config, h *Host, share, room int64) error {
	opt := cfg.Engine.Options
	opt.Pool, opt.Arbiter, opt.Name = r.Pool, r.arbiter, h.Bundle.Name
	opt.Control = func(id int32) bool { return !h.Bundle.Tokenizer.Plain(id) }
	opt.OnDraftError = func(err error) {
		r.log.Error().Err(err).Str("model", opt.Name).Msg("the draft model has failed; answers go on without it")
	}
	opt.OnFault = func(err error) {
		r.log.Error().Err(err).Str("model", opt.Name).Msg("the model's device has failed: its requests end, and the CPU computes those to come")
	}
	if err := speculates(opt.Speculation, h.Bundle); err != nil {
		return err
	}
	for _, b := range h.bundles() {
		cache, err := newKV(cfg.KV, speculating(b.Model.Config(), opt.Speculation), opt.StepTokens, share, room)
		if err != nil {
			return err
		}
		h.caches = append(h.caches, cache)
	}
	cache := h.caches[0]
	if r.watch.Cache != nil && h.Reward == nil {
		h.observer = r.watch.Cache(opt.Name)
		cache.Observe(h.observer)
	}
	h.attachDisk(r.folder, &opt, r.log)
	var drafting *kv.Cache
	if h.draft != nil {
		drafting = h.caches[1]
	}
	predicting, err := PredictorKV(h.Bundle, cache, opt.Speculation)
	if err != nil {
		return err
	}
	if predicting != nil {
		h.caches = append(h.caches, predicting)
	}
	opt.Drafters = Drafters(h.Bundle, h.draft, drafting, predicting, r.Pool)
	if r.watch.Steps != nil {
		opt.OnStep = r.watch.Steps(opt.Name)
	}
	r.attachProbes(h, &opt)
	model := h.Bundle.Model
	if r.watch.Model != nil {
		model = r.watch.Model(opt.Name, model)
	}
	h.Model.Run(batcher.New(model, cache, opt))
	for _, b := range h.bundles() {
		h.buffers += buffers(b.Model.Config(), &opt)
	}
	shape := h.Bundle.Model.Config()
	if room := h.Model.Context; room < shape.Context {
		if h.Config.Context > 0 {
			return fmt.Errorf("kv.memory: there is room for %d tokens, fewer than the configured context of %d", room, h.Config.Context)
		}
		r.log.Warn().Str("model", opt.Name).Int("context", room).Int("model_context", shape.Context).
			Msg("the KV cache has no room for the model's whole context; raise kv.memory")
	}
	r.log.Info().Str("model", opt.Name).Str("arch", shape.Arch).Str("packing", shape.Packings).
		Str("weights", output.Bytes(shape.Bytes)).Int("context", h.Model.Context).Int("kv_tokens", cache.Blocks()*cache.BlockLen()).
		Stringer("kernels", cpu.Active()).Int("threads", r.Pool.Threads()).Dur("took_ms", h.took).Msg("model loaded")
	if st, ok := h.Bundle.Experts(); ok {
		r.log.Info().Str("model", opt.Name).Int64("experts", st.Experts).Int64("in_memory", st.Room).Str("memory", output.Bytes(st.Bytes)).
			Msg("experts that do not fit into experts.memory are read from the file when they are wanted")
	}
	logBackend(r, h)
	if h.draft != nil {
		r.log.Info().Str("model", opt.Name).Str("draft", h.draft.Name).Str("weights", output.Bytes(h.draft.Model.Config().Bytes)).
			Int("kv_tokens", h.caches[1].Blocks()*h.caches[1].BlockLen()).Msg("draft model loaded")
	}
	return nil
}

// Writes fails if a model that is no verifier writes no text.
func (r *Runtime) Writes() error {
	for _, h := range r.Hosts {
		if h.Bundle.Task() != models.TaskGenerate {
			return fmt.Errorf("model %s: it writes no text; lutra serve answers with what it does", h.Bundle.Name)
		}
	}
	return nil
}

// Close releases the models and stops the workers. Run must have returned.
func (r *Runtime) Close() {
	for _, h := range r.All() {
		if err := r.close(h); err != nil {
			r.log.Warn().Err(err).Str("model", h.Bundle.Name).Msg("closing")
		}
	}
	r.Pool.Close()
}

// Verifiers returns the verifiers that can score a model's text, the default first.
func (r *Runtime) Verifiers(m *tts.Model) tts.Verifiers {
	v := reward.VerifiersFor(m, func(yield func(string, *reward.Scorer) bool) {
		for _, h := range r.verifiers {
			if !yield(h.Bundle.Name, h.Reward) {
				return
			}
		}
	})
	v.Add(r.cfg.Search.Scorers())
	return v
}

// With loads the models, runs their engines while f runs, and closes everything.
func With(ctx context.Context, cfg config.Config, log zerolog.Logger, f func(context.Context, *Runtime) error) error {
	return WithWatcher(ctx, cfg, log, Watcher{}, f)
}

// WithWatcher does what With does, and calls w.
func WithWatcher(ctx context.Context, cfg config.Config, log zerolog.Logger, w Watcher, f func(context.Context, *Runtime) error) error {
	cfg.Warn(log)
	r, err := New(ctx, cfg, log, w)
	if err != nil {
		return err
	}
	stop := Start(ctx, r)
	return errors.Join(f(ctx, r), stop())
}

// Start runs the engines until stop is called, which closes the runtime.
func Start(ctx context.Context, r *Runtime) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx) }()
	return func() error {
		defer r.Close()
		cancel()
		return <-ran
	}
}

package engines

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/kv/offload"
	"github.com/lutra-lm/lutra/server/registry"
)

// Host is one loaded model, as it is served, with the engine that runs it.
type Host struct {
	registry.Served
	Config config.Model
	Bundle *models.Bundle

	adapters []*models.Adapter // of Bundle
	draft    *models.Bundle    // that drafts for it; nil: none
	caches   []*kv.Cache
	took     time.Duration  // to load Bundle
	stop     func()         // ends its engine, and waits for that; nil: it does not run
	observer kv.Observer    // of its cache; nil: nobody
	disk     *offload.Store // of its cache; nil: nothing is in files
	buffers  int64          // bytes that its engine needs besides
}

// steps runs the engines.
type steps struct {
	ctx   context.Context
	group *errgroup.Group
}

// Run steps all engines until ctx ends, also engines of models that Add loads meanwhile. A model whose
// engine fails answers no more. Only a panic, which may have harmed the others, ends them all.
func (r *Runtime) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		<-ctx.Done()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.steps = nil // nothing starts any more
		return nil
	})
	r.mu.Lock()
	r.steps = &steps{ctx, g}
	for _, h := range r.all() {
		r.start(h)
	}
	r.mu.Unlock()
	return g.Wait()
}

// start has a model's engine step, if the runtime runs. It needs mu.
func (r *Runtime) start(h *Host) {
	if r.steps == nil {
		return
	}
	ctx, cancel := context.WithCancel(r.steps.ctx)
	stopped := make(chan struct{})
	h.stop = func() {
		cancel()
		<-stopped
	}
	r.steps.group.Go(parallel.Guard(func() error {
		defer close(stopped)
		var committing parallel.Group
		for _, cache := range h.caches {
			committing.Go(func() { cache.CommitAhead(ctx, committedAhead) })
		}
		defer committing.Wait()
		defer cancel()
		err := h.Engine.Run(ctx)
		if err == nil || errors.Is(err, batcher.ErrPanic) {
			return err
		}
		r.log.Error().Err(err).Str("model", h.Bundle.Name).Msg("the model has failed and answers no more requests; the others go on. Restart to load it again")
		<-ctx.Done()
		return nil
	}))
}

// Add loads one more model, until ctx ends, and has its engine step. Its caches get the memory
// that is left. progress is told how many bytes have been read, of how many.
func (r *Runtime) Add(ctx context.Context, m config.Model, progress func(done, total int64)) (*Host, error) {
	r.adding = progress
	defer func() { r.adding = nil }()
	h, err := r.loadHost(ctx, r.cfg, m)
	if err != nil {
		return nil, err
	}
	r.settle()
	err = parallel.Try(func() error {
		if err := h.giveTask(); err != nil {
			return err
		}
		room := r.Room()
		return r.makeEngine(r.cfg, h, room/kvShare/int64(len(h.bundles())), room)
	})
	if err != nil {
		return nil, errors.Join(err, r.close(h))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Hosts = append(r.Hosts, h)
	r.start(h)
	return h, nil
}

// Remove stops a model's engine and frees what it takes. No request may use it.
func (r *Runtime) Remove(h *Host) {
	r.mu.Lock()
	r.Hosts = slices.DeleteFunc(slices.Clone(r.Hosts), func(o *Host) bool { return o == h })
	r.mu.Unlock()
	if h.stop != nil {
		h.stop()
	}
	if h.observer != nil {
		h.observer.Cleared()
	}
	if err := r.close(h); err != nil {
		r.log.Warn().Err(err).Str("model", h.Bundle.Name).Msg("closing")
	}
}

// All returns the generators, then the verifiers.
func (r *Runtime) All() []*Host {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all()
}

// all needs mu.
func (r *Runtime) all() []*Host { return slices.Concat(r.Hosts, r.verifiers) }

// bundles returns the model and its draft.
func (h *Host) bundles() []*models.Bundle {
	if h.draft == nil {
		return []*models.Bundle{h.Bundle}
	}
	return []*models.Bundle{h.Bundle, h.draft}
}

// close frees the memory of a host, and of its models what no other host uses.
func (l *loader) close(h *Host) error {
	var errs []error
	if h.disk != nil {
		h.disk.Close()
	}
	for _, cache := range h.caches {
		errs = append(errs, cache.Close())
	}
	for _, a := range h.adapters {
		errs = append(errs, a.Close())
	}
	for _, b := range h.bundles() {
		errs = append(errs, l.shelf.give(b))
	}
	return errors.Join(errs...)
}

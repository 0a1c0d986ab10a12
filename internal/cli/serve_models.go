package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/memory"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/server"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/server/residency"
)

// fleet has the models of a server, from the configuration, a folder and the hub's cache. A runtime
// loads them as they are asked for.
type fleet struct {
	cfg   config.Config
	get   *getter
	log   zerolog.Logger
	r     *engines.Runtime
	share func(*engines.Host) error
	set   *residency.Set

	about map[string]registry.About // by Source.Key

	heap sync.Mutex // guards undo
	undo func()     // takes the bound of the heap away
}

// publish has srv answer with the models, of which the runtime has loaded some.
func (f *fleet) publish(ctx context.Context, srv *server.Server) error {
	settings, err := srv.Settings()
	if err != nil {
		return err
	}
	keep, err := f.cfg.Loading.Stays()
	if err != nil {
		return err
	}
	f.set = residency.New(residency.Options{Room: f.r.Room, KeepAlive: keep, Queue: f.cfg.Loading.Queue, Changed: f.tell}, settings)
	f.about, f.undo = map[string]registry.About{}, func() {}
	residents := map[string]*residency.Resident{}
	for _, h := range f.r.All() {
		if err := f.share(h); err != nil {
			return err
		}
		residents[h.Model.Name] = f.resident(h)
		if h.Reward != nil {
			residents[h.Model.Name].Unload = nil // generators use it
		}
	}
	if err := f.set.Update(ctx, f.sources(&f.cfg), residents); err != nil {
		return err
	}
	srv.PublishSet(f.set)
	return nil
}

// resident returns a loaded model.
func (f *fleet) resident(h *engines.Host) *residency.Resident {
	return &residency.Resident{Served: h.Served, Bytes: f.r.Bytes(h), Unload: func() {
		f.r.Remove(h)
		f.boundHeap()
	}}
}

// boundHeap bounds the heap for the models that are loaded now.
func (f *fleet) boundHeap() {
	f.heap.Lock()
	defer f.heap.Unlock()
	f.undo()
	f.undo = memory.BoundHeap(f.cfg.Server.MaxMemory)
}

// close ends loads, and takes the bound of the heap away.
func (f *fleet) close() {
	f.set.Close()
	f.heap.Lock()
	defer f.heap.Unlock()
	f.undo()
}

// tell logs what becomes of a model; that it has been loaded, the runtime does.
func (f *fleet) tell(model string, status residency.Status, err error) {
	switch {
	case err != nil:
		event := f.log.Error().Err(err).Str("model", model)
		var p *parallel.Panic
		if errors.As(err, &p) {
			event.Bytes("stack", p.Stack)
		}
		event.Msg("the model could not be loaded, or not be unloaded")
	case status == residency.Unloaded:
		f.log.Info().Str("model", model).Str("room", output.Bytes(f.r.Room())).Msg("model unloaded")
	}
}

// source returns a model as the set knows it.
func (f *fleet) source(m config.Model) residency.Source {
	keep, err := m.Stays()
	if err != nil {
		panic(err) // Validate has tried it
	}
	s := residency.Source{Name: m.APIName(), Aliases: m.Aliases, Pinned: m.Pin, KeepAlive: keep, Adapters: adaptersOf(m),
		Need: func() (int64, error) { return f.r.Need(m) },
		Load: func(ctx context.Context, progress func(done, total int64)) (*residency.Resident, error) {
			h, err := f.r.Add(ctx, m, progress)
			if err == nil {
				if err = f.share(h); err != nil {
					f.r.Remove(h)
				}
			}
			if err != nil {
				return nil, err
			}
			f.boundHeap()
			return f.resident(h), nil
		},
	}
	how := m
	how.Aliases, how.Pin, how.KeepAlive = nil, false, ""
	s.Key = fmt.Sprintf("%s %+v", engines.KeyOf(m), how)
	return s
}

// adaptersOf returns a model's adapters.
func adaptersOf(m config.Model) (list []residency.Adapter) {
	for _, a := range m.Adapters {
		list = append(list, residency.Adapter{Name: a.APIName(), File: filepath.Base(a.Path)})
	}
	return list
}

// sources returns all models of a configuration: first the ones that it names, in their order, then
// the models of its folder and of the hub's cache, and the verifiers that are used. If a file has
// several names, the configuration's count.
func (f *fleet) sources(cfg *config.Config) (list []residency.Source) {
	names, files := map[string]bool{}, map[string]bool{}
	var all []config.Model
	take := func(m config.Model, named bool) {
		path, err := filepath.EvalSymlinks(m.Path)
		if err != nil {
			path = m.Path
		}
		if name := m.APIName(); !named && (names[name] || files[path] || name == "" || name == registry.DefaultName) {
			return
		}
		names[m.APIName()], files[path] = true, m.Path != ""
		for _, a := range m.Aliases {
			names[a] = true
		}
		all = append(all, m)
	}
	for _, m := range cfg.Models {
		take(m, true)
	}
	for _, h := range f.verifiers() {
		names[h.Model.Name] = true
	}
	for _, m := range f.found(cfg) {
		take(m, false)
	}
	for _, m := range all {
		list = append(list, f.source(m))
	}
	f.describe(all, list)
	for _, h := range f.verifiers() {
		list = append(list, residency.Source{Name: h.Model.Name, Aliases: h.Aliases, Pinned: true, About: registry.About{Task: registry.TaskReward}})
	}
	return list
}

// verifiers returns the reward models.
func (f *fleet) verifiers() (list []*engines.Host) {
	for _, h := range f.r.All() {
		if h.Reward != nil {
			list = append(list, h)
		}
	}
	return list
}

// found returns the models of the folder and of the hub's cache. What cannot be looked into is
// logged.
func (f *fleet) found(cfg *config.Config) []config.Model {
	list, err := cfg.Loading.Within()
	if err != nil {
		f.log.Error().Err(err).Msg("loading.dir: its models are not served")
	}
	if !cfg.Loading.Cache {
		return list
	}
	h, err := f.get.open()
	var stored []hub.Stored
	if err == nil {
		stored, err = h.List()
	}
	if err != nil {
		f.log.Warn().Err(err).Msg("loading.cache: the models that have been pulled are not served")
	}
	for _, s := range stored {
		if s.Missing > 0 || s.Lacking > 0 {
			continue
		}
		m := config.Model{Name: gguf.ModelName(s.Ref.File), Path: s.Path, Aliases: []string{s.Ref.String()}}
		if e, ok := hub.Named(s.Ref); ok {
			m.Name = e.Name
		} else if s.Ref.File == "" { // a directory of safetensors, or of Ollama's registry
			m.Name = s.Ref.Name()
		}
		if err := m.ReadPublished(s.Ref); err != nil {
			f.log.Warn().Err(err).Str("model", m.Name).Msg("the model is sampled without them")
		}
		list = append(list, m)
	}
	return list
}

// describe fills in what is known of models, which are looked at once.
func (f *fleet) describe(all []config.Model, list []residency.Source) {
	abouts := make([]registry.About, len(all))
	var g errgroup.Group
	g.SetLimit(4) // each has the words of a vocabulary in memory
	for i, m := range all {
		if a, ok := f.about[list[i].Key]; ok {
			abouts[i] = a
			continue
		}
		g.Go(func() error {
			abouts[i] = engines.About(m)
			return nil
		})
	}
	_ = g.Wait() // none fails
	f.about = map[string]registry.About{}
	for i := range list {
		list[i].About, f.about[list[i].Key] = abouts[i], abouts[i]
	}
}

// reload reads the configuration again, and takes its models.
func (f *fleet) reload(ctx context.Context, read func() (config.Config, error)) error {
	cfg, err := read()
	if err != nil {
		return err
	}
	for _, key := range f.cfg.Differences(&cfg) {
		f.log.Warn().Str("key", key).Msg("the setting has changed, and is read at the start alone: restart for it")
	}
	if err := cfg.Get(ctx, f.get.get); err != nil {
		return err
	}
	sources := f.sources(&cfg)
	if err := f.set.Update(ctx, sources, nil); err != nil {
		return err
	}
	f.cfg.Models = cfg.Models
	f.log.Info().Int("models", len(sources)).Msg("reloaded: models, and what the folder and the cache hold; other settings are read at the start alone")
	return nil
}

// atHangups reloads at each hangup, until ctx ends: models, unless read is nil, and files.
func (f *fleet) atHangups(ctx context.Context, hangups <-chan struct{}, read func() (config.Config, error), files func() error) {
	for {
		select {
		case <-hangups:
			if read != nil {
				if err := parallel.Try(func() error { return f.reload(ctx, read) }); err != nil && ctx.Err() == nil {
					f.log.Error().Err(err).Msg("nothing is reloaded")
					continue
				}
			}
			if err := parallel.Try(files); err != nil {
				f.log.Error().Err(err).Msg("the changed file was refused; the previous one stays in use")
			}
		case <-ctx.Done():
			return
		}
	}
}

// reloads returns what takes a SIGHUP, and tells whether it did: not one that says that the
// terminal has gone.
func reloads(hangups chan<- struct{}, errOut io.Writer) func() bool {
	onTerminal := output.IsTerminal(errOut)
	return func() bool {
		if onTerminal && !output.IsTerminal(errOut) {
			return false
		}
		select {
		case hangups <- struct{}{}:
		default: // one is to come, which reads what is there then
		}
		return true
	}
}

package server

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jobs"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/metrics"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/server/residency"
	"github.com/lutra-lm/lutra/tts/profile"
)

// Server answers HTTP requests with the models it has been given. It composes the owners of single subjects,
// each with the state of its own.
type Server struct {
	opt        Options
	models     published
	admitter   admitter
	router     router
	observer   observer
	admin      admin
	debug      debugAddress
	files      *reloader
	jobs       *jobs.Store
	metrics    *metrics.Metrics
	handler    http.Handler
	outOfFiles atomic.Int64 // times that no connection could be accepted for want of a file descriptor
}

// New makes a server of options that Validate has found good; it panics if keys are
// configured that Validate has not seen. It is not ready until Publish has given it
// models.
func New(opt Options) *Server {
	if opt.NeedsKey() && len(opt.credentials) == 0 {
		panic("server: New of options with keys that were not validated")
	}
	s := &Server{opt: opt, jobs: jobs.New(opt.Jobs, opt.Log)}
	spoken := append(apis{s.jobs.Protocol()}, protocols()...)
	under := &requests{}
	keys, places, memory := admission.NewKeys(opt.credentials, opt.limits()), admission.NewPlaces(opt.MaxRequests), admission.NewMemory(opt.MaxMemory)
	s.files = newReloader(&s.opt, keys)
	s.metrics = metrics.New(metrics.Sources{Requests: places.Taken, Memory: memory.Bytes, Stored: spoken.stored, OutOfFiles: s.outOfFiles.Load,
		Engines: s.models.engines, Adapters: s.models.adapters, Keys: keys.Usage, CountRequests: opt.CountRequests})
	s.metrics.Register(s.jobs.Metrics())
	s.admitter = admitter{opt: &s.opt, models: &s.models, apis: spoken, keys: keys, places: places, memory: memory, requests: under}
	s.admin = admin{models: &s.models, keys: keys, places: places, requests: under, lines: cmp.Or(opt.LogLines, &LogLines{}), writeTimeout: opt.WriteTimeout}
	standard, _ := opt.defaultPlan() // Validate has tried it
	unknown := &unknownFields{strict: opt.Strict, log: opt.Log}
	s.router = router{apis: spoken, routes: spoken.patterns(s.admin.routes(opt.Debug)), admitter: &s.admitter, runner: runner{apis: spoken, log: opt.Log},
		server: api.Server{Models: s.models.known, Hold: s.models.hold, MaxChoices: opt.MaxChoices, ReasoningFormat: opt.ReasoningFormat, Limits: opt.Limits,
			Standard: standard, Alternates: opt.Alternates, Unknown: unknown.met, WriteTimeout: opt.WriteTimeout, KeepAlive: opt.KeepAlive, Version: opt.Version}}
	s.admin.description = description(opt.Version, s.router.routes)
	s.observer = observer{apis: spoken, quiet: quietPaths(s.router.routes), log: opt.Log, tracer: opt.Tracer, metrics: s.metrics, requests: under}
	s.debug = debugAddress{opt: &s.opt, observer: &s.observer, admin: &s.admin}
	s.handler = s.routes()
	return s
}

// Publish makes models available that are in memory as long as the process, and the server
// ready (registry.New). Later calls replace earlier ones; requests that run keep the model they
// have.
func (s *Server) Publish(served ...registry.Served) error {
	settings, err := s.Settings()
	if err != nil {
		return err
	}
	set, err := residency.Of(settings, served...)
	if err != nil {
		return err
	}
	s.PublishSet(set)
	return nil
}

// PublishSet does as Publish with models that come and go. The caller closes set once the
// server has stopped.
func (s *Server) PublishSet(set *residency.Set) { s.models.set.Store(set) }

// Loading notes that done of total bytes of a model have been read, for /readyz,
// until Publish makes models available. Any goroutine may call it.
func (s *Server) Loading(model string, done, total int64) { s.models.loading.note(model, done, total) }

// Settings returns what holds for all models.
func (s *Server) Settings() (*registry.Settings, error) {
	presets, err := s.opt.plans()
	if err != nil {
		return nil, err
	}
	return &registry.Settings{Presets: presets, Limits: s.opt.Limits, Scorers: s.opt.Scorers, Scaling: s.opt.DefaultScaling, ReasoningFormat: s.opt.ReasoningFormat, Created: time.Now(),
		Profiles: append(slices.Clone(s.opt.Profiles), shipped())}, nil
}

// shipped returns the profile of the embedded models.
var shipped = sync.OnceValue(func() *profile.Profile {
	p, err := profile.Read(embedded.Profile())
	if err != nil {
		panic(err) // a test reads it
	}
	return p
})

// Register adds metrics that the server knows nothing of, such as kernels', to
// /metrics. It panics for names that are taken.
func (s *Server) Register(c prometheus.Collector) { s.metrics.Register(c) }

// StepObserver returns what the engine of the model of this name should call after
// each step (batcher.Options.OnStep), for the metrics of batches.
func (s *Server) StepObserver(model string) func(batcher.StepStats) {
	return s.metrics.StepObserver(model)
}

// Handler returns the whole API, for tests and for servers that embed it.
func (s *Server) Handler() http.Handler { return s.handler }

// Reload reads the file of keys and the certificate again. What is wrong stays as it was.
func (s *Server) Reload() error { return s.files.all() }

// unknownFields decides what becomes of a request's field that nobody knows.
type unknownFields struct {
	strict bool // refuse it, instead of logging it once
	log    zerolog.Logger
	seen   onceSet
}

// met takes in the name of such a field.
func (u *unknownFields) met(name string) error {
	if u.strict {
		return api.Invalid(jsonread.CodeUnknown, name, "Unknown parameter: '%s'.", jsonread.Brief(name))
	}
	if u.seen.first(name) {
		u.log.Warn().Str("field", jsonread.Brief(name)).Msg("ignoring an unknown request field")
	}
	return nil
}

package server

import (
	"crypto/tls"
	"errors"
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
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/metrics"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/server/residency"
	"github.com/lutra-lm/lutra/tts/profile"
)

// Server answers HTTP requests with the models it has been given. Its methods are many: middleware,
// handlers and life cycle share what it holds.
type Server struct {
	opt        Options
	log        zerolog.Logger
	models     atomic.Pointer[residency.Set] // nil while loading
	loading    loading
	draining   atomic.Bool
	outOfFiles atomic.Int64      // times that no connection could be accepted for want of a file descriptor
	places     *admission.Places // of requests under way
	memory     *admission.Memory
	keys       *admission.Keys
	protocols  []api.Protocol
	seen       api.Server // what they know of it
	requests   requests
	logLines   *LogLines  // of the log
	files      []*watched // that are read again when they change
	// certificate is that of new connections; nil without TLS.
	certificate atomic.Pointer[tls.Certificate]
	metrics     *metrics.Metrics
	unknown     onceSet // unknown request fields already logged
	handler     http.Handler
	open        map[string]bool // paths that need no key
}

// stored returns how many bytes are kept for later requests.
func (s *Server) stored() (n int64) {
	for _, p := range s.protocols {
		if p.Stored != nil {
			n += p.Stored()
		}
	}
	return n
}

// unknownField refuses a request's field that nobody knows, or logs it once.
func (s *Server) unknownField(name string) error {
	if s.opt.Strict {
		return api.Invalid(jsonread.CodeUnknown, name, "Unknown parameter: '%s'.", jsonread.Brief(name))
	}
	if s.unknown.first(name) {
		s.log.Warn().Str("field", jsonread.Brief(name)).Msg("ignoring an unknown request field")
	}
	return nil
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
func (s *Server) PublishSet(set *residency.Set) { s.models.Store(set) }

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

// errLoading says that there are no models yet.
var errLoading = errors.New("server: the model is being loaded")

// known returns the models that the server can answer with, once there are any.
func (s *Server) known() (*residency.Set, error) {
	if set := s.models.Load(); set != nil {
		return set, nil
	}
	return nil, errLoading
}

// registered returns the models in memory, once there are any.
func (s *Server) registered() (*registry.Registry, error) {
	set, err := s.known()
	if err != nil {
		return nil, err
	}
	return set.Registry(), nil
}

// loaded returns the models in memory.
func (s *Server) loaded() []*registry.Model {
	if r, err := s.registered(); err == nil {
		return r.Models
	}
	return nil
}

// engines yields the engines of all models in memory.
func (s *Server) engines(yield func(model string, e *batcher.Engine) bool) {
	for _, m := range s.loaded() {
		if !yield(m.Name, m.Engine) {
			return
		}
	}
}

// adapters returns how many adapters a model in memory has.
func (s *Server) adapters(model string) int {
	for _, m := range s.loaded() {
		if m.Name == model {
			return len(m.Adapters.Names())
		}
	}
	return 0
}

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

// loading is the progress of models that are not published yet.
type loading struct {
	mu     sync.Mutex
	models []modelProgress // in the order in which they were first heard of
}

// modelProgress is one model of /readyz while models load.
type modelProgress struct {
	Model    string  `json:"model"`
	Progress float64 `json:"progress"` // 0 to 1
}

// snapshot returns a copy, never nil.
func (l *loading) snapshot() []modelProgress {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]modelProgress{}, l.models...)
}

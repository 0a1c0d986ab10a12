package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/metrics"
	"github.com/lutra-lm/lutra/server/registry"
)

// Server answers HTTP requests with the models it has been given.
type Server struct {
	opt        Options
	log        zerolog.Logger
	models     atomic.Pointer[registry.Registry] // nil while loading
	loading    loading
	draining   atomic.Bool
	outOfFiles atomic.Int64      // times that no connection could be accepted for want of a file descriptor
	places     *admission.Places // of requests under way
	memory     *admission.Memory
	keys       *admission.Keys
	protocols  []api.Protocol
	seen       api.Server // what they know of it
	hosts      hosts
	metrics    *metrics.Metrics
	unknown    onceSet // unknown request fields already logged
	handler    http.Handler
}

// New makes a server of options that Validate has found good; it panics if keys are
// configured that Validate has not seen. It is not ready until Publish has given it
// models.
func New(opt Options) *Server {
	if opt.NeedsKey() && len(opt.credentials) == 0 {
		panic("server: New of options with keys that were not validated")
	}
	s := &Server{opt: opt, log: opt.Log, hosts: newHosts(&opt),
		keys:   admission.NewKeys(opt.credentials, opt.RequestsPerMinute, opt.TokensPerMinute),
		places: admission.NewPlaces(opt.MaxRequests), memory: admission.NewMemory(opt.MaxMemory)}
	s.protocols = protocols()
	standard, _ := opt.defaultPlan() // Validate has tried it
	s.seen = api.Server{Models: s.registered, MaxChoices: opt.MaxChoices, ReasoningFormat: opt.ReasoningFormat, Limits: opt.Limits, Standard: standard,
		Unknown: s.unknownField, WriteTimeout: opt.WriteTimeout, KeepAlive: opt.KeepAlive}
	s.metrics = metrics.New(metrics.Sources{Requests: s.places.Taken, Memory: s.memory.Bytes, Stored: s.stored, OutOfFiles: s.outOfFiles.Load, Engines: s.engines, CountRequests: s.opt.CountRequests})
	s.handler = s.routes()
	return s
}

// stored is how many bytes are kept for later requests.
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
		return api.Invalid(jsonread.CodeUnknown, name, "Unknown parameter: '%s'.", jsonread.Brief([]byte(name)))
	}
	if s.unknown.first(name) {
		s.log.Warn().Str("field", jsonread.Brief([]byte(name))).Msg("ignoring an unknown request field")
	}
	return nil
}

// Publish makes models available and the server ready (registry.New). Later calls
// replace earlier ones; requests that run keep the model they have.
func (s *Server) Publish(served ...registry.Served) error {
	presets, err := s.opt.plans()
	if err != nil {
		return err
	}
	set := registry.Settings{Presets: presets, Limits: s.opt.Limits, Scaling: s.opt.DefaultScaling, ReasoningFormat: s.opt.ReasoningFormat}
	r, err := registry.New(&set, served...)
	if err != nil {
		return err
	}
	s.models.Store(r)
	return nil
}

// registered are the models, once there are any.
func (s *Server) registered() (*registry.Registry, error) {
	if r := s.models.Load(); r != nil {
		return r, nil
	}
	return nil, errLoading
}

// engines yields the engines of all published models.
func (s *Server) engines(yield func(model string, e *batcher.Engine) bool) {
	r := s.models.Load()
	if r == nil {
		return
	}
	for _, m := range r.Models {
		if !yield(m.Name, m.Engine) {
			return
		}
	}
}

// Register adds metrics that the server knows nothing of, such as kernels', to
// /metrics. It panics for names that are taken.
func (s *Server) Register(c prometheus.Collector) { s.metrics.Register(c) }

// StepObserver is what the engine of the model of this name should call after
// each step (batcher.Options.OnStep), for the metrics of batches.
func (s *Server) StepObserver(model string) func(batcher.StepStats) {
	return s.metrics.StepObserver(model)
}

// Handler is the whole API, for tests and for servers that embed it.
func (s *Server) Handler() http.Handler { return s.handler }

// Listen listens on an address. One of IPv4, such as 0.0.0.0:8080, is not one of IPv6
// too; without a host, or as [::]:8080, it is both.
func Listen(addr string) (net.Listener, error) {
	network := "tcp"
	if host, _, err := net.SplitHostPort(addr); err == nil {
		if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
			network = "tcp4"
		}
	}
	return net.Listen(network, addr)
}

// Run listens on Options.Addr and serves until ctx ends, then drains.
func (s *Server) Run(ctx context.Context) error {
	l, err := Listen(s.opt.Addr)
	if err != nil {
		return err
	}
	return s.Serve(ctx, l)
}

// Serve serves on l until ctx ends, then drains as drain.go says, and returns
// nil when all requests have been answered.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	base, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	silent := silentConns{}
	srv := &http.Server{
		Handler:           s.handler,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnState:         silent.track,
		ReadHeaderTimeout: s.opt.HeaderTimeout,
		IdleTimeout:       s.opt.IdleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          stdLog(s.log),
	}
	stopped := make(chan struct{})
	var g errgroup.Group
	g.Go(func() error {
		defer close(stopped)
		err := s.listen(srv, l)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	})
	g.Go(func() error {
		select {
		case <-stopped:
			return nil
		case <-ctx.Done():
		}
		d := drain{s: s, srv: srv, silent: &silent, until: time.Now().Add(s.opt.DrainTimeout), cancel: cancel}
		return d.run(context.Cause(ctx), stopped)
	})
	return g.Wait()
}

func (s *Server) listen(srv *http.Server, l net.Listener) error {
	s.log.Info().Stringer("addr", l.Addr()).Bool("tls", s.opt.TLSCert != "").Msg("serving")
	s.warnOfFiles(fileLimit())
	l = &patientListener{Listener: l, log: s.log, failed: &s.outOfFiles}
	if s.opt.MaxConnections > 0 {
		l = netutil.LimitListener(l, s.opt.MaxConnections)
	}
	if s.opt.TLSCert != "" {
		return srv.ServeTLS(l, s.opt.TLSCert, s.opt.TLSKey)
	}
	return srv.Serve(l)
}

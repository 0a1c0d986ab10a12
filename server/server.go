package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
)

// Server answers HTTP requests with the models it has been given.
type Server struct {
	opt      Options
	log      zerolog.Logger
	models   atomic.Pointer[registry] // nil while loading
	draining atomic.Bool
	inFlight atomic.Int64 // requests that hold or want an engine's time
	keys     *keys
	metrics  *metrics
	unknown  onceSet // unknown request fields already logged
	handler  http.Handler
}

// New makes a server; the options must be valid. It is not ready until
// Publish has given it models.
func New(opt Options) *Server {
	s := &Server{opt: opt, log: opt.Log, keys: newKeys(&opt)}
	s.metrics = newMetrics(s)
	s.handler = s.routes()
	return s
}

// Handler is the whole API, for tests and for servers that embed it.
func (s *Server) Handler() http.Handler { return s.handler }

// Run listens on Options.Addr and serves until ctx ends, then drains.
func (s *Server) Run(ctx context.Context) error {
	l, err := net.Listen("tcp", s.opt.Addr)
	if err != nil {
		return err
	}
	return s.Serve(ctx, l)
}

// Serve serves on l until ctx ends. Then it accepts no more, lets running
// requests end for at most Options.DrainTimeout, cancels those that have not,
// and returns nil when all have been answered.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	base, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	srv := &http.Server{
		Handler:           s.handler,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: s.opt.HeaderTimeout,
		IdleTimeout:       s.opt.IdleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          stdLog(s.log),
	}
	stop := make(chan struct{})
	var g errgroup.Group
	g.Go(func() error {
		defer close(stop)
		err := s.listen(srv, l)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	})
	g.Go(func() error {
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
		}
		s.draining.Store(true)
		s.log.Info().Int64("requests", s.inFlight.Load()).Dur("timeout", s.opt.DrainTimeout).Msg("draining")
		return drain(srv, s.opt.DrainTimeout, cancel)
	})
	return g.Wait()
}

func (s *Server) listen(srv *http.Server, l net.Listener) error {
	s.log.Info().Stringer("addr", l.Addr()).Bool("tls", s.opt.TLSCert != "").Msg("serving")
	if s.opt.TLSCert != "" {
		return srv.ServeTLS(l, s.opt.TLSCert, s.opt.TLSKey)
	}
	return srv.Serve(l)
}

// drain waits for the running requests, then cancels what is left, then cuts
// the connections of clients that do not even take their error.
func drain(srv *http.Server, timeout time.Duration, cancel context.CancelCauseFunc) error {
	const grace = 5 * time.Second // for cancelled requests to say so
	waited, done := context.WithTimeout(context.Background(), timeout)
	defer done()
	if srv.Shutdown(waited) == nil {
		return nil
	}
	cancel(errDraining)
	last, done := context.WithTimeout(context.Background(), grace)
	defer done()
	if srv.Shutdown(last) == nil {
		return nil
	}
	return srv.Close()
}

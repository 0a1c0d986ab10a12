package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/metrics"
)

// New makes a server of options that Validate has found good; it panics if keys are
// configured that Validate has not seen. It is not ready until Publish has given it
// models.
func New(opt Options) *Server {
	if opt.NeedsKey() && len(opt.credentials) == 0 {
		panic("server: New of options with keys that were not validated")
	}
	s := &Server{opt: opt, log: opt.Log, logLines: cmp.Or(opt.LogLines, &LogLines{}),
		keys:   admission.NewKeys(opt.credentials, opt.limits()),
		places: admission.NewPlaces(opt.MaxRequests), memory: admission.NewMemory(opt.MaxMemory)}
	s.protocols = protocols()
	standard, _ := opt.defaultPlan() // Validate has tried it
	s.seen = api.Server{Models: s.known, Hold: s.hold, MaxChoices: opt.MaxChoices, ReasoningFormat: opt.ReasoningFormat, Limits: opt.Limits, Standard: standard, Alternates: opt.Alternates,
		Unknown: s.unknownField, WriteTimeout: opt.WriteTimeout, KeepAlive: opt.KeepAlive}
	s.metrics = metrics.New(metrics.Sources{Requests: s.places.Taken, Memory: s.memory.Bytes, Stored: s.stored, OutOfFiles: s.outOfFiles.Load, Engines: s.engines, Adapters: s.adapters, Keys: s.keys.Usage, CountRequests: s.opt.CountRequests})
	s.handler = s.routes()
	s.watchFiles()
	return s
}

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
	debug, err := s.listenDebug()
	if err != nil {
		l.Close()
		return err
	}
	stopped := make(chan struct{})
	var g errgroup.Group
	g.Go(parallel.Guard(func() error {
		s.serveDebug(debug, stopped)
		return nil
	}))
	g.Go(parallel.Guard(func() error {
		s.reloadChanged(stopped)
		return nil
	}))
	g.Go(parallel.Guard(func() error {
		defer close(stopped)
		err := s.listen(srv, l)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	}))
	g.Go(parallel.Guard(func() error {
		select {
		case <-stopped:
			return nil
		case <-ctx.Done():
		}
		defer srv.Close() // whatever becomes of the drain
		d := drain{s: s, srv: srv, silent: &silent, until: time.Now().Add(s.opt.DrainTimeout), cancel: cancel}
		return d.run(context.Cause(ctx), stopped)
	}))
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
		if err := s.readCertificate(); err != nil {
			return err
		}
		srv.TLSConfig = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate.Load(), nil }}
		return srv.ServeTLS(l, "", "")
	}
	return srv.Serve(l)
}

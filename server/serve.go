package server

import (
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
)

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

// Serve serves on l until ctx ends, then drains as drain.go says, and returns
// nil when all requests have been answered.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	base, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	silent := silentConns{}
	srv := newHTTPServer(&s.opt, s.handler)
	srv.BaseContext = func(net.Listener) context.Context { return base }
	srv.ConnState = silent.track
	debug, err := s.debug.listen()
	if err != nil {
		l.Close()
		return err
	}
	stopped := make(chan struct{})
	working, stopWorking := context.WithCancel(ctx)
	defer stopWorking()
	var g errgroup.Group
	g.Go(parallel.Guard(func() error {
		s.debug.serve(debug, stopped)
		return nil
	}))
	g.Go(parallel.Guard(func() error {
		s.files.run(stopped)
		return nil
	}))
	g.Go(parallel.Guard(func() error {
		s.jobs.Run(working, s.handler)
		return nil
	}))
	g.Go(parallel.Guard(func() error {
		defer close(stopped)
		defer stopWorking()
		err := s.accept(srv, l)
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
		d := drain{opt: &s.opt, models: &s.models, places: s.admitter.places, lines: s.admin.lines,
			srv: srv, silent: &silent, until: time.Now().Add(s.opt.DrainTimeout), cancel: cancel}
		return d.run(context.Cause(ctx), stopped)
	}))
	return g.Wait()
}

// newHTTPServer returns a server of net/http with the limits of opt.
func newHTTPServer(opt *Options, handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: opt.HeaderTimeout,
		IdleTimeout:       opt.IdleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          stdLog(opt.Log),
	}
}

// accept serves the connections to l.
func (s *Server) accept(srv *http.Server, l net.Listener) error {
	s.opt.Log.Info().Stringer("addr", l.Addr()).Bool("tls", s.opt.TLSCert != "").Msg("serving")
	warnOfFiles(s.opt.Log, fileLimit(), s.opt.MaxConnections)
	l = &patientListener{Listener: l, log: s.opt.Log, failed: &s.outOfFiles}
	if s.opt.MaxConnections > 0 {
		l = netutil.LimitListener(l, s.opt.MaxConnections)
	}
	if s.opt.TLSCert != "" {
		if err := s.files.readCertificate(); err != nil {
			return err
		}
		srv.TLSConfig = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.files.certificate.Load(), nil }}
		return srv.ServeTLS(l, "", "")
	}
	return srv.Serve(l)
}

package cli

import (
	"context"
	"io"
	"net"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/internal/sandbox"
	"github.com/lutra-lm/lutra/internal/tracing"
	"github.com/lutra-lm/lutra/server"
	"github.com/lutra-lm/lutra/server/registry"
)

// service is a server from its port to its last answer. It is opened step by step; what a step opens, close
// closes, the latest first.
type service struct {
	cfg    config.Config
	read   func() (config.Config, error) // the models at a hangup; nil: they stay
	get    *getter
	errOut io.Writer

	log      zerolog.Logger
	lines    *server.LogLines
	listener net.Listener
	srv      *server.Server
	watch    engines.Watcher
	hangups  chan struct{}
	systemd  supervised
	closers  []func()

	group    errgroup.Group
	served   chan struct{} // closed when the server has stopped
	serveErr error         // once served is closed
}

// serve answers /healthz while get brings models and they load, publishes them, and
// drains when ctx ends: the server before the engines, which running requests need. At a
// hangup it takes the models that read finds, unless that is nil, and the server's own files; one
// with neither ends.
func serve(ctx context.Context, cfg config.Config, read func() (config.Config, error), get *getter, errOut io.Writer) error {
	s := &service{cfg: cfg, read: read, get: get, errOut: errOut, hangups: make(chan struct{}, 1), served: make(chan struct{})}
	defer s.close()
	for _, step := range []func(context.Context) error{s.listen, s.trace, s.build, s.publishEvents} {
		if err := step(ctx); err != nil {
			if s.listener != nil {
				s.listener.Close()
			}
			return err
		}
	}
	return s.run(ctx)
}

// close closes what steps have opened.
func (s *service) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
}

// listen opens the log and the port.
func (s *service) listen(context.Context) (err error) {
	s.lines = &server.LogLines{}
	s.log = NewLogger(s.cfg.Log, s.errOut, s.lines)
	if s.get.log != nil { // its downloads are part of what the server does
		s.get.log = &s.log
	}
	s.cfg.Warn(s.log)
	if s.listener, err = open(&s.cfg.Server); err != nil {
		return err
	}
	for _, w := range warnings(&s.cfg.Server, sandbox.Compiles()) {
		s.log.Warn().Msg(w)
	}
	return nil
}

// trace connects to a collector of spans, if there is one.
func (s *service) trace(ctx context.Context) error {
	tracer, end, err := tracing.New(ctx, os.Getenv, Version(), s.log)
	if s.cfg.Server.Tracer = tracer; end != nil {
		s.closers = append(s.closers, func() {
			ctx, done := context.WithTimeout(context.WithoutCancel(ctx), closingTime)
			defer done()
			_ = end(ctx) // a dead collector has been told of
		})
	}
	return err
}

// build makes the server, and says what signals do.
func (s *service) build(ctx context.Context) error {
	s.cfg.Server.Log, s.cfg.Server.LogLines, s.cfg.Server.Documents = s.log, s.lines, documentsOf(ctx)
	s.cfg.Server.Version = Version()
	s.srv = server.New(s.cfg.Server)
	s.watch = engines.Watcher{Loading: s.srv.Loading, Steps: s.srv.StepObserver}
	s.systemd = supervised{log: s.log, stuck: cpulimit.Stuck}
	stopperOf(ctx).atSecond(func(signal stopSignal) {
		s.log.Warn().Str("signal", signal.String()).Msg("second signal: ending at once")
	})
	if s.read != nil || s.cfg.Server.Reloads() {
		stopperOf(ctx).atHangup(reloads(s.hangups, s.errOut))
	}
	return nil
}

// publishEvents tells routers what the caches hold.
func (s *service) publishEvents(context.Context) error {
	end, err := publishEvents(&s.cfg, s.srv, &s.watch, s.log)
	if err == nil {
		s.closers = append(s.closers, end)
	}
	return err
}

// run serves until ctx ends or something fails.
func (s *service) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.group.Go(parallel.Guard(func() error {
		defer close(s.served)
		defer cancel()
		s.serveErr = s.srv.Serve(ctx, s.listener)
		return s.serveErr
	}))
	s.group.Go(parallel.Guard(func() error {
		<-ctx.Done()
		s.systemd.tell(daemon.SdNotifyStopping)
		return nil
	}))
	s.group.Go(parallel.Guard(func() error {
		defer cancel()
		r, err := s.load(ctx)
		if r == nil || err != nil {
			return err
		}
		defer r.Close()
		return s.runModels(ctx, r)
	}))
	err, closed := closing(s.group.Wait, s.served)
	if !closed {
		s.log.Warn().Msg("ending while models are being closed: a request or a step goes on")
		return s.serveErr
	}
	return err
}

// load downloads models that are not on this machine, and loads those that fit; nil: the server ends before
// that is done.
func (s *service) load(ctx context.Context) (*engines.Runtime, error) {
	for _, name := range s.cfg.Names() {
		s.srv.Loading(name, 0, 0)
	}
	if err := s.cfg.Get(ctx, s.get.get); err != nil {
		if ctx.Err() != nil { // what has come is kept, and the server drains
			return nil, nil
		}
		return nil, err
	}
	r, err := loadUnless(s.served, func() (*engines.Runtime, error) {
		first := s.cfg
		var err error
		if first.Models, err = engines.Fitting(&s.cfg); err != nil {
			return nil, err
		}
		first.Partial = len(first.Models) < len(s.cfg.Models) || s.cfg.Loading.Dir != ""
		return engines.New(ctx, first, s.log, s.watch)
	})
	if r == nil && ctx.Err() != nil {
		return nil, nil // it is the loading that was given up
	}
	return r, err
}

// runModels publishes the models of r and runs their engines until the server has stopped.
func (s *service) runModels(ctx context.Context, r *engines.Runtime) error {
	for _, c := range r.Collectors() {
		s.srv.Register(c)
	}
	share, leaveWorkers := shareSearches(&s.cfg, s.srv, s.listener.Addr(), s.log)
	defer leaveWorkers()
	f := &fleet{cfg: s.cfg, get: s.get, log: s.log, r: r, share: share}
	if err := f.publish(ctx, s.srv); err != nil {
		return err
	}
	defer f.close()
	f.boundHeap()
	ready, try := readyLines(s.cfg.Server, s.listener.Addr())
	event := s.log.Info()
	if r.Writes() == nil { // else the question may find no model that answers
		event = event.Str("try", try)
	}
	event.Msg(ready)
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() { <-s.served; stop() }()
	s.systemd.tell(daemon.SdNotifyReady)
	s.group.Go(parallel.Guard(func() error {
		s.systemd.watch(running, func() []*batcher.Engine { return enginesOf(r) })
		return nil
	}))
	s.group.Go(parallel.Guard(func() error {
		f.atHangups(running, s.hangups, s.read, s.srv.Reload)
		return nil
	}))
	return r.Run(running)
}

// closingTime is the time for closing models, and again for closing traces, once the server has stopped.
const closingTime = time.Second

// closing returns the error of wait, and whether it came within the closingTime after served is closed.
func closing(wait func() error, served <-chan struct{}) (err error, closed bool) {
	ended := make(chan error, 1)
	go func() { ended <- wait() }()
	select {
	case err := <-ended:
		return err, true
	case <-served:
	}
	select {
	case err := <-ended:
		return err, true
	case <-time.After(closingTime):
		return nil, false
	}
}

// loadUnless returns the result of load, or nothing if done closes first: loading ends
// with its context, but a slow disk may keep it from noticing.
func loadUnless(done <-chan struct{}, load func() (*engines.Runtime, error)) (*engines.Runtime, error) {
	type result struct {
		r   *engines.Runtime
		err error
	}
	loaded := make(chan result, 1)
	go func() {
		var l result
		l.err = parallel.Try(func() (err error) { l.r, err = load(); return err })
		loaded <- l
	}()
	select {
	case l := <-loaded:
		return l.r, l.err
	case <-done:
		return nil, nil
	}
}

// enginesOf returns the engines that are there now.
func enginesOf(r *engines.Runtime) (list []*batcher.Engine) {
	for _, h := range r.All() {
		list = append(list, h.Served.Model.Engine)
	}
	return list
}

// servedModels returns the models of r as the server publishes them.
func servedModels(r *engines.Runtime) []registry.Served {
	var list []registry.Served
	for _, h := range r.All() {
		list = append(list, h.Served)
	}
	return list
}

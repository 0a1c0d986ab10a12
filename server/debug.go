package server

import (
	"net"
	"net/http"
	"net/http/pprof"
	"path"

	"github.com/go-chi/chi/v5"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/server/api"
)

// debugRoutes are what an operator looks at, on an address of its own and without a key.
func (s *Server) debugRoutes() http.Handler {
	r := chi.NewRouter()
	names := newHosts(&s.opt, s.opt.DebugAddr)
	r.Use(s.observe, s.recover, func(next http.Handler) http.Handler { return s.site(names, next) })
	for at, answer := range map[string]func(*api.Call) error{
		"/debug/requests": s.debugRequests, "/debug/logs": s.logs, "/debug/state": s.debugState, "/debug/pprof/*": profiles, "/usage": s.usage,
	} {
		r.Get(at, func(w http.ResponseWriter, req *http.Request) {
			if err := answer(&api.Call{Request: req, W: w}); err != nil {
				s.fail(w, req, err)
			}
		})
	}
	r.Method(http.MethodGet, "/metrics", s.metrics.Handler())
	return r
}

// profiles answers with Go's profiles.
func profiles(c *api.Call) error {
	answer := pprof.Index
	switch path.Base(c.URL.Path) {
	case "cmdline":
		answer = pprof.Cmdline
	case "profile":
		answer = pprof.Profile
	case "symbol":
		answer = pprof.Symbol
	case "trace":
		answer = pprof.Trace
	}
	answer(c.W, c.Request)
	return nil
}

// listenDebug listens on Options.DebugAddr; nil: there is none.
func (s *Server) listenDebug() (net.Listener, error) {
	if s.opt.DebugAddr == "" {
		return nil, nil
	}
	l, err := Listen(s.opt.DebugAddr)
	if err == nil {
		s.log.Info().Stringer("addr", l.Addr()).Msg("serving /debug/requests, /debug/logs, /debug/state, /usage, /metrics and /debug/pprof/")
	}
	return l, err
}

// serveDebug serves debugRoutes until done closes.
func (s *Server) serveDebug(l net.Listener, done <-chan struct{}) {
	if l == nil {
		return
	}
	srv := &http.Server{Handler: s.debugRoutes(), ReadHeaderTimeout: s.opt.HeaderTimeout, IdleTimeout: s.opt.IdleTimeout, MaxHeaderBytes: 64 << 10, ErrorLog: stdLog(s.log)}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if err := parallel.Try(func() error { return srv.Serve(l) }); err != http.ErrServerClosed {
			s.log.Error().Err(err).Msg("the debug address is served no more")
		}
	}()
	<-done
	srv.Close()
	<-stopped
}

// debugRequests shows the requests under way and the last ones that have ended.
func (s *Server) debugRequests(c *api.Call) error {
	underWay, recent := s.requests.list()
	out := struct {
		Running []requestState `json:"running"`
		Waiting []requestState `json:"waiting"`
		Recent  []requestState `json:"recent"`
	}{[]requestState{}, []requestState{}, append([]requestState{}, recent...)}
	for _, st := range underWay {
		if st.State == stateWaiting {
			out.Waiting = append(out.Waiting, st)
		} else {
			out.Running = append(out.Running, st)
		}
	}
	return c.JSON(out)
}

// debugState shows what the engines are doing.
func (s *Server) debugState(c *api.Call) error {
	type state struct {
		Model  string `json:"model"`
		Engine any    `json:"engine"`
	}
	out := struct {
		Draining bool    `json:"draining"`
		InFlight int64   `json:"in_flight"`
		Models   []state `json:"models"`
	}{Draining: s.draining.Load(), InFlight: s.places.Taken(), Models: []state{}}
	for _, m := range s.loaded() {
		out.Models = append(out.Models, state{m.Name, m.Engine.Stats()})
	}
	return c.JSON(out)
}

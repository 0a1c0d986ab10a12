package server

import (
	"net"
	"net/http"
	"net/http/pprof"
	"path"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/api"
)

// admin answers an operator: what the server does, has done and is asked for.
type admin struct {
	models       *published
	keys         *admission.Keys
	places       *admission.Places
	requests     *requests
	lines        *LogLines
	writeTimeout time.Duration
	description  func() []byte // of the API
}

// debugAddress is the address without keys on which an operator looks at a server.
type debugAddress struct {
	opt      *Options
	observer *observer
	admin    *admin
}

// routes returns the handler of what an operator looks at, all without a key.
func (d *debugAddress) routes() http.Handler {
	r := chi.NewRouter()
	r.Use(d.observer.observe, d.observer.recover, site(d.opt, d.observer.apis, d.opt.DebugAddr))
	for at, answer := range map[string]func(*api.Call) error{
		"/debug/requests": d.admin.debugRequests, "/debug/logs": d.admin.logs, "/debug/state": d.admin.debugState, "/debug/pprof/*": profiles, "/usage": d.admin.usage,
	} {
		r.Get(at, func(w http.ResponseWriter, req *http.Request) {
			if err := answer(&api.Call{Request: req, W: w}); err != nil {
				d.observer.apis.fail(w, req, err)
			}
		})
	}
	r.Method(http.MethodGet, "/metrics", d.observer.metrics.Handler())
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

// listen listens on Options.DebugAddr; nil: there is none.
func (d *debugAddress) listen() (net.Listener, error) {
	if d.opt.DebugAddr == "" {
		return nil, nil
	}
	l, err := Listen(d.opt.DebugAddr)
	if err == nil {
		d.opt.Log.Info().Stringer("addr", l.Addr()).Msg("serving /debug/requests, /debug/logs, /debug/state, /usage, /metrics and /debug/pprof/")
	}
	return l, err
}

// serve serves its routes until done closes.
func (d *debugAddress) serve(l net.Listener, done <-chan struct{}) {
	if l == nil {
		return
	}
	srv := newHTTPServer(d.opt, d.routes())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if err := parallel.Try(func() error { return srv.Serve(l) }); err != http.ErrServerClosed {
			d.opt.Log.Error().Err(err).Msg("the debug address is served no more")
		}
	}()
	<-done
	srv.Close()
	<-stopped
}

// debugRequests shows the requests under way and the last ones that have ended.
func (a *admin) debugRequests(c *api.Call) error {
	underWay, recent := a.requests.list()
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
func (a *admin) debugState(c *api.Call) error {
	type state struct {
		Model  string `json:"model"`
		Engine any    `json:"engine"`
	}
	out := struct {
		Draining bool    `json:"draining"`
		InFlight int64   `json:"in_flight"`
		Models   []state `json:"models"`
	}{Draining: a.models.draining.Load(), InFlight: a.places.Taken(), Models: []state{}}
	for _, m := range a.models.loaded() {
		out.Models = append(out.Models, state{m.Name, m.Engine.Stats()})
	}
	return c.JSON(out)
}

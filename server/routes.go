package server

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/lutra-lm/lutra/internal/manual"
	"github.com/lutra-lm/lutra/server/anthropic"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/llamacpp"
	"github.com/lutra-lm/lutra/server/ollama"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/server/responses"
	"github.com/lutra-lm/lutra/server/vllm"
	"github.com/lutra-lm/lutra/web"
)

// protocols returns the APIs that the server speaks. Of those that have a route, or of whose
// clients a request may be, the first counts: OpenAI's, which asks for no more, is the last.
func protocols() []api.Protocol {
	return []api.Protocol{
		anthropic.Protocol(),
		ollama.Protocol(),
		responses.Protocol(),
		llamacpp.Protocol(),
		vllm.Protocol(),
		openai.Protocol(),
	}
}

// routes of the server's own.
func (s *Server) ownRoutes() []api.Route {
	list := []api.Route{
		{Path: "/usage", Admin: true, Answer: s.usage},
		{Path: "/debug/requests", Admin: true, Answer: s.debugRequests},
		{Path: "/debug/logs", Admin: true, Answer: s.logs},
		{Path: "/debug/pprof/*", Admin: true, Answer: profiles},
		// Probes come without a key.
		{Path: "/healthz", Open: true, Answer: healthz},
		{Path: "/readyz", Open: true, Answer: s.readyz},
		{Path: "/health", Open: true, Answer: s.readyz}, // what scripts for llama.cpp and vLLM wait for
	}
	if s.opt.Debug {
		list = append(list, api.Route{Path: "/debug/state", Answer: s.debugState})
	}
	return list
}

func (s *Server) routes() http.Handler {
	r := chi.NewRouter()
	names := newHosts(&s.opt, s.opt.Addr)
	site := func(next http.Handler) http.Handler { return s.site(names, next) }
	r.Use(s.observe, s.recover, s.cors, site, middleware.GetHead)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, api.InvalidStatus(http.StatusNotFound, "not_found", "", "There is nothing at "+jsonread.Brief(r.URL.Path)+"."))
	})
	r.MethodNotAllowed(func(w http.ResponseWriter, req *http.Request) {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			if r.Match(chi.NewRouteContext(), method, req.URL.Path) {
				w.Header().Add("Allow", method)
			}
		}
		s.fail(w, req, api.InvalidStatus(http.StatusMethodNotAllowed, "method_not_allowed", "", "The method "+req.Method+" is not allowed here."))
	})
	r.Method(http.MethodGet, "/metrics", s.metrics.Handler()) // scrapers come without a key
	s.open = map[string]bool{"/": true, "/favicon.ico": true, "/metrics": true}

	// The page asks for a key itself, if the API needs one.
	page := web.Handler()
	r.Method(http.MethodGet, "/", page)
	r.Method(http.MethodGet, web.Prefix+"*", page)

	if s.opt.Documents != nil {
		docs := manual.Handler(s.opt.Documents)
		r.Method(http.MethodGet, "/docs", docs)
		r.Method(http.MethodGet, manual.Prefix+"*", docs)
	}

	for at, routes := range s.patterns() {
		r.Method(at.method, at.path, s.handle(routes))
		if routes[0].Open {
			s.open[at.path] = true
		}
	}
	return r
}

// pattern is a method and a path.
type pattern struct{ method, path string }

// ownedRoute is a route with the API that it is of.
type ownedRoute struct {
	api.Route
	protocol *api.Protocol
}

// owns reports whether a request is one of the API's clients'.
func (o *ownedRoute) owns(r *http.Request) bool { return o.protocol.Owns != nil && o.protocol.Owns(r) }

// patterns returns the routes of all APIs, and the server's own, by pattern.
func (s *Server) patterns() map[pattern][]ownedRoute {
	all := map[pattern][]ownedRoute{}
	for _, p := range append(s.protocols, api.Protocol{Routes: s.ownRoutes()}) {
		for _, route := range p.Routes {
			at := pattern{cmp.Or(route.Method, http.MethodGet), route.Path}
			if route.Method == "" && route.Factor > 0 {
				at.method = http.MethodPost
			}
			all[at] = append(all[at], ownedRoute{route, &p})
		}
	}
	return all
}

// handle answers with the route of the API that a request is of, or else with the last.
func (s *Server) handle(routes []ownedRoute) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		i := slices.IndexFunc(routes, func(o ownedRoute) bool { return o.owns(r) })
		if i < 0 {
			i = len(routes) - 1
		}
		if err := s.answer(recordOf(r.Context()), &routes[i], w, r); err != nil {
			s.fail(w, r, err)
		}
	}
}

// answer carries out a route.
func (s *Server) answer(rec *record, route *ownedRoute, w http.ResponseWriter, r *http.Request) error {
	c := &api.Call{Request: r, Server: &s.seen, W: w, ID: rec.id, Start: rec.start}
	defer release(c)
	if !route.Open {
		if c.Key = s.keys.Of(shownKey(r)); c.Key == nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			return errKey
		}
		rec.key = c.Key
		if route.Admin && !c.Key.Admin || route.Rules && !c.Key.Rules() {
			return api.ErrAdmin
		}
	}
	carryOut := func(c *api.Call) error {
		switch {
		case route.Ask != nil:
			awaitsStream(c, route.protocol)
			a, err := route.Ask(c)
			if err != nil {
				return err
			}
			return s.generate(c, a)
		case route.Read != nil:
			reading, err := route.Read(c)
			if err != nil {
				return err
			}
			return s.read(c, reading)
		}
		return route.Answer(c)
	}
	if route.Factor > 0 {
		return s.receive(c, &route.Route, carryOut)
	}
	return carryOut(c)
}

// quiet tells whether nothing is said of the requests for a path: probes and scrapes come every few
// seconds, files of the page and of the documents by the dozen.
func (s *Server) quiet(path string) bool {
	return s.open[path] || strings.HasPrefix(path, web.Prefix) || strings.HasPrefix(path, manual.Prefix)
}

func healthz(c *api.Call) error { return c.JSON(map[string]string{"status": "ok"}) }

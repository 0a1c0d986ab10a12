package server

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/lutra-lm/lutra/internal/manual"
	"github.com/lutra-lm/lutra/server/anthropic"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/llamacpp"
	"github.com/lutra-lm/lutra/server/ollama"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/server/openapi"
	"github.com/lutra-lm/lutra/server/responses"
	"github.com/lutra-lm/lutra/server/vllm"
	"github.com/lutra-lm/lutra/web"
)

// apis are the APIs of the server. The first that has the route, or whose client the request may come
// from, counts. OpenAI's, which asks for no more, is the last.
type apis []api.Protocol

// protocols returns the APIs of a server.
func protocols() apis {
	return apis{
		anthropic.Protocol(),
		ollama.Protocol(),
		responses.Protocol(),
		llamacpp.Protocol(),
		vllm.Protocol(),
		openai.Protocol(),
	}
}

// of returns the API that a request is of, as far as that shows outside of its
// handler: errors may come before any is found.
func (a apis) of(r *http.Request) *api.Protocol {
	for i := range a {
		if p := &a[i]; p.Owns != nil && p.Owns(r) {
			return p
		}
	}
	return &a[len(a)-1]
}

// stored returns how many bytes are kept for later requests.
func (a apis) stored() (n int64) {
	for _, p := range a {
		if p.Stored != nil {
			n += p.Stored()
		}
	}
	return n
}

// routes returns the operator's routes, with the state of the engines if that may be shown.
func (a *admin) routes(state bool) []api.Route {
	list := []api.Route{
		{Path: "/usage", Admin: true, Answer: a.usage},
		{Path: "/debug/requests", Admin: true, Answer: a.debugRequests},
		{Path: "/debug/logs", Admin: true, Answer: a.logs},
		{Path: "/debug/pprof/*", Admin: true, Answer: profiles},
		// Probes come without a key.
		{Path: "/healthz", Open: true, Answer: healthz},
		{Path: "/readyz", Open: true, Answer: a.readyz},
		{Path: "/health", Open: true, Answer: a.health}, // what scripts for llama.cpp and vLLM wait for
		{Path: "/v1/health", Open: true, Answer: a.health},
	}
	list = append(list, api.Route{Path: "/openapi.json", Open: true, Answer: a.described})
	if state {
		list = append(list, api.Route{Path: "/debug/state", Answer: a.debugState})
	}
	return list
}

// routes returns the handler of the server's address.
func (s *Server) routes() http.Handler {
	r := chi.NewRouter()
	fail := s.observer.apis.fail
	allow := func(next http.Handler) http.Handler { return cors(s.opt.CORSOrigins, next) }
	r.Use(s.observer.observe, s.observer.recover, allow, site(&s.opt, s.observer.apis, s.opt.Addr), middleware.GetHead)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		fail(w, r, api.InvalidStatus(http.StatusNotFound, "not_found", "", "There is nothing at "+jsonread.Brief(r.URL.Path)+"."))
	})
	r.MethodNotAllowed(func(w http.ResponseWriter, req *http.Request) {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			if r.Match(chi.NewRouteContext(), method, req.URL.Path) {
				w.Header().Add("Allow", method)
			}
		}
		fail(w, req, api.InvalidStatus(http.StatusMethodNotAllowed, "method_not_allowed", "", "The method "+req.Method+" is not allowed here."))
	})
	r.Method(http.MethodGet, "/metrics", s.metrics.Handler()) // scrapers come without a key

	// The page asks for a key itself, if the API needs one.
	page := web.Handler()
	r.Method(http.MethodGet, "/", page)
	r.Method(http.MethodGet, web.Prefix+"*", page)

	if s.opt.Documents != nil {
		docs := manual.Handler(s.opt.Documents)
		r.Method(http.MethodGet, "/docs", docs)
		r.Method(http.MethodGet, manual.Prefix+"*", docs)
	}
	for at, routes := range s.router.routes {
		r.Method(at.method, at.path, s.router.handle(routes))
	}
	return r
}

// router answers a request with the route of its API.
type router struct {
	apis     apis
	routes   map[pattern][]ownedRoute
	server   api.Server // what the APIs know of it
	admitter *admitter
	runner   runner
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
func (a apis) patterns(own []api.Route) map[pattern][]ownedRoute {
	all := map[pattern][]ownedRoute{}
	for _, p := range append(a, api.Protocol{Routes: own}) {
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

// description returns what /openapi.json answers with, which is made when it is first asked for.
func description(version string, routes map[pattern][]ownedRoute) func() []byte {
	return sync.OnceValue(func() []byte {
		list := []openapi.Route{{Method: http.MethodGet, Path: "/metrics", Open: true}}
		for at, of := range routes {
			r := of[0]
			list = append(list, openapi.Route{Method: at.method, Path: at.path, Open: r.Open, Body: r.Factor > 0, Streams: r.Ask != nil})
		}
		return openapi.Document(version, list)
	})
}

// described answers GET /openapi.json.
func (a *admin) described(c *api.Call) error {
	c.W.Header().Set("Content-Type", "application/json")
	_, err := c.W.Write(a.description())
	return err
}

// handle answers with the route of the API that a request is of, or else with the last.
func (rt *router) handle(routes []ownedRoute) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		i := slices.IndexFunc(routes, func(o ownedRoute) bool { return o.owns(r) })
		if i < 0 {
			i = len(routes) - 1
		}
		if err := rt.answer(recordOf(r.Context()), &routes[i], w, r); err != nil {
			rt.apis.fail(w, r, err)
		}
	}
}

// answer carries out a route.
func (rt *router) answer(rec *record, route *ownedRoute, w http.ResponseWriter, r *http.Request) error {
	c := &api.Call{Request: r, Server: &rt.server, W: w, ID: rec.id, Start: rec.start}
	defer release(c)
	if err := rt.admitter.identify(c, &route.Route); err != nil {
		return err
	}
	execute := func(c *api.Call) error {
		switch {
		case route.Ask != nil:
			awaitsStream(c, route.protocol)
			a, err := route.Ask(c)
			if err != nil {
				return err
			}
			return rt.runner.generate(c, a)
		case route.Read != nil:
			reading, err := route.Read(c)
			if err != nil {
				return err
			}
			return rt.runner.read(c, reading)
		}
		return route.Answer(c)
	}
	if route.Factor > 0 {
		return rt.admitter.receive(c, &route.Route, execute)
	}
	return execute(c)
}

// quietPaths tells whether nothing is said of the requests for a path: probes and scrapes come every few
// seconds, files of the page and of the documents by the dozen.
func quietPaths(routes map[pattern][]ownedRoute) func(path string) bool {
	open := map[string]bool{"/": true, "/favicon.ico": true, "/metrics": true}
	for at, list := range routes {
		if list[0].Open {
			open[at.path] = true
		}
	}
	return func(path string) bool {
		return open[path] || strings.HasPrefix(path, web.Prefix) || strings.HasPrefix(path, manual.Prefix)
	}
}

func healthz(c *api.Call) error { return c.JSON(map[string]string{"status": "ok"}) }

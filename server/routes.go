package server

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/web"
)

// handler is an http.HandlerFunc that may fail. Its error is answered with the
// envelope, so it must not have written anything.
type handler func(w http.ResponseWriter, r *http.Request) error

func (s *Server) routes() http.Handler {
	r := chi.NewRouter()
	r.Use(s.observe, s.recover, s.cors, s.site, middleware.GetHead)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &apiError{Status: http.StatusNotFound, Type: typeInvalid, Code: "not_found", Message: "There is nothing at " + jsonread.Brief([]byte(r.URL.Path)) + "."})
	})
	r.MethodNotAllowed(func(w http.ResponseWriter, req *http.Request) {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			if r.Match(chi.NewRouteContext(), method, req.URL.Path) {
				w.Header().Add("Allow", method)
			}
		}
		s.fail(w, req, &apiError{Status: http.StatusMethodNotAllowed, Type: typeInvalid, Code: "method_not_allowed",
			Message: "The method " + req.Method + " is not allowed here."})
	})

	// Probes and scrapers come without a key.
	r.Get("/healthz", s.serve(healthz))
	r.Get("/readyz", s.serve(s.readyz))
	r.Get("/health", s.serve(s.readyz)) // what scripts for llama.cpp and vLLM wait for
	r.Get("/api/hello", s.serve(hello))
	r.Method(http.MethodGet, "/metrics", s.metrics.Handler())

	// The page asks for a key itself, if the API needs one.
	page := web.Handler()
	r.Method(http.MethodGet, "/", page)
	r.Method(http.MethodGet, web.Prefix+"*", page)

	r.Group(func(r chi.Router) {
		r.Use(s.authenticate)
		r.Post("/v1/messages", s.post(chatFactor, s.messages))
		r.Post("/v1/messages/count_tokens", s.post(templateFactor, s.countTokens))

		r.Get("/api/version", s.serve(ollamaVersion))
		r.Get("/api/tags", s.serve(s.ollamaTags))
		r.Get("/api/ps", s.serve(s.ollamaRunning))
		r.Post("/api/show", s.post(templateFactor, s.ollamaShow))
		r.Post("/api/chat", s.post(chatFactor, s.ollamaChat))
		r.Post("/api/generate", s.post(completionsFactor, s.ollamaGenerate))
		r.Post("/api/embed", s.post(embeddingsFactor, s.ollamaEmbed))
		r.Post("/api/embeddings", s.post(embeddingsFactor, s.ollamaEmbeddings))
		for _, what := range []string{"pull", "push", "create", "copy"} {
			r.Post("/api/"+what, s.serve(ollamaRefused))
		}
		r.Delete("/api/delete", s.serve(ollamaRefused))

		r.Get("/v1/models", s.serve(s.listModels))
		r.Get("/v1/models/*", s.serve(s.showModel))
		r.Get("/tokenizer_info", s.serve(s.tokenizerInfo))
		if s.opt.Debug {
			r.Get("/debug/state", s.serve(s.debugState))
		}
		r.Post("/tokenize", s.post(tokenizeFactor, s.tokenize))
		r.Post("/detokenize", s.post(detokenizeFactor, s.detokenize))
		r.Post("/apply-template", s.post(templateFactor, s.applyTemplate))
		r.Post("/v1/chat/completions", s.post(chatFactor, s.chat))
		r.Post("/v1/chat/completions/render", s.post(chatFactor, s.renderChat))
		r.Post("/v1/responses", s.post(chatFactor, s.createResponse))
		r.Post("/v1/responses/input_tokens", s.post(templateFactor, s.countInput))
		r.Post("/v1/responses/compact", s.post(chatFactor, s.compact))
		r.Get("/v1/responses/{id}", s.serve(s.response))
		r.Delete("/v1/responses/{id}", s.serve(s.deleteResponse))
		r.Post("/v1/responses/{id}/cancel", s.serve(s.cancelResponse))
		r.Get("/v1/responses/{id}/input_items", s.serve(s.inputItems))
		r.Post("/v1/completions", s.post(completionsFactor, s.completions))
		r.Post("/v1/completions/render", s.post(completionsFactor, s.renderCompletion))
		r.Post("/infill", s.post(completionsFactor, s.infill))
		r.Post("/v1/rewards", s.post(rewardsFactor, s.rewards))
		r.Post("/v1/embeddings", s.post(embeddingsFactor, s.embeddings))
		for _, path := range []string{"/v1/rerank", "/v2/rerank", "/rerank"} {
			r.Post(path, s.post(embeddingsFactor, s.rerank))
		}
		for _, path := range []string{"/v1/score", "/score"} {
			r.Post(path, s.post(embeddingsFactor, s.score))
		}
	})
	return r
}

// serve answers with the error of h, if it has one.
func (s *Server) serve(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.fail(w, r, err)
		}
	}
}

// fail answers with err, and notes it for the log line.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	rec := recordOf(r.Context())
	rec.err = err
	writeError(w, err, rec.failure)
}

func healthz(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// debugState shows what the engines are doing.
func (s *Server) debugState(w http.ResponseWriter, _ *http.Request) error {
	type state struct {
		Model  string `json:"model"`
		Engine any    `json:"engine"`
	}
	out := struct {
		Draining bool    `json:"draining"`
		InFlight int64   `json:"in_flight"`
		Models   []state `json:"models"`
	}{Draining: s.draining.Load(), InFlight: s.places.Taken(), Models: []state{}}
	if r := s.models.Load(); r != nil {
		for _, m := range r.Models {
			out.Models = append(out.Models, state{m.Name, m.Engine.Stats()})
		}
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

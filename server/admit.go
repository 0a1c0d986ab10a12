package server

import (
	"net/http"
	"time"

	"github.com/lutra-lm/lutra/server/admission"
)

// authenticate wants a bearer key when any are configured.
func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown := r.Header.Get("Authorization")
		if key := r.Header.Get("X-Api-Key"); key != "" && shown == "" {
			shown = "Bearer " + key // Anthropic's clients
		}
		k := s.keys.Of(shown)
		if k == nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			s.fail(w, r, &apiError{Status: http.StatusUnauthorized, Type: typeAuth, Code: "invalid_api_key",
				Message: "Incorrect or missing API key. Send it as 'Authorization: Bearer KEY'."})
			return
		}
		recordOf(r.Context()).key = k
		next.ServeHTTP(w, r)
	})
}

// admit lets a request send its body, unless the server is not ready or has
// enough to do, or the key has spent its allowance.
func (s *Server) admit(k *admission.Key) error {
	if err := s.ready(); err != nil {
		return err
	}
	if s.places.Full() {
		return admission.ErrBusy
	}
	return k.Admit(time.Now())
}

// enter takes one of Options.MaxRequests places for a request, until leave is
// called.
func (s *Server) enter() (leave func(), err error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	return s.places.Enter()
}

package server

import (
	"net/http"
	"time"

	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/api"
)

// errKey answers a request that shows none of the keys that are configured.
var errKey = &api.Fault{Status: http.StatusUnauthorized, Type: api.TypeAuth, Code: "invalid_api_key",
	Message: "Incorrect or missing API key. Send it as 'Authorization: Bearer KEY'."}

// shownKey returns what a request shows as a bearer's key.
func shownKey(r *http.Request) string {
	shown := r.Header.Get("Authorization")
	if key := r.Header.Get("X-Api-Key"); key != "" && shown == "" {
		return "Bearer " + key // Anthropic's clients
	}
	return shown
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

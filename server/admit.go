package server

import (
	"net/http"
	"strconv"
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

// enter takes one of Options.MaxRequests places for a request, and one of its key's, until
// leave is called.
func (s *Server) enter(k *admission.Key) (leave func(), err error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	free, err := s.places.Enter()
	if err != nil {
		return nil, err
	}
	out, err := k.Enter()
	if err != nil {
		free()
		return nil, err
	}
	return func() { out(); free() }, nil
}

// reserve sets aside what a request may take of its key's tokens: those of its body, at four
// bytes each, and as many more as it allows for. settle charges what was spent.
func (s *Server) reserve(c *api.Call, allowed int) (settle func(spent int), err error) {
	settle, err = c.Key.Reserve(c.Size/4 + allowed)
	s.showRates(c)
	return settle, err
}

// allowed returns how many tokens an answer may come to, as far as the request says: without
// a limit of its own, an answer is charged when it is there.
func allowed(a *api.Ask) (n int) {
	for _, req := range a.Requests {
		answers := req.N
		if a.Search != nil {
			answers = max(answers, a.Search.Plan.N)
		}
		tokens := max(0, req.Sampling.MaxTokens) * answers
		if a.Search != nil && a.Search.Plan.Budget.Tokens > 0 {
			tokens = min(tokens, a.Search.Plan.Budget.Tokens)
		}
		n += tokens
	}
	return n
}

// showRates tells a client where its key stands, in the headers of its API.
func (s *Server) showRates(c *api.Call) {
	requests, tokens := c.Key.Rates()
	show := openaiRates
	if p := s.protocolOf(c.Request); p.Rates != nil {
		show = p.Rates
	}
	for what, r := range map[string]*admission.Rate{"requests": requests, "tokens": tokens} {
		if r != nil {
			show(c.W.Header(), what, r)
		}
	}
}

// rateHeaders are the headers that pages of other origins may read of a key's rates.
const rateHeaders = "X-Ratelimit-Limit-Requests, X-Ratelimit-Remaining-Requests, X-Ratelimit-Reset-Requests, X-Ratelimit-Limit-Tokens, X-Ratelimit-Remaining-Tokens, X-Ratelimit-Reset-Tokens"

// openaiRates writes OpenAI's headers.
func openaiRates(h http.Header, what string, r *admission.Rate) {
	h.Set("X-Ratelimit-Limit-"+what, strconv.Itoa(r.Limit))
	h.Set("X-Ratelimit-Remaining-"+what, strconv.Itoa(r.Remaining))
	h.Set("X-Ratelimit-Reset-"+what, r.Reset.Round(time.Millisecond).String())
}

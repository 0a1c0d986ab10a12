package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jobs"
	"github.com/lutra-lm/lutra/server/jsonread"
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

// admitter lets requests in: by their keys, while there are places and memory.
type admitter struct {
	opt      *Options
	models   *published
	apis     apis
	keys     *admission.Keys
	places   *admission.Places
	memory   *admission.Memory
	requests *requests
	noted    func(path string) jsonread.Note // is told what is read of bodies, by the route's path; nil: nobody is
}

// identify finds the key that a call shows, and refuses a route that the key does not open.
func (a *admitter) identify(c *api.Call, route *api.Route) error {
	if route.Open {
		return nil
	}
	if c.Key = a.keyOf(c.Request); c.Key == nil {
		c.W.Header().Set("WWW-Authenticate", "Bearer")
		return errKey
	}
	recordOf(c.Context()).key = c.Key
	if route.Admin && !c.Key.Admin || route.Rules && !c.Key.Rules() {
		return api.ErrAdmin
	}
	return nil
}

// keyOf returns the key of a request, or of the batch whose line it is; nil for none of ours.
func (a *admitter) keyOf(r *http.Request) *admission.Key {
	if owner, ok := jobs.OwnerOf(r.Context()); ok {
		return a.keys.Owned(owner)
	}
	return a.keys.Of(shownKey(r))
}

// admit lets a request send its body, unless the server is not ready or has
// enough to do, or the key has spent its allowance.
func (a *admitter) admit(k *admission.Key) error {
	if err := a.models.ready(); err != nil {
		return err
	}
	if a.places.Full() {
		return admission.ErrBusy
	}
	return k.Admit(time.Now())
}

// enter takes one of Options.MaxRequests places for a request, and one of its key's, until
// leave is called.
func (a *admitter) enter(k *admission.Key) (leave func(), err error) {
	if err := a.models.ready(); err != nil {
		return nil, err
	}
	free, err := a.places.Enter()
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

// reserve sets aside tokens of a request's key: a token for four bytes of the body, and the most tokens that
// the request allows for. settle charges the tokens that were spent.
func (r *runner) reserve(c *api.Call, allowed int) (settle func(spent int), err error) {
	settle, err = c.Key.Reserve(c.Size/4 + allowed)
	r.apis.showRates(c)
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
func (a apis) showRates(c *api.Call) {
	requests, tokens := c.Key.Rates()
	show := openaiRates
	if p := a.of(c.Request); p.Rates != nil {
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

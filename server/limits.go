package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// keys are the clients that the server knows.
type keys struct {
	known  []*key
	anyone *key // set when no keys are configured: all clients share it
}

// key is one client with what it may still spend.
type key struct {
	name     string // for logs: begins the key's hash, and cannot be turned back into it
	hash     [sha256.Size]byte
	requests *rate.Limiter // nil: no limit
	tokens   *rate.Limiter // nil: no limit; may be in debt, for an answer's cost is known at its end
}

func newKeys(opt *Options) *keys {
	perMinute := func(n int) *rate.Limiter {
		if n == 0 {
			return nil
		}
		return rate.NewLimiter(rate.Limit(float64(n)/60), n)
	}
	fresh := func() *key {
		return &key{requests: perMinute(opt.RequestsPerMinute), tokens: perMinute(opt.TokensPerMinute)}
	}
	if len(opt.APIKeys) == 0 {
		return &keys{anyone: fresh()}
	}
	ks := &keys{}
	for _, secret := range opt.APIKeys {
		k := fresh()
		k.hash = sha256.Sum256([]byte(secret))
		k.name = hex.EncodeToString(k.hash[:4])
		ks.known = append(ks.known, k)
	}
	return ks
}

// find returns the key that a client has shown, nil for none of ours. It
// compares hashes, and all of them, so that its time tells nothing.
func (ks *keys) find(secret string) *key {
	hash := sha256.Sum256([]byte(secret))
	var found *key
	for _, k := range ks.known {
		if subtle.ConstantTimeCompare(hash[:], k.hash[:]) == 1 {
			found = k
		}
	}
	return found
}

// authenticate wants a bearer key when any are configured.
func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k := s.keys.anyone
		if k == nil {
			scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			if strings.EqualFold(scheme, "bearer") {
				k = s.keys.find(strings.TrimSpace(secret))
			}
		}
		if k == nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			s.fail(w, r, &apiError{Status: http.StatusUnauthorized, Type: typeAuth, Code: "invalid_api_key",
				Message: "Incorrect or missing API key. Send it as 'Authorization: Bearer KEY'."})
			return
		}
		note(r.Context()).key = k
		next.ServeHTTP(w, r)
	})
}

// admit lets a request send its body, unless the server is not ready or has
// enough to do, or the key has spent its allowance.
func (s *Server) admit(k *key) error {
	if err := s.ready(); err != nil {
		return err
	}
	if s.inFlight.Load() >= int64(s.opt.MaxRequests) {
		return busy()
	}
	if wait := k.wait(time.Now()); wait > 0 {
		return &apiError{Status: http.StatusTooManyRequests, Type: typeRateLimit, Code: "rate_limit_exceeded",
			Message: fmt.Sprintf("Rate limit reached. Please try again in %v.", wait.Round(time.Millisecond)), RetryAfter: wait}
	}
	return nil
}

// enter takes one of Options.MaxRequests places for a request, until leave is
// called.
func (s *Server) enter() (leave func(), err error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	if s.inFlight.Add(1) > int64(s.opt.MaxRequests) {
		s.inFlight.Add(-1)
		return nil, busy()
	}
	return func() { s.inFlight.Add(-1) }, nil
}

// wait takes one request from the allowance and returns 0, or takes nothing
// and returns the time until a request would be let through.
func (k *key) wait(now time.Time) time.Duration {
	if k.tokens != nil {
		if left := k.tokens.TokensAt(now); left < 1 {
			return time.Duration(math.Ceil((1 - left) / float64(k.tokens.Limit()) * float64(time.Second)))
		}
	}
	if k.requests == nil {
		return 0
	}
	r := k.requests.ReserveN(now, 1)
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return wait
	}
	return 0
}

// spend takes an answer's tokens from the allowance, into debt if need be.
func (k *key) spend(now time.Time, tokens int) {
	for k.tokens != nil && tokens > 0 {
		n := min(tokens, k.tokens.Burst())
		k.tokens.ReserveN(now, n)
		tokens -= n
	}
}

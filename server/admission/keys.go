package admission

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"math"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// Keys are the clients that the server knows.
type Keys struct {
	known  []*Key
	anyone *Key // set when no keys are configured: all clients share it
}

// Key is one client with what it may still spend.
type Key struct {
	Name     string // for logs and metrics: as given, or the beginning of the key's hash; empty: no keys are configured
	hash     [sha256.Size]byte
	requests *rate.Limiter // nil: no limit
	tokens   *rate.Limiter // nil: no limit; may be in debt, because an answer's cost is known at its end
}

// Owner identifies the key by its whole hash: what it stores is for it alone.
func (k *Key) Owner() string { return string(k.hash[:]) }

// NewKeys accepts these credentials; with none, all clients share one key. Each key may
// send so many requests and tokens a minute; 0: any.
func NewKeys(credentials []Credential, requests, tokens int) *Keys {
	perMinute := func(n int) *rate.Limiter {
		if n == 0 {
			return nil
		}
		return rate.NewLimiter(rate.Limit(float64(n)/60), n)
	}
	fresh := func() *Key {
		return &Key{requests: perMinute(requests), tokens: perMinute(tokens)}
	}
	if len(credentials) == 0 {
		return &Keys{anyone: fresh()}
	}
	ks := &Keys{}
	for _, c := range credentials {
		k := fresh()
		k.hash = sha256.Sum256([]byte(c.Key))
		k.Name = cmp.Or(c.Name, hex.EncodeToString(k.hash[:4]))
		ks.known = append(ks.known, k)
	}
	return ks
}

// Of returns the key of an Authorization header, nil for none of ours.
func (ks *Keys) Of(authorization string) *Key {
	if ks.anyone != nil {
		return ks.anyone
	}
	scheme, secret, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return nil
	}
	return ks.find(strings.TrimSpace(secret))
}

// find returns the key that a client has shown, nil for none of ours. It
// compares hashes, and all of them, so that its time reveals nothing.
func (ks *Keys) find(secret string) *Key {
	hash := sha256.Sum256([]byte(secret))
	var found *Key
	for _, k := range ks.known {
		if subtle.ConstantTimeCompare(hash[:], k.hash[:]) == 1 {
			found = k
		}
	}
	return found
}

// Admit takes one request from the allowance, or returns a *RateError.
func (k *Key) Admit(now time.Time) error {
	if wait := k.wait(now); wait > 0 {
		return &RateError{wait}
	}
	return nil
}

// wait takes one request from the allowance and returns 0, or takes nothing
// and returns the time until a request would be let through.
func (k *Key) wait(now time.Time) time.Duration {
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

// Spend takes an answer's tokens from the allowance, into debt if need be.
func (k *Key) Spend(now time.Time, tokens int) {
	for k.tokens != nil && tokens > 0 {
		n := min(tokens, k.tokens.Burst())
		k.tokens.ReserveN(now, n)
		tokens -= n
	}
}

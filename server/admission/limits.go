package admission

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits bound a key; 0: any number.
type Limits struct {
	Requests int      // a minute
	Tokens   int      // a minute, of prompts and completions
	AtOnce   int      // requests under way
	Models   []string // that it may use, by a name of theirs; nil: all
}

// Names of Limits, as lines of a file of keys have them.
const (
	LimitRequests = "requests_per_minute"
	LimitTokens   = "tokens_per_minute"
	LimitAtOnce   = "max_requests"
)

// Bounds of Limits.
const (
	MostRequests int64 = 1 << 30
	MostTokens   int64 = 1 << 40
	MostAtOnce   int64 = 1 << 16
)

// allowance is the rest of a key's limits.
//
// An answer's tokens are charged when they are known, into debt if need be. The most that a request may take
// is set aside meanwhile, apart from them: nothing is ever paid back.
type allowance struct {
	mu       sync.Mutex
	atOnce   int           // 0: no limit
	requests *rate.Limiter // nil: no limit
	tokens   *rate.Limiter // nil: no limit
	reserved int           // tokens set aside
	running  int
}

// limit sets the limits, from now on. What has been spent stays spent.
func (a *allowance) limit(now time.Time, l Limits) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.atOnce = l.AtOnce
	a.requests = perMinute(a.requests, now, l.Requests)
	a.tokens = perMinute(a.tokens, now, l.Tokens)
}

// perMinute returns a limiter of n a minute, l itself if there is one; nil for 0.
func perMinute(l *rate.Limiter, now time.Time, n int) *rate.Limiter {
	limit := rate.Limit(float64(n) / 60)
	switch {
	case n == 0:
		return nil
	case l == nil:
		return rate.NewLimiter(limit, n)
	}
	l.SetLimitAt(now, limit)
	l.SetBurstAt(now, n)
	return l
}

// left returns the tokens that are neither spent nor set aside. Locked.
func (a *allowance) left(now time.Time) float64 { return a.tokens.TokensAt(now) - float64(a.reserved) }

// after returns how long n more of what l limits take to come.
func after(l *rate.Limiter, n float64) time.Duration {
	return time.Duration(math.Ceil(max(0, n) / float64(l.Limit()) * float64(time.Second)))
}

// admit takes one request, or returns a *RateError and takes nothing.
func (a *allowance) admit(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tokens != nil {
		if left := a.left(now); left < 1 {
			return &RateError{LimitTokens, a.tokens.Burst(), after(a.tokens, 1-left)}
		}
	}
	if a.requests != nil && !a.requests.AllowN(now, 1) {
		return &RateError{LimitRequests, a.requests.Burst(), after(a.requests, 1-a.requests.TokensAt(now))}
	}
	return nil
}

// again is when a request may be tried once more that others of its key keep out.
const again = time.Second

// enter takes a place, or returns a *RateError.
func (a *allowance) enter() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.atOnce > 0 && a.running >= a.atOnce {
		return &RateError{LimitAtOnce, a.atOnce, again}
	}
	a.running++
	return nil
}

func (a *allowance) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running--
}

// reserve sets n tokens aside and returns how many, or returns a *RateError. More than a
// minute's tokens wait for all of these.
func (a *allowance) reserve(now time.Time, n int) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tokens == nil {
		return 0, nil
	}
	n = min(n, a.tokens.Burst())
	if short := float64(n) - a.left(now); short > 1e-6 { // TokensAt rounds
		return 0, &RateError{LimitTokens, a.tokens.Burst(), max(time.Millisecond, after(a.tokens, short))}
	}
	a.reserved += n
	return n, nil
}

// settle charges the tokens that were spent of those that were set aside.
func (a *allowance) settle(now time.Time, reserved, spent int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reserved -= reserved
	for a.tokens != nil && spent > 0 {
		n := min(spent, a.tokens.Burst())
		a.tokens.ReserveN(now, n)
		spent -= n
	}
}

// Rate is where a key stands with one of its limits.
type Rate struct {
	Limit, Remaining int
	Reset            time.Duration // until all of it is there again
}

// rates returns where the key stands with its requests and its tokens a minute; nil: no limit.
func (a *allowance) rates(now time.Time) (requests, tokens *Rate) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := func(l *rate.Limiter, aside int) *Rate {
		if l == nil {
			return nil
		}
		left := l.TokensAt(now) - float64(aside)
		return &Rate{Limit: l.Burst(), Remaining: max(0, int(left)), Reset: after(l, float64(l.Burst())-left)}
	}
	return of(a.requests, 0), of(a.tokens, a.reserved)
}

package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// temporary marks what may go well when it is tried again.
type temporary struct{ error }

func (t temporary) Unwrap() error { return t.error }

// later is a temporary failure whose server says when to come again.
type later struct {
	error
	after time.Duration
}

func (l later) Unwrap() error { return temporary{l.error} }

// retries counts failures in a row, after which a request is tried again.
type retries struct {
	failures int
	tell     func(err error, pause time.Duration) // before waiting; nil: nobody is told
}

// failed waits until it is time to try again, or says that it is not worth it.
func (p *retries) failed(ctx context.Context, c *client, err error) error {
	var again temporary
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.failures++; !errors.As(err, &again) || p.failures > maxFailures {
		return err
	}
	pause := min(firstRetry<<(p.failures-1), lastRetry)
	var asked later
	if errors.As(err, &asked) {
		if asked.after > maxRetryAfter {
			return fmt.Errorf("%w; it asks to wait for %v", err, asked.after)
		}
		pause = max(pause, asked.after)
	}
	if p.tell != nil {
		p.tell(err, pause)
	}
	return c.wait(ctx, pause)
}

// retry does something until it goes well, or no longer.
func (c *client) retry(ctx context.Context, do func() error) error {
	p := retries{tell: c.retrying}
	for {
		err := do()
		if err == nil {
			return nil
		}
		if err := p.failed(ctx, c, err); err != nil {
			return err
		}
	}
}

// refusal returns the error that a status other than success means; temporary where
// it may pass.
func (c *client) refusal(ref Ref, a *answer) error {
	if !c.ours(a.Request.URL) {
		err := fmt.Errorf("%s, to which the hub leads, answers %s", a.Request.URL.Host, a.Status)
		if a.StatusCode == http.StatusForbidden { // the signature in the URL has expired
			return temporary{err}
		}
		return passing(a.Response, err)
	}
	if ref.Tag != "" {
		return ollamaRefusal(ref, a)
	}
	code := a.Header.Get("X-Error-Code")
	switch {
	case code == "GatedRepo", a.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%s is gated: accept its conditions at %s, and set HF_TOKEN or log in with hf auth login", ref.ID(), c.at(ref.Owner, ref.Repo))
	case a.StatusCode == http.StatusUnauthorized && c.token != "":
		return fmt.Errorf("the hub does not accept the token (HF_TOKEN), or there is no repository %s", ref.ID())
	case a.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("there is no public repository %s; for a private one set HF_TOKEN or log in with hf auth login", ref.ID())
	case a.StatusCode == http.StatusNotFound && code == "EntryNotFound":
		return fmt.Errorf("%s is not there", ref)
	case a.StatusCode == http.StatusNotFound:
		return fmt.Errorf("there is no repository %s", ref.ID())
	}
	return passing(a.Response, fmt.Errorf("the hub answers %s", a.Status))
}

// passing marks errors of statuses that may pass.
func passing(resp *http.Response, err error) error {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if d, ok := retryAfter(resp.Header.Get("Retry-After"), time.Now()); ok {
			return later{err, d}
		}
		return temporary{err}
	case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return temporary{err}
	}
	return err
}

// retryAfter reads seconds or a date.
func retryAfter(v string, now time.Time) (time.Duration, bool) {
	if n, err := strconv.ParseInt(v, 10, 32); err == nil && n >= 0 {
		return time.Duration(n) * time.Second, true
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, t.Sub(now)), true
	}
	return 0, false
}

package workers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// worker is one server.
type worker struct {
	name   string // as the log and the metrics call it
	url    string
	key    string
	client *http.Client

	mu       sync.Mutex
	rests    time.Time // until when it is asked for nothing
	failures int       // in a row
	unproven int       // candidates that are all still to be checked
	jobs     int       // that it has now
	running  map[*attempt]struct{}
	counts   Counts
}

// Counts counts what became of the requests to a worker.
type Counts struct {
	Requests   map[Outcome]int64
	Jobs       int64 // candidates that it has gone on with until they ended
	Redone     int64 // that it was given and did not finish: another worker did, or this server
	Tokens     int64 // of those that it finished
	Checked    int64 // candidates of which some tokens were generated again here
	Mismatches int64 // that were wrong
	Resting    bool
}

// Outcome names the end of a request to a worker.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Failed  Outcome = "failed"  // no answer, or half of one
	Slow    Outcome = "slow"    // no token for worker_timeout, or tokens that take far longer than here
	Busy    Outcome = "busy"    // it has no room now
	Refused Outcome = "refused" // the key, the model, the build, or what was asked
	Wrong   Outcome = "wrong"   // what no server of this build can have answered
	Left    Outcome = "left"    // the search has ended before, or others were faster
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome { return []Outcome{Done, Failed, Slow, Busy, Refused, Wrong, Left} }

// How long workers rest.
const (
	leastRest = time.Second // doubled with each failure in a row
	mostRest  = time.Minute
	wrongRest = time.Hour
)

// proving is the number of a worker's first candidates that are all checked.
const proving = 16

// fault is why a request to a worker has failed.
type fault struct {
	outcome Outcome
	rest    time.Duration // 0: by the number of failures
	err     error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// wrong returns the fault of an answer that no server of this build gives.
func wrong(format string, args ...any) error {
	return &fault{Wrong, wrongRest, fmt.Errorf(format, args...)}
}

// newWorker makes a worker at an address, for the requests that url names, and reaches no other.
func newWorker(name, url, address, key string) *worker {
	var d net.Dialer
	transport := &http.Transport{ // no proxy
		DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) },
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        time.Minute, // less than server.idle_timeout
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &worker{
		name: name, url: url, key: key, client: &http.Client{Transport: transport, CheckRedirect: stay},
		unproven: proving, running: map[*attempt]struct{}{}, counts: Counts{Requests: map[Outcome]int64{}},
	}
}

// post sends a request and hands its events to each, until the answer ends.
func (w *worker) post(ctx context.Context, r *request, tokens int, each func(*event) error) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	if w.key != "" {
		req.Header.Set("Authorization", "Bearer "+w.key)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refusal(resp)
	}
	if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return wrong("the answer is %.80q, not a stream of events", kind)
	}
	return readEvents(resp.Body, moreBytes+int64(tokens)*eventBytes, each)
}

// refusal returns the fault of an answer of another status than 200.
func refusal(resp *http.Response) error {
	switch code := resp.StatusCode; {
	case code >= 300 && code < 400:
		return &fault{Refused, mostRest, fmt.Errorf("%s: it sends to %.120q, where nobody is asked", resp.Status, resp.Header.Get("Location"))}
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		rest := leastRest
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
			rest = min(max(time.Duration(s)*time.Second, leastRest), mostRest)
		}
		return &fault{Busy, rest, fmt.Errorf("%s: %s", resp.Status, said(resp.Body))}
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusNotFound:
		return &fault{Refused, mostRest, fmt.Errorf("%s: %s", resp.Status, said(resp.Body))}
	case code >= 400 && code < 500: // this request, not every one
		return &fault{Refused, leastRest, fmt.Errorf("%s: %s", resp.Status, said(resp.Body))}
	}
	return fmt.Errorf("%s: %s", resp.Status, said(resp.Body))
}

// ready reports whether the worker can be asked, and how much it has to do.
func (w *worker) ready(now time.Time) (jobs int, ready bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.jobs, !now.Before(w.rests)
}

// begin notes an attempt.
func (w *worker) begin(a *attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs += len(a.jobs)
	w.running[a] = struct{}{}
}

// end notes how an attempt has ended, and how long the worker rests.
func (w *worker) end(a *attempt, now time.Time, err error) (outcome Outcome, rest time.Duration) {
	outcome = Done
	if f := (*fault)(nil); errors.As(err, &f) {
		outcome, rest = f.outcome, f.rest
	} else if err != nil {
		outcome = Failed
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs -= len(a.jobs)
	delete(w.running, a)
	w.counts.Requests[outcome]++
	switch outcome {
	case Done:
		w.failures = 0
	case Left:
		return outcome, 0
	case Failed, Slow:
		rest = min(leastRest<<min(w.failures, 16), mostRest)
		w.failures++
	}
	if rest > 0 {
		w.rest(now.Add(rest))
	}
	return outcome, rest
}

// rest has the worker asked for nothing until then. Locked.
func (w *worker) rest(until time.Time) {
	if until.After(w.rests) {
		w.rests = until
	}
}

// finished counts a job that the worker has gone on with to its end.
func (w *worker) finished(tokens int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Jobs++
	w.counts.Tokens += int64(tokens)
}

// left counts jobs that the worker has not finished.
func (w *worker) left(jobs int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Redone += int64(jobs)
}

// doubted reports whether what the worker generates is all to be checked.
func (w *worker) doubted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unproven > 0
}

// checked notes that a candidate was right, or that it was not: the worker then rests
// for long, and what it is doing is taken from it.
func (w *worker) checked(now time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Checked++
	if err == nil {
		w.unproven = max(w.unproven-1, 0)
		return
	}
	w.counts.Mismatches++
	w.counts.Redone++
	w.unproven = proving
	w.rest(now.Add(wrongRest))
	for a := range w.running {
		a.cancel(&fault{Wrong, wrongRest, errors.New("other tokens of it are wrong")})
	}
}

// stats returns the counts so far.
func (w *worker) stats(now time.Time) Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.counts
	c.Requests = map[Outcome]int64{}
	for _, o := range Outcomes() {
		c.Requests[o] = w.counts.Requests[o]
	}
	c.Resting = now.Before(w.rests)
	return c
}

package adversary

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Options are the clients and their limits.
type Options struct {
	URL      string        // of the server, without /v1
	Clients  int           // hostile ones
	Plain    int           // clients that ask one question after the other
	Rounds   int           // requests of each hostile client; 0: until ctx ends
	BodySize int           // bytes of huge bodies
	Line     int           // bytes a second that all bodies share; 0: 100 MB, a gigabit's
	Patience time.Duration // of slow clients, and between requests
	Limit    time.Duration // after which a request that has not ended is stuck
	Seed     uint64
}

// Report counts the outcomes of the requests.
type Report struct {
	Requests map[string]map[string]int // kind → status, "left" or "cut" → number
	Stuck    []string                  // kinds of requests that did not end within the limit
	Failed   []string                  // what must not happen: internal errors, wrong answers
	Asked    int                       // questions asked during the attack
	Refused  int                       // of them, with 429 or 503
	Alone    []time.Duration           // what questions took alone, sorted
	Beside   []time.Duration           // what they took during the attack, sorted
}

// Worst returns the time of the slowest question during the attack, divided by the time of the slowest
// one without it.
func (r *Report) Worst() float64 {
	if len(r.Alone) == 0 || len(r.Beside) == 0 {
		return 0
	}
	return float64(r.Beside[len(r.Beside)-1]) / float64(r.Alone[len(r.Alone)-1])
}

// run is one run.
type run struct {
	opt       Options
	host      string
	http      *http.Client
	bodies    []Body
	line      *rate.Limiter
	demanding chan struct{} // places for clients that want answers from a model

	mu     sync.Mutex
	report Report
	answer string // to the question
}

// questionsAlone are asked by each plain client before the others come.
const questionsAlone = 20

// Run asks questions alone, then while hostile clients attack, until those have done
// their rounds or ctx has ended. It returns when all requests have ended or are stuck.
func Run(ctx context.Context, opt Options) (*Report, error) {
	at, err := url.Parse(opt.URL)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: opt.Clients + opt.Plain, DisableCompression: true}
	defer transport.CloseIdleConnections()
	r := &run{opt: opt, host: at.Host, http: &http.Client{Transport: transport}, bodies: Bodies(opt.BodySize), demanding: make(chan struct{}, 2)}
	r.line = rate.NewLimiter(rate.Limit(cmp.Or(opt.Line, 100_000_000)), lineBlock)
	r.report.Requests = map[string]map[string]int{}
	if err := r.each(opt.Plain, func(i int) error { return r.askAlone(ctx) }); err != nil {
		return nil, fmt.Errorf("a question to a server that has nothing else to do: %w", err)
	}
	peace, over := context.WithCancel(context.WithoutCancel(ctx))
	var plain sync.WaitGroup
	for range opt.Plain {
		plain.Go(func() { r.askBeside(peace) })
	}
	_ = r.each(opt.Clients, func(i int) error {
		r.attack(ctx, i)
		return nil
	})
	over()
	plain.Wait()
	slices.Sort(r.report.Alone)
	slices.Sort(r.report.Beside)
	return &r.report, nil
}

// each calls f for 0 to n-1 at once and joins the errors.
func (r *run) each(n int, f func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// attack sends one hostile request after the other.
func (r *run) attack(ctx context.Context, i int) {
	c := &client{run: r, rnd: rand.New(rand.NewPCG(r.opt.Seed, uint64(i)))}
	breath := func(most time.Duration) {
		select {
		case <-time.After(time.Duration(c.rnd.Int64N(int64(most) + 1))):
		case <-ctx.Done():
		}
	}
	breath(r.opt.Patience) // all at once would overload the machine, which they share with the server
	for round := 0; (r.opt.Rounds == 0 || round < r.opt.Rounds) && ctx.Err() == nil; round++ {
		a := acts[(i+round)%len(acts)]
		r.once(a.name, func(limited context.Context) (string, error) { return a.do(limited, c) })
		breath(r.opt.Patience / 4)
	}
}

// once sends one request and records its outcome.
func (r *run) once(kind string, do func(context.Context) (string, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), r.opt.Limit)
	defer cancel()
	outcome, err := do(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		r.report.Stuck = append(r.report.Stuck, kind)
		outcome = "stuck"
	case err != nil && broken(err):
		outcome = cut
	case err != nil:
		r.fail("%s: %v", kind, err)
		outcome = "failed"
	case outcome == "500":
		r.fail("%s: status 500", kind)
	}
	if r.report.Requests[kind] == nil {
		r.report.Requests[kind] = map[string]int{}
	}
	r.report.Requests[kind][outcome]++
}

// fail records what must not happen. r.mu is locked.
func (r *run) fail(format string, args ...any) {
	const most = 20
	if len(r.report.Failed) < most {
		r.report.Failed = append(r.report.Failed, fmt.Sprintf(format, args...))
	}
}

// question is small and has one answer.
const question = `{"messages":[{"role":"user","content":"What is 12 * 7?"}],"temperature":0,"max_tokens":256,"ignore_eos":true}`

var errRefused = errors.New("refused")

// mostAnswer bounds what is read of an answer, in bytes.
const mostAnswer = 64 << 20

// ask asks the question.
func (r *run) ask(ctx context.Context) (answer string, took time.Duration, err error) {
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.opt.URL+"/v1/chat/completions", strings.NewReader(question))
	if err != nil {
		return "", 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.http.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		return "", 0, err
	}
	took = time.Since(began)
	var got struct {
		Choices []struct{ Message struct{ Content string } }
	}
	switch {
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable:
		return "", took, errRefused
	case resp.StatusCode != http.StatusOK || json.Unmarshal(body, &got) != nil || len(got.Choices) != 1:
		return "", took, fmt.Errorf("status %d: %.200s", resp.StatusCode, body)
	}
	return got.Choices[0].Message.Content, took, nil
}

// askAlone learns the answer and how long it takes. The server warms up during the
// first questions.
func (r *run) askAlone(ctx context.Context) error {
	for i := range 2 * questionsAlone {
		answer, took, err := r.ask(ctx)
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.answer = answer
		if i >= questionsAlone {
			r.report.Alone = append(r.report.Alone, took)
		}
		r.mu.Unlock()
	}
	return nil
}

// askBeside asks until ctx ends.
func (r *run) askBeside(ctx context.Context) {
	for ctx.Err() == nil {
		r.once("question", func(limited context.Context) (string, error) {
			answer, took, err := r.ask(limited)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.report.Asked++
			switch {
			case errors.Is(err, errRefused):
				r.report.Refused++
				return "refused", nil
			case err != nil:
				r.fail("question: %v", err)
				return "failed", nil
			case answer != r.answer:
				r.fail("question: the answer is %q, and alone it was %q", answer, r.answer)
			}
			r.report.Beside = append(r.report.Beside, took)
			return "200", nil
		})
		select {
		case <-time.After(r.opt.Patience / 50):
		case <-ctx.Done():
		}
	}
}

// String returns the report for people.
func (r *Report) String() string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(r.Requests)) {
		fmt.Fprintf(&b, "%-16s", kind)
		for _, outcome := range slices.Sorted(maps.Keys(r.Requests[kind])) {
			fmt.Fprintf(&b, " %s: %d", outcome, r.Requests[kind][outcome])
		}
		b.WriteByte('\n')
	}
	middle := func(d []time.Duration) time.Duration {
		if len(d) == 0 {
			return 0
		}
		return d[len(d)/2].Round(100 * time.Microsecond)
	}
	last := func(d []time.Duration) time.Duration {
		if len(d) == 0 {
			return 0
		}
		return d[len(d)-1].Round(100 * time.Microsecond)
	}
	fmt.Fprintf(&b, "questions alone: median %v, slowest %v\n", middle(r.Alone), last(r.Alone))
	fmt.Fprintf(&b, "questions beside: %d, refused %d, median %v, slowest %v (%.1f times the slowest alone)\n", r.Asked, r.Refused, middle(r.Beside), last(r.Beside), r.Worst())
	fmt.Fprintf(&b, "stuck: %d %v\n", len(r.Stuck), r.Stuck)
	for _, f := range r.Failed {
		fmt.Fprintf(&b, "must not be: %s\n", f)
	}
	return b.String()
}

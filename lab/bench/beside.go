package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
)

// phase is a time of constant load.
type phase struct {
	name     string
	from, to time.Time
}

func (p *phase) holds(t time.Time) bool { return !t.Before(p.from) && !t.After(p.to) }

// PhaseReport has the clients' measurements of a phase. Times are in milliseconds.
type PhaseReport struct {
	Name    string      `json:"name"`
	Seconds float64     `json:"seconds"`
	Begun   int         `json:"requests_begun"`
	TPOT    Percentiles `json:"tpot_ms"` // of the parts of answers that came in this phase
	TTFT    Percentiles `json:"ttft_ms"` // of requests begun in this phase
}

// BesideReport is the object of `bench serve --beside --json`. Ratios are the median beside the other load over the mean of the
// medians in the phases before and after.
type BesideReport struct {
	URL         string        `json:"url"`
	Model       string        `json:"model"`
	Concurrency int           `json:"concurrency"`
	Beside      string        `json:"beside"`
	Phases      []PhaseReport `json:"phases"`
	TPOTRatio   Spread        `json:"tpot_ratio"`
	TTFTRatio   Spread        `json:"ttft_ratio"`
	Errors      int           `json:"errors"`
	FirstError  string        `json:"first_error,omitempty"`
	Completed   int           `json:"beside_requests"` // complete requests of the other load
}

// parseBeside reads --beside. Keys that it leaves out are as in o.
func parseBeside(o LoadOptions) (LoadOptions, error) {
	load := o
	load.Concurrency, load.Requests = 1, 0
	for _, part := range strings.Split(o.Beside, ",") {
		key, value, ok := strings.Cut(part, "=")
		numbers := map[string]*int{"c": &load.Concurrency, "n": &load.Requests, "prompt-words": &load.PromptWords, "max-tokens": &load.MaxTokens}
		texts := map[string]*string{"model": &load.Model, "url": &load.URL}
		switch {
		case ok && texts[key] != nil && value != "":
			*texts[key] = value
		case ok && numbers[key] != nil:
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return load, usage.Errorf("--beside: %s=%q is not a positive number", key, value)
			}
			*numbers[key] = n
		default:
			return load, usage.Errorf("--beside: %q is none of model=, url=, c=, n=, prompt-words=, max-tokens=", part)
		}
	}
	load.first = 1 << 24 // prompts unlike the clients'
	return load, nil
}

// clients ask until ctx ends, or o.Requests times if that is not 0.
type clients struct {
	all     sync.WaitGroup
	mu      sync.Mutex
	samples []sample
}

func startClients(ctx context.Context, o LoadOptions, client *apiclient.Client) *clients {
	c := &clients{}
	var next atomic.Int64
	for range o.Concurrency {
		c.all.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1) - 1)
				if o.Requests > 0 && i >= o.Requests {
					return
				}
				s := oneRequest(ctx, client, o, i)
				c.mu.Lock()
				c.samples = append(c.samples, s)
				c.mu.Unlock()
				if s.err != nil && !sleep(ctx, time.Second/10) { // do not flood a server that refuses
					return
				}
			}
		})
	}
	return c
}

// sleep reports whether ctx lasted longer than d.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// loadBeside measures what another load does to the clients.
func loadBeside(parent context.Context, o LoadOptions) (Report, error) {
	load, err := parseBeside(o)
	if err != nil {
		return nil, err
	}
	if o.Phase <= 0 || o.Rounds < 1 {
		return nil, usage.Errorf("--phase and --rounds must be positive")
	}
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	o.Requests = 0
	client, err := o.connect(ctx)
	if err != nil {
		return nil, err
	}
	m := alternation{load: load, phase: o.Phase}
	if m.client, err = m.load.connect(ctx); err != nil {
		return nil, err
	}
	ours := startClients(ctx, o, client)
	defer ours.all.Wait()
	defer cancel()

	ok := m.alone(ctx)
	for i := 0; ok && i < o.Rounds; i++ {
		ok = m.beside(ctx) && m.alone(ctx)
	}
	cancel()
	ours.all.Wait()
	if !ok {
		return nil, parent.Err()
	}
	r, err := reportBeside(o, ours.samples, m.samples, m.phases)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// alternation runs a load in every other phase.
type alternation struct {
	load    LoadOptions
	client  *apiclient.Client // of the load
	phase   time.Duration
	phases  []phase
	samples []sample // of the load
}

// settle waits for a change to take effect; this time belongs to no phase.
func (m *alternation) settle(ctx context.Context) bool { return sleep(ctx, m.phase/4) }

// alone runs a phase without the load. Like beside, it reports whether ctx lasted.
func (m *alternation) alone(ctx context.Context) bool {
	return m.settle(ctx) && m.hold("alone", func() bool { return sleep(ctx, m.phase) })
}

// beside runs a phase with the load.
func (m *alternation) beside(ctx context.Context) (ok bool) {
	loaded, unload := context.WithCancel(ctx)
	other := startClients(loaded, m.load, m.client)
	defer func() {
		unload()
		other.all.Wait()
		m.samples = append(m.samples, other.samples...)
		m.load.first += len(other.samples)
	}()
	if m.load.Requests > 0 {
		return m.hold("beside", func() bool { other.all.Wait(); return ctx.Err() == nil })
	}
	return m.settle(ctx) && m.hold("beside", func() bool { return sleep(ctx, m.phase) })
}

// hold records a phase that lasts until wait returns.
func (m *alternation) hold(name string, wait func() bool) bool {
	from := time.Now()
	ok := wait()
	m.phases = append(m.phases, phase{name, from, time.Now()})
	return ok
}

// leastPieces is the number of pieces of an answer that must come in a phase to count there.
const leastPieces = 5

// reportBeside assigns the clients' requests to the phases: alone, beside, alone,
// beside, ... alone.
func reportBeside(o LoadOptions, plain, other []sample, phases []phase) (BesideReport, error) {
	r := BesideReport{URL: o.URL, Model: o.Model, Concurrency: o.Concurrency, Beside: o.Beside}
	count := func(samples []sample) (whole int) {
		for _, s := range samples {
			switch {
			case s.err == nil:
				whole++
			case !errors.Is(s.err, context.Canceled):
				r.Errors++
				if r.FirstError == "" {
					r.FirstError = s.err.Error()
				}
			}
		}
		return whole
	}
	answered := count(plain)
	if r.Completed = count(other); r.Errors > 0 && (answered == 0 || r.Completed == 0) {
		return r, fmt.Errorf("no request succeeded, or none of the other load: %s", r.FirstError)
	}
	each := tokensPerPiece(plain)
	for _, p := range phases {
		pr := PhaseReport{Name: p.name, Seconds: p.to.Sub(p.from).Seconds()}
		var ttft, tpot []float64
		for _, s := range plain {
			if p.holds(s.begun) {
				pr.Begun++
				if len(s.texts) > 0 {
					ttft = append(ttft, milliseconds(s.texts[0].Sub(s.begun)))
				}
			}
			var within []time.Time
			for _, t := range s.texts {
				if p.holds(t) {
					within = append(within, t)
				}
			}
			if n := len(within); n >= leastPieces {
				tpot = append(tpot, milliseconds(within[n-1].Sub(within[0]))/float64(n-1)/each)
			}
		}
		pr.TTFT, pr.TPOT = percentilesOf(ttft), percentilesOf(tpot)
		r.Phases = append(r.Phases, pr)
	}
	var tpot, ttft []float64
	for i := 1; i+1 < len(r.Phases); i += 2 {
		before, beside, after := r.Phases[i-1], r.Phases[i], r.Phases[i+1]
		tpot = appendRatio(tpot, beside.TPOT, before.TPOT, after.TPOT)
		ttft = appendRatio(ttft, beside.TTFT, before.TTFT, after.TTFT)
	}
	r.TPOTRatio, r.TTFTRatio = spreadOf(tpot), spreadOf(ttft)
	return r, nil
}

// appendRatio adds the ratio of v's median to the mean of a's and b's, if all are known.
func appendRatio(ratios []float64, v, a, b Percentiles) []float64 {
	if v.P50 == 0 || a.P50 == 0 || b.P50 == 0 {
		return ratios
	}
	return append(ratios, 2*v.P50/(a.P50+b.P50))
}

// tokensPerPiece returns the tokens that a piece of text holds, by the complete answers;
// 1 if there is none.
func tokensPerPiece(samples []sample) float64 {
	tokens, pieces := 0, 0
	for _, s := range samples {
		if s.err == nil && s.produced > 0 {
			tokens, pieces = tokens+s.produced, pieces+len(s.texts)
		}
	}
	if tokens == 0 || pieces == 0 {
		return 1
	}
	return float64(tokens) / float64(pieces)
}

// Print implements Report.
func (r BesideReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "%d clients of %s; beside them %s, %d requests to the end; %d errors\n", r.Concurrency, r.Model, r.Beside, r.Completed, r.Errors)
	if r.FirstError != "" {
		fmt.Fprintf(w, "first error: %s\n", r.FirstError)
	}
	fmt.Fprintln(w)
	rows := [][]string{{"", "seconds", "requests", "TPOT ms p50", "p90", "TTFT ms p50", "p90"}}
	for _, p := range r.Phases {
		rows = append(rows, []string{
			p.Name, fmt.Sprintf("%.1f", p.Seconds), strconv.Itoa(p.Begun),
			fmt.Sprintf("%.3f", p.TPOT.P50), fmt.Sprintf("%.3f", p.TPOT.P90), fmt.Sprintf("%.1f", p.TTFT.P50), fmt.Sprintf("%.1f", p.TTFT.P90),
		})
	}
	if err := output.Table(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nbeside to alone: TPOT %s, TTFT %s times\n", r.TPOTRatio.format(2), r.TTFTRatio.format(2))
	return err
}

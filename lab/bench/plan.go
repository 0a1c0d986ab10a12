package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
)

// PlanOptions say what servers like this machine are to serve.
type PlanOptions struct {
	Source
	Threads int
	Rate    float64       // requests a second, of all clients together
	Prompt  int           // tokens of a prompt that no cache holds
	Output  int           // tokens of an answer
	N       int           // candidates a request, which share its prompt
	P95     time.Duration // what 95 of 100 requests may take at most
	Price   float64       // of a machine an hour; 0: not known
	Streams int           // sequences that one server decodes at once
	Reps    int           // runs a point of the curve, of which the best counts

	ran func() // nil, or called after each point
}

// DefaultPlanOptions returns plain requests of a chat.
func DefaultPlanOptions() PlanOptions {
	return PlanOptions{Rate: 1, Prompt: 200, Output: 100, N: 1, P95: 10 * time.Second, Streams: 64, Reps: 3}
}

func (o *PlanOptions) validate() error {
	if err := config.CheckThreads(o.Threads); err != nil {
		return usage.Errorf("--%w", err)
	}
	switch {
	case !(o.Rate > 0 && o.Rate <= 1e6):
		return usage.Errorf("--rate must be positive, and at most a million")
	case !(o.Price >= 0 && o.Price <= 1e9):
		return usage.Errorf("--price must not be negative, nor more than a thousand million")
	case o.P95 <= 0:
		return usage.Errorf("--p95 must be positive")
	case o.Prompt < 1 || o.Output < 1 || o.Prompt > 1<<20 || o.Output > 1<<20:
		return usage.Errorf("--prompt and --output must be from 1 to %d", 1<<20)
	case o.Streams < 1 || o.Streams > batcher.DefaultOptions().StepRows:
		return usage.Errorf("--streams must be from 1 to %d", batcher.DefaultOptions().StepRows)
	case o.N < 1 || o.N > o.Streams:
		return usage.Errorf("--n must be from 1 to --streams, which is %d", o.Streams)
	case o.Reps < 1:
		return usage.Errorf("--reps must be positive")
	}
	return nil
}

// PlanReport is the report of `bench plan`: measurements, and the model's results from them.
type PlanReport struct {
	Model   string  `json:"model"`
	Threads int     `json:"threads"`
	Rate    float64 `json:"rate"`
	Prompt  int     `json:"prompt_tokens"`
	Output  int     `json:"output_tokens"`
	N       int     `json:"n"`
	P95     float64 `json:"p95_limit_s"`
	// Measured.
	PromptMS  float64     `json:"prompt_ms"`  // a prompt by itself
	ContextMS float64     `json:"context_ms"` // by which half an answer's context makes a step longer, for each sequence
	Steps     []PlanPoint `json:"steps"`
	// Modelled.
	Limit     float64 `json:"modelled_limit_per_s"` // requests a second at which one server is never idle
	Sustained float64 `json:"modelled_rate_per_s"`  // requests a second that one server answers within P95
	Replicas  int     `json:"modelled_replicas"`
	Each      Loaded  `json:"modelled_replica"`          // one of the replicas
	Hourly    float64 `json:"cost_an_hour,omitempty"`    // of all
	Million   float64 `json:"cost_a_million,omitempty"`  // delivered tokens, one candidate's a request
	Price     float64 `json:"price_a_replica,omitempty"` // an hour
	// Search is one request alone whose candidates several machines share; N > 1.
	Search []SharedSearch `json:"modelled_search,omitempty"`
}

// SharedSearch is a search whose candidates several machines generate.
type SharedSearch struct {
	Machines int     `json:"machines"`
	Each     int     `json:"candidates_each"` // at most
	Seconds  float64 `json:"s"`
	Gain     float64 `json:"gain"` // how many times faster than on one
}

// PlanPoint is a measured step.
type PlanPoint struct {
	Streams int     `json:"streams"`
	MS      float64 `json:"step_ms"` // with the context of half an answer
	TokS    float64 `json:"tok_s"`
}

// Plan measures what steps cost on this machine, and models from that how many such
// machines answer the requests in time. Progress goes to errOut. Where ctx ends, the report
// has the steps that were measured until then, and models nothing.
func Plan(ctx context.Context, o PlanOptions, errOut io.Writer) (Report, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	r, costs, err := o.measure(ctx, errOut)
	switch {
	case err != nil && len(r.Steps) > 0:
		return r, err
	case err != nil:
		return nil, err
	}
	alone := (r.PromptMS + float64(o.Output-1)*costs.step(o.N, 0)) / 1000
	if alone > o.P95.Seconds() {
		return nil, fmt.Errorf("a request by itself takes %.2f s on this machine, more than --p95 %v: no number of such machines answers in time", alone, o.P95)
	}
	r.Search = costs.shared(o.N, r.PromptMS, o.Output)
	load := plannedLoad{prompt: o.Prompt, output: o.Output, n: o.N, streams: o.Streams}
	r.Limit = costs.limit(load)
	r.Sustained = sustained(costs, load, o.P95.Seconds())
	if r.Sustained == 0 {
		return nil, fmt.Errorf("95 of 100 requests within %v leave no room for a second one beside the first: a request by itself takes %.2f s", o.P95, alone)
	}
	r.Replicas = int(math.Ceil(o.Rate / r.Sustained))
	load.rate = o.Rate / float64(r.Replicas)
	r.Each = simulate(costs, load)
	r.Hourly = o.Price * float64(r.Replicas)
	r.Million = r.Hourly / (o.Rate * 3600 * float64(o.Output)) * 1e6
	return r, nil
}

// measure finds out what steps cost: by the streams that they decode, by the context
// before these, and by the tokens of prompts.
func (o *PlanOptions) measure(ctx context.Context, errOut io.Writer) (r PlanReport, costs stepCosts, err error) {
	pool, err := engines.NewPool(o.Threads)
	if err != nil {
		return r, costs, err
	}
	defer pool.Close()
	bundle, err := o.load(ctx, pool)
	if err != nil {
		return r, costs, err
	}
	defer func() { err = errors.Join(err, bundle.Close()) }()
	const decode = 16 // tokens a sequence
	before := o.Prompt + o.Output/2
	if has := bundle.Model.Config().Context; o.Prompt+o.Output > has || before+decode+1 > has {
		return r, costs, usage.Errorf("--prompt %d and --output %d are longer than the model's context of %d", o.Prompt, o.Output, has)
	}
	run := growthRun{GrowthOptions: GrowthOptions{Source: o.Source, Reps: o.Reps}}
	tests := []growthTest{
		{"context", "prefill", o.Prompt, engineTest{prompt: o.Prompt, width: 1}},
		{"context", "decode", 1, engineTest{prompt: 1, decode: decode, width: 1}},
		{"context", "decode", before, engineTest{prompt: before, decode: decode, width: 1}},
	}
	curve := upTo(o.Streams)
	for _, n := range curve {
		tests = append(tests, growthTest{"batch", "decode", n, engineTest{prompt: 1, decode: decode, width: n}})
	}
	meter := &output.Meter{W: errOut, What: "points"}
	defer meter.End()
	done := meter.Count(0, len(tests))
	const first = 3 // points before the curve's
	points := make([]GrowthPoint, len(tests))
	for i, t := range tests {
		points[i], err = run.point(ctx, bundle, pool, t, i > 0)
		if err != nil && (ctx.Err() == nil || i <= first) {
			return r, costs, fmt.Errorf("%s %s of %d: %w", t.axis, t.series, t.x, err)
		}
		if err != nil {
			curve = curve[:i-first]
			break
		}
		if done(); o.ran != nil {
			o.ran()
		}
	}
	r = PlanReport{
		Model: o.name(bundle), Threads: pool.Threads(), Rate: o.Rate, Prompt: o.Prompt, Output: o.Output, N: o.N, P95: o.P95.Seconds(), Price: o.Price,
		PromptMS: points[0].MS * float64(o.Prompt), ContextMS: max(0, points[2].MS-points[1].MS),
	}
	costs = stepCosts{prompt: points[0].MS, lanes: curve}
	for i, n := range curve {
		costs.ms = append(costs.ms, points[first+i].MS*float64(n)+r.ContextMS*float64(n))
	}
	for i, n := range curve {
		if i > 0 { // noise must not make more streams cheaper
			costs.ms[i] = max(costs.ms[i], costs.ms[i-1])
		}
		r.Steps = append(r.Steps, PlanPoint{n, costs.ms[i], 1000 * float64(n) / costs.ms[i]})
	}
	return r, costs, err
}

// machines counts them in words.
func machines(n int) string {
	if n == 1 {
		return "1 machine"
	}
	return fmt.Sprintf("%d machines", n)
}

// Print implements Report.
func (r PlanReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "measured: %s, %d threads, a prompt of %d tokens by itself %.1f ms, steps with a context of %d tokens:\n\n",
		r.Model, r.Threads, r.Prompt, r.PromptMS, r.Prompt+r.Output/2)
	rows := [][]string{{"streams", "ms a step", "tok/s"}}
	for _, p := range r.Steps {
		rows = append(rows, []string{fmt.Sprint(p.Streams), fmt.Sprintf("%.2f", p.MS), fmt.Sprintf("%.0f", p.TokS)})
	}
	if err := output.Table(w, rows); err != nil || r.Replicas == 0 {
		return err
	}
	fmt.Fprintf(w, "\nmodelled: one replica answers %.3g requests a second, 95 of 100 of them within %.3g s, and %.3g at most\n", r.Sustained, r.P95, r.Limit)
	fmt.Fprintf(w, "modelled: replicas for %.3g requests a second with n = %d: %d\n\n", r.Rate, r.N, r.Replicas)
	row := func(name string, a, b float64) []string {
		return []string{name, fmt.Sprintf("%.3g", a), fmt.Sprintf("%.3g", b)}
	}
	if err := output.Table(w, [][]string{
		{"of one of them, modelled", "p50", "p95"},
		row("time to first token, s", r.Each.TTFT[0], r.Each.TTFT[1]),
		row("latency, s", r.Each.Latency[0], r.Each.Latency[1]),
		row("streams", r.Each.Streams[0], r.Each.Streams[1]),
	}); err != nil {
		return err
	}
	if r.Search != nil {
		rows := [][]string{{"one search, alone, modelled", "candidates each", "s", "gain"}}
		for _, s := range r.Search {
			rows = append(rows, []string{machines(s.Machines), fmt.Sprint(s.Each), fmt.Sprintf("%.3g", s.Seconds), fmt.Sprintf("%.2f", s.Gain)})
		}
		fmt.Fprintln(w)
		if err := output.Table(w, rows); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "\nbusy: %.0f %%", 100*r.Each.Busy)
	if r.Price > 0 {
		fmt.Fprintf(w, "; cost: %.4g an hour, %.3g a million delivered tokens", r.Hourly, r.Million)
	}
	_, err := fmt.Fprintln(w)
	return err
}

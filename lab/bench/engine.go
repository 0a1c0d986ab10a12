package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models"
)

// EngineResult is one line of `bench engine --json`.
type EngineResult struct {
	Model   string  `json:"model"`
	Threads int     `json:"threads"`
	Test    string  `json:"test"`
	TokS    float64 `json:"tok_s"` // median of the repetitions
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	CPU     float64 `json:"cpu_ms"`       // processor time a token, of all threads, in the median
	Fill    float64 `json:"lanes_filled"` // share of the lanes of the steps' tiles that carried a token
	Steps   int64   `json:"steps"`        // of all runs, with the first
	Guessed int64   `json:"guessed"`      // tokens in them that were guessed
	Right   int64   `json:"right"`        // of these
}

// EngineReport is the report of `bench engine`.
type EngineReport []EngineResult

// engineTest is pp<N> (compute a prompt of N tokens), tg<N> (decode N tokens), sp<N> (with speculation), cp<N> (with
// speculation, a text that repeats itself) or dr<N> (with speculation, a text that a draft model knows). par<N> decodes 64
// tokens in each of N sequences at once, st<N> likewise, held to a schema. dt<N> does so with texts that are given, and
// mtp<N> with guesses of the model's MTP layer about them, of which a part is made wrong. All but pp<N> may end in @d<D>:
// after D tokens, whose time does not count.
type engineTest struct {
	name   string
	prompt int  // tokens a prompt
	deep   bool // the prompts' time does not count
	decode int  // tokens to generate a sequence
	width  int  // sequences at once
	// guess lets the engine speculate. Without it, what a token costs does not depend
	// on the text.
	guess bool
	// repeat makes the model repeat one token, which is guessed easily.
	repeat bool
	// dictate makes model and draft model write the same text, which never repeats itself.
	dictate bool
	// predict has the model's own layer guess, and nothing else.
	predict bool
	// structured holds what is decoded to a schema.
	structured bool
}

// parallelDecode is the default number of tokens that a sequence of par<N> and st<N> decodes.
const parallelDecode = 64

// counted returns the number of tokens that a run counts.
func (t engineTest) counted() int {
	if t.decode == 0 {
		return t.width * t.prompt
	}
	return t.width * t.decode
}

// speed returns tokens a second, given the times of the runs.
func (t engineTest) speed(times []engineTimes) Spread {
	v := make([]float64, len(times))
	for i := range times {
		v[i] = float64(t.counted()) / times[i].whole.Seconds()
	}
	return spreadOf(v)
}

// cpu returns milliseconds of processor time a token, given the times of the runs.
func (t engineTest) cpu(times []engineTimes) Spread {
	v := make([]float64, len(times))
	for i := range times {
		v[i] = milliseconds(times[i].cpu) / float64(t.counted())
	}
	return spreadOf(v)
}

func parseEngineTest(name string, parallel int) (engineTest, error) {
	short, at, deep := strings.Cut(strings.ReplaceAll(name, " ", ""), "@d")
	kind := strings.TrimRight(short, "0123456789")
	n, err := strconv.Atoi(short[len(kind):])
	unknown := usage.Errorf("--tests: %q is none of pp<N>, tg<N>, sp<N>, cp<N>, dr<N>, par<N>, st<N>, dt<N>, mtp<N>, or any but pp<N> with @d<D>", name)
	if err != nil || n < 1 || n > 1<<16 {
		return engineTest{}, unknown
	}
	t := engineTest{name: short, prompt: 1, decode: n, width: 1}
	if deep {
		if t.prompt, err = strconv.Atoi(at); err != nil || t.prompt < 1 || t.prompt > 1<<20 || kind == "pp" {
			return engineTest{}, unknown
		}
		t.name, t.deep = fmt.Sprintf("%s @ d%d", short, t.prompt), true // as llama-bench writes it
	}
	switch kind {
	case "pp":
		t.prompt, t.decode = n, 0
	case "tg":
	case "sp":
		t.guess = true
	case "cp":
		t.guess, t.repeat = true, true
	case "dr":
		t.guess, t.dictate = true, true
	case "par", "st":
		t.decode, t.width, t.structured = parallel, n, kind == "st"
	case "dt", "mtp":
		t.decode, t.width, t.dictate = parallel, n, true
		t.guess = kind == "mtp"
		t.predict = t.guess
	default:
		return engineTest{}, unknown
	}
	return t, nil
}

// EngineOptions say what to measure of the engine.
type EngineOptions struct {
	Source
	PeerOptions
	Threads     int
	Reps        int    // runs a test, after one that is not counted; with peers, rounds
	ParTokens   int    // tokens a sequence of par<N> and st<N>
	Schema      string // a file: what st<N> is held to
	Vocabulary  string // a model whose tokens st<N> is held with; empty: the model's own
	Draft       string
	Speculation string
	Acceptance  float64 // the part of guesses in mtp<N> that are right
	Tests       []string
	CPUProfile  string // a file; empty: none
	Profile     bool   // report where the time goes

	ran func() // after each run; nil: nobody is told
}

// DefaultEngineOptions measure prefill, one stream and small batches.
func DefaultEngineOptions() EngineOptions {
	return EngineOptions{Reps: 5, ParTokens: parallelDecode, Speculation: string(batcher.SpeculateAuto), Acceptance: 0.7,
		Tests: []string{"pp128", "pp512", "tg64", "par4", "par8", "par16", "par32"}}
}

// Engine runs each test through an engine of its own. Progress goes to errOut.
func Engine(ctx context.Context, o EngineOptions, errOut io.Writer) (Report, error) {
	if o.Reps < 1 || o.ParTokens < 1 {
		return nil, usage.Errorf("--reps and --par-tokens must be positive")
	}
	if !(o.Acceptance >= 0 && o.Acceptance <= 1) {
		return nil, usage.Errorf("--acceptance is %v, want 0 to 1", o.Acceptance)
	}
	tests, err := o.parseTests()
	if err != nil {
		return nil, err
	}
	opt := batcher.DefaultOptions()
	opt.Speculation = batcher.Speculation(o.Speculation)
	if err := opt.Validate(); err != nil {
		return nil, usage.Error{Err: err}
	}
	peers, err := o.peers()
	if err != nil {
		return nil, err
	}
	pool, err := engines.NewPool(o.Threads)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	bundle, err := o.load(ctx, pool)
	if err != nil {
		return nil, err
	}
	defer bundle.Close()
	var draft *models.Bundle
	if o.Draft != "" {
		d := config.ModelNamed(o.Draft)
		if err := d.Get(ctx, o.Get); err != nil {
			return nil, err
		}
		if draft, err = engines.LoadDraft(d, config.DefaultHexagon(), pool, bundle); err != nil {
			return nil, err
		}
		defer draft.Close()
	}
	held, err := o.heldTo(ctx, bundle)
	if err != nil {
		return nil, err
	}
	setup := engineRuns{bundle: bundle, draft: draft, held: held, pool: pool, speculation: batcher.Speculation(o.Speculation), acceptance: o.Acceptance}

	if o.CPUProfile != "" {
		f, err := os.Create(o.CPUProfile)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, err
		}
		defer pprof.StopCPUProfile()
	}
	switch {
	case len(peers) > 0:
		return o.runCompare(ctx, setup, tests, peers, errOut)
	case o.Profile:
		return o.runProfile(ctx, setup, tests, errOut)
	}
	results := EngineReport{}
	meter := &output.Meter{W: errOut, What: "runs"}
	defer meter.End()
	count := meter.Count(0, len(tests)*(o.Reps+1))
	done := func() {
		if count(); o.ran != nil {
			o.ran()
		}
	}
	for _, t := range tests {
		runs := setup
		steps := &stepTimes{}
		runs.test, runs.reps, runs.done, runs.onStep = t, o.Reps, done, steps.add
		times, err := runs.measure(ctx)
		if err != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		if len(times) == 0 {
			break
		}
		s := t.speed(times)
		results = append(results, EngineResult{Model: o.name(bundle), Threads: pool.Threads(), Test: t.name, TokS: s.Median, Min: s.Min, Max: s.Max, CPU: t.cpu(times).Median, Fill: steps.fill(),
			Steps: steps.steps, Guessed: steps.guessed, Right: steps.right})
	}
	return results.ended(ctx)
}

// parseTests returns the tests by their names.
func (o EngineOptions) parseTests() (tests []engineTest, err error) {
	for _, name := range o.Tests {
		t, err := parseEngineTest(name, o.ParTokens)
		if err != nil {
			return nil, err
		}
		if t.guess && t.dictate && !t.predict && o.Draft == "" {
			return nil, usage.Errorf("--tests: %s requires a --draft-model", name)
		}
		if t.structured && o.Schema == "" {
			return nil, usage.Errorf("--tests: %s requires a --schema", name)
		}
		tests = append(tests, t)
	}
	return tests, nil
}

// ended returns what has been measured, and why no more is. Nothing is no report.
func (results EngineReport) ended(ctx context.Context) (Report, error) {
	if len(results) == 0 {
		return nil, ctx.Err()
	}
	return results, ctx.Err()
}

// Print implements Report.
func (results EngineReport) Print(w io.Writer) error {
	rows := [][]string{{"model", "threads", "test", "tok/s", "min", "max", "processor ms", "lanes filled", "guessed", "right"}}
	for _, r := range results {
		rows = append(rows, []string{r.Model, fmt.Sprint(r.Threads), r.Test,
			fmt.Sprintf("%.1f", r.TokS), fmt.Sprintf("%.1f", r.Min), fmt.Sprintf("%.1f", r.Max),
			fmt.Sprintf("%.2f", r.CPU), fmt.Sprintf("%.2f", r.Fill), fmt.Sprint(r.Guessed), fmt.Sprint(r.Right)})
	}
	return output.Table(w, rows)
}

// runCompare measures each test once a round, then the peers.
func (o *EngineOptions) runCompare(ctx context.Context, setup engineRuns, tests []engineTest, peers []peer, errOut io.Writer) (Report, error) {
	meter := &output.Meter{W: errOut, What: "runs"}
	defer meter.End()
	step := meter.Count(0, o.Reps*(2*len(tests)+len(peers)))
	ours := func() (speeds, error) {
		s := speeds{}
		for _, t := range tests {
			runs := setup
			runs.test, runs.reps, runs.done = t, 1, step
			times, err := runs.measure(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
			s[t.name] = t.speed(times).Median
		}
		return s, nil
	}
	var names []string
	for _, t := range tests {
		names = append(names, t.name)
	}
	return compare(ctx, "tok/s", o.Reps, names, ours, peers, step)
}

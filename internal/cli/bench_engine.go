package cli

import (
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models"
)

// engineResult is one line of `bench engine --json`.
type engineResult struct {
	Model   string  `json:"model"`
	Threads int     `json:"threads"`
	Test    string  `json:"test"`
	TokS    float64 `json:"tok_s"` // median of the repetitions
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	Fill    float64 `json:"lanes_filled"` // share of the lanes of the steps' tiles that carried a token
}

// engineTest is pp<N> (compute a prompt of N tokens), tg<N> (decode N tokens),
// sp<N> (with speculation), cp<N> (of a text that repeats itself), dr<N> (of one
// that a draft model knows) or par<N> (decode 64 tokens in each of N sequences at
// once). All but pp<N> may end in @d<D>: each sequence after D tokens, whose time does not count.
type engineTest struct {
	name   string
	prompt int  // tokens a prompt
	deep   bool // the prompts' time does not count
	decode int  // tokens to generate a sequence
	width  int  // sequences at once
	// guess lets the engine speculate. The others measure what a token costs,
	// whatever the model says.
	guess bool
	// repeat makes the model say one token only, which is guessed easily.
	repeat bool
	// dictate makes both models say the same, which never repeats itself.
	dictate bool
}

const parallelDecode = 64 // unless --par-tokens says otherwise

// counted is the number of tokens that a run's speed is about.
func (t engineTest) counted() int {
	if t.decode == 0 {
		return t.width * t.prompt
	}
	return t.width * t.decode
}

// speed is the tokens a second of runs that took times.
func (t engineTest) speed(times []engineTimes) spread {
	v := make([]float64, len(times))
	for i := range times {
		v[i] = float64(t.counted()) / times[i].whole.Seconds()
	}
	return spreadOf(v)
}

func parseEngineTest(name string, parallel int) (engineTest, error) {
	short, at, deep := strings.Cut(strings.ReplaceAll(name, " ", ""), "@d")
	kind := strings.TrimRight(short, "0123456789")
	n, err := strconv.Atoi(short[len(kind):])
	unknown := usage.Errorf("--tests: %q is none of pp<N>, tg<N>, sp<N>, cp<N>, dr<N>, par<N>, nor one but the first with @d<D>", name)
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
	case "par":
		t.decode, t.width = parallel, n
	default:
		return engineTest{}, unknown
	}
	return t, nil
}

type engineBench struct {
	benchSource
	threads, reps int
	parTokens     int
	draft         string
	speculation   string
	tests         []string
	asJSON        bool
	cpuProfile    string
	profile       bool
	compare       []string
	pattern       string
}

func newBenchEngine() *cobra.Command {
	var o engineBench
	cmd := &cobra.Command{
		Use:   "engine",
		Short: "Measure prefill and decode through the whole engine",
		Long: `Like llama-bench, with scheduling and sampling included: pp512 computes a prompt of
512 tokens, tg64 decodes 64 tokens, sp64 does so with speculation, cp64 too, of a
text that repeats itself, dr64 of one that the --draft-model always guesses right,
par8 decodes 64 tokens in each of 8 sequences at once, tg64@d4096 and par8@d512 do so
after 4096 and 512 tokens that are not counted. --shape builds a model of
random ternary weights; speed does not depend on their values.

--compare runs another engine's command after each round of ours and prints the
ratios of neighbouring runs. It reads what llama-bench and llama-batched-bench
print as JSON, CSV or a table; for other programs --compare-pattern is a regular
expression with the groups (?P<test>...) and (?P<value>...), tokens a second.

--profile says where the time of each test goes, beside what this machine allows.`,
		Example: `  lutra bench engine --model model.gguf
  lutra bench engine --shape falcon3-1b --threads 2 --tests pp512,tg64,par32 --json
  lutra bench engine --model m.gguf --tests pp512,tg64 --compare 'llama.cpp=llama-bench -m m.gguf -p 512 -n 64 -r 1 -o jsonl'
  lutra bench engine --model m.gguf --tests tg64,par32 --profile`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd)
		},
	}
	f := cmd.Flags()
	o.flags(f)
	f.IntVar(&o.threads, "threads", 0, "compute threads (default: one a physical core)")
	f.IntVarP(&o.reps, "reps", "r", 5, "repetitions a test, after one that is not counted; with --compare, rounds")
	f.StringSliceVar(&o.tests, "tests", []string{"pp128", "pp512", "tg64", "par4", "par8", "par16", "par32"}, "tests to run")
	f.IntVar(&o.parTokens, "par-tokens", parallelDecode, "tokens a sequence of par<N>")
	f.StringVar(&o.draft, "draft-model", "", "GGUF `FILE` or an embedded model's name: a model that guesses in the tests with speculation")
	f.StringVar(&o.speculation, "speculation", string(batcher.SpeculateAuto), "of sp<N>, cp<N> and dr<N>: auto or a number")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVar(&o.profile, "profile", false, "print the time of each kind of kernel")
	f.StringVar(&o.cpuProfile, "cpuprofile", "", "write a profile of the runs to `FILE`, for go tool pprof")
	compareFlags(f, &o.compare, &o.pattern)
	cmd.MarkFlagsMutuallyExclusive("profile", "compare")
	return cmd
}

func (o *engineBench) run(cmd *cobra.Command) error {
	if o.reps < 1 || o.parTokens < 1 {
		return usage.Errorf("--reps and --par-tokens must be positive")
	}
	var tests []engineTest
	for _, name := range o.tests {
		t, err := parseEngineTest(name, o.parTokens)
		if err != nil {
			return err
		}
		if t.dictate && o.draft == "" {
			return usage.Errorf("--tests: %s needs a --draft-model", name)
		}
		tests = append(tests, t)
	}
	opt := batcher.DefaultOptions()
	opt.Speculation = batcher.Speculation(o.speculation)
	if err := opt.Validate(); err != nil {
		return usage.Error{Err: err}
	}
	peers, err := parsePeers(o.compare, o.pattern)
	if err != nil {
		return err
	}
	pool, err := engines.NewPool(o.threads)
	if err != nil {
		return err
	}
	defer pool.Close()
	bundle, err := o.load(pool)
	if err != nil {
		return err
	}
	defer bundle.Close()
	var draft *models.Bundle
	if o.draft != "" {
		if draft, err = engines.LoadDraft(config.ModelNamed(o.draft), pool, bundle); err != nil {
			return err
		}
		defer draft.Close()
	}
	setup := engineRuns{bundle: bundle, draft: draft, pool: pool, speculation: batcher.Speculation(o.speculation)}

	if o.cpuProfile != "" {
		f, err := os.Create(o.cpuProfile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	switch {
	case len(peers) > 0:
		return o.runCompare(cmd, setup, tests, peers)
	case o.profile:
		return o.runProfile(cmd, setup, tests)
	}
	results := []engineResult{}
	bar := output.Progress(cmd.ErrOrStderr(), len(tests)*(o.reps+1), "runs")
	for _, t := range tests {
		runs := setup
		steps := &stepTimes{}
		runs.test, runs.reps, runs.done, runs.onStep = t, o.reps, func() { _ = bar.Add(1) }, steps.add
		times, err := runs.measure(cmd.Context())
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		s := t.speed(times)
		results = append(results, engineResult{Model: o.name(bundle), Threads: pool.Threads(), Test: t.name, TokS: s.Median, Min: s.Min, Max: s.Max, Fill: steps.fill()})
	}
	if o.asJSON {
		return output.JSON(cmd.OutOrStdout(), results)
	}
	rows := [][]string{{"model", "threads", "test", "tok/s", "min", "max", "lanes filled"}}
	for _, r := range results {
		rows = append(rows, []string{r.Model, fmt.Sprint(r.Threads), r.Test,
			fmt.Sprintf("%.1f", r.TokS), fmt.Sprintf("%.1f", r.Min), fmt.Sprintf("%.1f", r.Max), fmt.Sprintf("%.2f", r.Fill)})
	}
	return output.Table(cmd.OutOrStdout(), rows)
}

// runCompare measures one run of each test a round, then the peers.
func (o *engineBench) runCompare(cmd *cobra.Command, setup engineRuns, tests []engineTest, peers []peer) error {
	bar := output.Progress(cmd.ErrOrStderr(), o.reps*(2*len(tests)+len(peers)), "runs")
	step := func() { _ = bar.Add(1) }
	ours := func() (speeds, error) {
		s := speeds{}
		for _, t := range tests {
			runs := setup
			runs.test, runs.reps, runs.done = t, 1, step
			times, err := runs.measure(cmd.Context())
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
	r, err := compare(cmd.Context(), "tok/s", o.reps, names, ours, rivals(peers), step)
	if err != nil {
		return err
	}
	return r.show(cmd.OutOrStdout(), o.asJSON)
}

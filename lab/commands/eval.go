package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/klauspost/cpuid/v2"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/lab/eval"
	"github.com/lutra-lm/lutra/lab/npu/soc"
	"github.com/lutra-lm/lutra/lab/probe"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
)

// evalOptions are the flags of eval.
type evalOptions struct {
	data    string
	split   string // of the embedded problems
	methods []string
	sizes   []int
	width   int
	limit   int
	seed    uint64
	atOnce  int
	server  cli.ServerFlags
	out     string
	compare string // the method that others are compared with; empty: none
	profile string // file of what methods reach and cost; empty: none
	states  bool
	fresh   bool
	asJSON  bool
	soc     string // whose NPU's time is modelled; empty: none
	eval.Asking
}

func newEval() *cobra.Command {
	var m cli.ModelFlags
	var o evalOptions
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Measure accuracy against latency of test-time scaling",
		Long: `Asks one or more models problems with known answers, with several methods and
candidate counts, and reports accuracy (with a 95 % Wilson interval), tokens and
latency. --data reads GSM8K (question, answer after "####") and MATH500 (problem,
answer) as JSON lines, and HumanEval, whose answers run in a sandbox; without it the embedded models' held-out set is used, or with
--split hard 1,000 harder problems. Numbers inside the model's thinking
are not taken for its answer.

A method is single or a search plan without its size; further settings follow
semicolons: best_of_n;select=max, single;temperature=0. One candidate is a single sample
whatever the method. Latencies are meaningful at --concurrency 1 on an idle machine; each
answer computes its prompt anew, without a prefix cache.

--compare adds what another method gains on the same problems: a paired bootstrap's 95 %
interval of the difference and McNemar's exact p; MODEL/METHOD compares other models
with that one, too. Run again with other methods and the same --out to add rows.

--profile writes what each method reaches and costs, from which a server chooses the one
that reaches a request's quality in its time: search.profiles names such files. Take
problems like those that users ask, 200 or more. With --url, methods may be
quality=0.95: what the server promises, checked on other problems.

--out gets results.json (with what it takes to repeat the run), results.md, pareto.svg,
tokens.svg (accuracy against tokens) and journal.jsonl: a line for each answer, with the
question, the right answer, and every
candidate's text, score and votes. The same command continues an interrupted run from there. Ctrl-C prints the results so far.

--soc also models the time and energy that an NPU would have needed for every step, and
draws them into npu.svg and npu-energy.svg (always on with a Hexagon backend, except for
mixtures of experts). The model is that of lutra-lab npu plan: a bound.

--url asks a server, and --model names its models: a lutra server searches itself; any
other is asked for n choices, on which this program votes (self_consistency). LUTRA_URL
and LUTRA_API_KEY are the defaults of --url and --api-key.`,
		Example: `  lutra-lab eval --limit 100 --methods single,best_of_n,beam_search --n 4,8,16 --out report
  lutra-lab eval --model qwen3-1.7b --data math500-test.jsonl --thinking off --methods single,self_consistency --n 1,8
  lutra-lab eval --limit 100 --methods "single;temperature=0,beam_search" --n 1,8
  lutra-lab eval --model lutra-tiny-s --data gsm8k-test.jsonl --methods single,self_consistency --n 8
  lutra-lab eval --limit 100 --methods "best_of_n,best_of_n;adaptive=true,deepconf" --n 16 --compare best_of_n
  lutra-lab eval --profile profile.json --methods "single,single;temperature=0,best_of_n,best_of_n;adaptive=true" --n 1,2,4,8,16
  lutra-lab eval --split hard --limit 100 --methods single,best_of_n --n 1,16 --concurrency 4
  lutra-lab eval --backend hexagon-go --soc elite --limit 100 --methods single,best_of_n --n 4
  lutra-lab eval --url http://127.0.0.1:8000/v1 --model my-model --methods self_consistency --n 1,8 --concurrency 4`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.limit < 0 || o.atOnce < 1 || o.MaxTokens < 1 {
				return usage.Errorf("--concurrency and --max-tokens must be positive, --limit not negative")
			}
			if o.data != "" && cmd.Flags().Changed("split") {
				return usage.Errorf("--split chooses among the embedded problems; leave out --data")
			}
			for _, n := range append(o.sizes, o.width) {
				if n < 1 || n > maxCandidates {
					return usage.Errorf("--n and --width: %d is outside 1 to %d", n, maxCandidates)
				}
			}
			return runEval(cmd, &m, &o)
		},
	}
	f := cmd.Flags()
	m.Register(f)
	m.Quiet(f)
	f.StringVar(&o.data, "data", "", "problems as JSON lines, a `FILE` (default: the embedded models' held-out set)")
	cli.WordVar(f, &o.split, "split", "test", []string{"test", hardSplit}, "of the embedded problems, without --data")
	f.StringSliceVar(&o.methods, "methods", []string{"single", "self_consistency", "best_of_n", "beam_search"}, "`METHODS`: "+strings.Join(eval.Methods(), ", "))
	f.IntSliceVarP(&o.sizes, "n", "n", []int{1, 4, 8, 16}, "candidate counts")
	f.IntVar(&o.width, "width", 4, "children of a surviving beam")
	f.IntVar(&o.limit, "limit", 0, "first problems only (default: all)")
	f.Float32VarP(&o.Temperature, "temperature", "t", 0.8, "sampling temperature")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the first problem; each next problem adds 1")
	f.IntVar(&o.MaxTokens, "max-tokens", 512, "maximum tokens of a candidate")
	f.StringVar(&o.System, "system", "", "system message")
	cli.ThinkingVar(f, &o.Thinking)
	f.IntVarP(&o.atOnce, "concurrency", "c", 1, "problems at once")
	cli.WordVar(f, &o.soc, "soc", "", soc.IDs(), "model time and energy on the NPU of this `SOC` (default: 8gen3 with a Hexagon backend)")
	o.server.Register(f, "ask the server", "")
	f.StringVar(&o.out, "out", "", "`DIR` for results, plots and the journal")
	f.StringVar(&o.compare, "compare", "", "compare all others with this `METHOD` of the run, problem by problem")
	f.StringVar(&o.profile, "profile", "", "write what methods reach and cost to this `FILE`, for requests with a quality or a deadline")
	f.BoolVar(&o.states, "states", false, "keep the model's states of each candidate in --out, which lutra-lab probe train --journal then need not compute; probes judge nothing meanwhile")
	f.BoolVar(&o.fresh, "fresh", false, "discard the journal in --out and begin again")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	if err := cmd.RegisterFlagCompletionFunc("methods", cli.Choices{Words: eval.Methods, List: true}.Complete); err != nil {
		panic(err) // the flag is the command's
	}
	cmd.AddCommand(newEvalChoose())
	return cmd
}

// hardSplit names the embedded models' hard problems.
const hardSplit = "hard"

// maxCandidates bounds the candidates of one problem.
const maxCandidates = 4096

func runEval(cmd *cobra.Command, m *cli.ModelFlags, o *evalOptions) error {
	if err := o.server.Complete(cmd.Flags()); err != nil {
		return err
	}
	problems, name, err := o.problems()
	if err != nil {
		return err
	}
	e := &evaluation{evalOptions: o, setup: eval.Setup{
		Data: name, Hash: eval.Hash(problems), Temperature: o.Temperature, Seed: o.seed,
		MaxTokens: o.MaxTokens, System: o.System, Concurrency: o.atOnce,
	}}
	if o.Thinking != nil {
		e.setup.Thinking = map[bool]string{true: "on", false: "off"}[*o.Thinking]
	}
	if o.limit > 0 {
		problems = problems[:min(o.limit, len(problems))]
	}
	e.Problems, e.Seed, e.Concurrency = problems, o.seed, o.atOnce
	if o.soc != "" && (o.server.URL != "" || o.atOnce > 1) {
		return usage.Errorf("--soc: time is modelled of one problem after the other, in this program; use it without --url and --concurrency")
	}
	if o.profile != "" && (o.server.URL != "" || o.atOnce > 1) {
		return usage.Errorf("--profile: time is measured of one problem after the other, in this program; use it without --url and --concurrency")
	}
	if o.states && (o.server.URL != "" || o.out == "") {
		return usage.Errorf("--states: they are read in this program and kept in --out; use it with --out and without --url")
	}
	if o.server.URL != "" {
		return e.remote(cmd)
	}
	return e.local(cmd, m)
}

// problems returns all problems of the data set, with its name.
func (o *evalOptions) problems() ([]eval.Problem, string, error) {
	if o.data == "" {
		if o.split == hardSplit {
			p, err := eval.Load(strings.NewReader(embedded.HardSet()))
			return p, "the embedded hard set", err
		}
		p, err := eval.Load(strings.NewReader(embedded.TestSet()))
		return p, "the embedded test set", err
	}
	return loadProblems(o.data)
}

// loadProblems reads a file of problems, and returns its name too.
func loadProblems(path string) ([]eval.Problem, string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", usage.Errorf("--data: there is no file %s", path)
	}
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	p, err := eval.Load(f)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return p, filepath.Base(path), err
}

// evaluation is one experiment with its options.
type evaluation struct {
	*evalOptions
	eval.Experiment
	setup  eval.Setup
	models map[string]eval.Searcher // in this process
}

func (e *evaluation) remote(cmd *cobra.Command) error {
	names, err := e.server.Names(cmd.Flags())
	if err != nil {
		return err
	}
	client, err := apiclient.New(e.server.URL, e.server.Key)
	if err != nil {
		return err
	}
	list, err := client.List(cmd.Context())
	if err != nil {
		return err
	}
	for i := range names {
		names[i] = list.Named(names[i])
	}
	e.Solve = eval.Remote(client, list.Lutra, e.Asking)
	e.setup.Where = e.server.URL
	return e.measure(cmd.Context(), cmd, names)
}

func (e *evaluation) local(cmd *cobra.Command, m *cli.ModelFlags) error {
	cfg, err := m.Prepare(cmd)
	if err != nil {
		return err
	}
	cfg.KV.Prefix = false // else the first point would pay for the others' prompts
	log := cli.NewLogger(cfg.Log, cmd.ErrOrStderr())
	if !cmd.Flags().Changed("log") {
		log = log.Level(zerolog.WarnLevel) // the report is the output
	}
	shown := cli.Loading{W: cmd.ErrOrStderr()}
	defer shown.End()
	asked := e.soc != ""
	if !asked && e.atOnce == 1 && strings.HasPrefix(cfg.Backend, "hexagon") {
		e.soc = defaultSoC
	}
	watch := engines.Watcher{Loading: shown.Show}
	if e.states {
		if len(cfg.Models) > 1 {
			return usage.Errorf("--states: they are of one model, and --model names %d", len(cfg.Models))
		}
		watch.Probe = func(shape *models.Config) *models.Probe {
			e.setup.States = probe.Layers(shape)
			return &models.Probe{Layers: e.setup.States}
		}
	}
	meter, err := e.meter(&cfg, &watch)
	if !asked && errors.Is(err, errNotModelled) {
		meter, e.soc, e.setup.SoC, err = nil, "", "", nil
	}
	if err != nil {
		return err
	}
	if e.setup.Models, err = e.digests(cmd.Context(), cfg); err != nil {
		return err
	}
	return engines.WithWatcher(cmd.Context(), cfg, log, watch, func(ctx context.Context, r *engines.Runtime) error {
		shown.End()
		if err := errors.Join(r.Writes(), r.Adapt()); err != nil {
			return err
		}
		e.models = map[string]eval.Searcher{}
		var names []string
		for _, h := range r.Hosts {
			e.models[h.Model.Name] = eval.Searcher{Model: h.Model, Verifiers: r.Verifiers(h.Model), States: e.states}
			names = append(names, h.Model.Name)
		}
		e.Solve = eval.Local(e.models, e.Asking)
		if meter != nil {
			e.Solve = metered(e.Solve, meter)
		}
		e.setup.Where = fmt.Sprintf("%s, %d threads, %s kernels", cmp.Or(cpuid.CPU.BrandName, runtime.GOARCH), r.Pool.Threads(), cpu.Active())
		if h := cfg.Hexagon; cfg.Backend != config.CPU { // a journal is of one of them
			e.setup.Where += fmt.Sprintf(", %s: path %s, placement %s, plan %q", cfg.Backend, h.Path, h.Placement, h.Plan)
		}
		return e.measure(ctx, cmd, names)
	})
}

// digests hashes the files of all models whose answers or scores are in the report, if it
// goes to others than a terminal.
func (e *evaluation) digests(ctx context.Context, cfg config.Config) (map[string]string, error) {
	if e.out == "" && !e.asJSON {
		return nil, nil
	}
	list := slices.Clone(cfg.Models)
	for _, v := range cfg.Verifiers {
		list = append(list, v.Model())
	}
	found := map[string]string{}
	for _, m := range list {
		digest, err := m.Digest(ctx)
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", m.APIName(), err)
		}
		found[m.APIName()] = digest
	}
	return found, nil
}

// measure runs the experiment and reports. Interrupted, it prints the results so far,
// and leaves the journal in --out.
func (e *evaluation) measure(ctx context.Context, cmd *cobra.Command, names []string) (err error) {
	if e.Points, err = eval.Points(names, e.methods, e.sizes, e.width); err != nil {
		return usage.Errorf("--methods: %w", usage.PlanError(err))
	}
	if e.compare != "" {
		if _, err := eval.Compare(e.Points, nil, 0, e.compare); err != nil {
			return usage.Errorf("--compare: %w", err)
		}
	}
	e.Journal = eval.NewJournal()
	if e.out != "" {
		dir := e.out
		if e.states {
			dir = filepath.Join(dir, eval.StatesDir)
			e.States = dir
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		e.Journal, err = eval.OpenJournal(filepath.Join(e.out, "journal.jsonl"), e.setup, e.fresh)
		if errors.Is(err, eval.ErrSetup) {
			err = fmt.Errorf("%w\n--fresh discards it; another --out keeps it", err)
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, e.Journal.Close()) }()
	}
	meter := &output.Meter{W: cmd.ErrOrStderr(), What: "problems × points"}
	e.Done = meter.Count(len(e.Problems)*len(e.Points)-e.Left(), len(e.Problems)*len(e.Points))
	ran := e.Run(ctx)
	meter.End()
	if ran != nil && ctx.Err() == nil {
		return ran
	}
	report := eval.Report{
		Version: cli.Version(), Command: commandLine(cmd), Setup: e.setup, Problems: len(e.Problems), Left: e.Left(),
		Results: eval.Summarise(e.Points, e.Journal.Records(), len(e.Problems), e.Concurrency),
	}
	if e.compare != "" {
		report.Differences, _ = eval.Compare(e.Points, e.Journal.Records(), len(e.Problems), e.compare) // there is such a method: it was checked
	}
	if ran == nil && e.profile != "" {
		if err := e.writeProfile(&report); err != nil {
			return err
		}
	}
	switch {
	case ran == nil && e.out != "":
		if err := e.write(report); err != nil {
			return err
		}
	case ran != nil && e.out != "":
		fmt.Fprintf(cmd.ErrOrStderr(), "interrupted, %d answers left; the same command continues\n", report.Left)
	case ran != nil:
		fmt.Fprintf(cmd.ErrOrStderr(), "interrupted, %d answers left; with --out, the same command continues\n", report.Left)
	}
	switch {
	case len(report.Results) == 0:
		return ran
	case e.asJSON:
		return errors.Join(output.JSON(cmd.OutOrStdout(), report), ran)
	}
	ran = errors.Join(output.Table(cmd.OutOrStdout(), eval.Rows(report.Results)), ran)
	if len(report.Differences) > 0 {
		fmt.Fprintln(cmd.OutOrStdout())
		ran = errors.Join(output.Table(cmd.OutOrStdout(), eval.CompareRows(report.Differences)), ran)
	}
	return ran
}

// commandLine returns the command with its flags, but for keys.
func commandLine(cmd *cobra.Command) []string {
	line := strings.Fields(cmd.CommandPath())
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
			if f.Value.Type() != "stringArray" { // which has a flag for each value
				values = []string{strings.Join(values, ",")}
			}
		}
		for _, v := range values {
			if f.Name == "api-key" {
				v = "KEY"
			}
			line = append(line, "--"+f.Name+"="+v)
		}
	})
	return line
}

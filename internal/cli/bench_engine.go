package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// engineResult is one line of `bench engine --json`.
type engineResult struct {
	Model   string  `json:"model"`
	Threads int     `json:"threads"`
	Test    string  `json:"test"`
	TokS    float64 `json:"tok_s"` // median of the repetitions
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
}

// engineTest is pp<N> (compute a prompt of N tokens), tg<N> (decode N tokens)
// or par<N> (decode 64 tokens in each of N sequences at once).
type engineTest struct {
	name   string
	prompt int // tokens a prompt
	decode int // tokens to generate a sequence
	width  int // sequences at once
}

const parallelDecode = 64

// counted is the number of tokens that a run's speed is about.
func (t engineTest) counted() int {
	if t.decode == 0 {
		return t.width * t.prompt
	}
	return t.width * t.decode
}

func parseEngineTest(name string) (engineTest, error) {
	kind := strings.TrimRight(name, "0123456789")
	n, err := strconv.Atoi(name[len(kind):])
	if err != nil || n < 1 || n > 1<<16 {
		return engineTest{}, usagef("--tests: %q is none of pp<N>, tg<N>, par<N>", name)
	}
	switch kind {
	case "pp":
		return engineTest{name, n, 0, 1}, nil
	case "tg":
		return engineTest{name, 1, n, 1}, nil
	case "par":
		return engineTest{name, 1, parallelDecode, n}, nil
	}
	return engineTest{}, usagef("--tests: %q is none of pp<N>, tg<N>, par<N>", name)
}

type engineBench struct {
	model, shape, packing string
	threads, reps         int
	tests                 []string
	asJSON                bool
	profile               string
}

func newBenchEngine() *cobra.Command {
	var o engineBench
	cmd := &cobra.Command{
		Use:   "engine",
		Short: "Measure prefill and decode through the whole engine",
		Long: `Like llama-bench, with scheduling and sampling included: pp512 computes a prompt of
512 tokens, tg64 decodes 64 tokens, par8 decodes 64 tokens in each of 8 sequences
at once. --shape builds a model of random ternary weights; speed does not depend
on their values.`,
		Example: `  lutra bench engine --model model.gguf
  lutra bench engine --shape falcon3-1b --threads 2 --tests pp512,tg64,par32 --json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.model, "model", "", "GGUF `FILE` or an embedded model's name (default: the embedded one)")
	f.StringVar(&o.shape, "shape", "", "random model of a known shape: "+strings.Join(shapeNames(), ", "))
	f.StringVar(&o.packing, "packing", "auto", "run-time packing of ternary weights: auto, i1, i2")
	f.IntVar(&o.threads, "threads", 0, "compute threads (default: one a physical core)")
	f.IntVarP(&o.reps, "reps", "r", 5, "repetitions a test, after one that is not counted")
	f.StringSliceVar(&o.tests, "tests", []string{"pp128", "pp512", "tg64", "par4", "par8", "par16", "par32"}, "tests to run")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.StringVar(&o.profile, "cpuprofile", "", "write a profile of the runs to `FILE`, for go tool pprof")
	return cmd
}

func (o *engineBench) run(cmd *cobra.Command) error {
	if o.reps < 1 {
		return usagef("--reps must be positive")
	}
	if o.model != "" && o.shape != "" {
		return usagef("--model and --shape exclude each other")
	}
	var tests []engineTest
	for _, name := range o.tests {
		t, err := parseEngineTest(name)
		if err != nil {
			return err
		}
		tests = append(tests, t)
	}
	pool := kernels.NewPool(o.threads)
	defer pool.Close()
	bundle, err := o.bundle(pool)
	if err != nil {
		return err
	}
	defer bundle.Close()

	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var results []engineResult
	bar := progress(cmd.ErrOrStderr(), len(tests)*(o.reps+1), "runs")
	for _, t := range tests {
		r, err := measureEngine(cmd.Context(), bundle, pool, t, o.reps, func() { _ = bar.Add(1) })
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		r.Model = cmp.Or(o.shape, o.model, bundle.Name)
		results = append(results, r)
	}
	if o.asJSON {
		return writeJSON(cmd.OutOrStdout(), results)
	}
	rows := [][]string{{"model", "threads", "test", "tok/s", "min", "max"}}
	for _, r := range results {
		rows = append(rows, []string{r.Model, fmt.Sprint(r.Threads), r.Test,
			fmt.Sprintf("%.1f", r.TokS), fmt.Sprintf("%.1f", r.Min), fmt.Sprintf("%.1f", r.Max)})
	}
	return table(cmd.OutOrStdout(), rows)
}

func (o *engineBench) bundle(pool *kernels.Pool) (*models.Bundle, error) {
	opt := models.LoadOptions{Pool: pool, Packing: ModelConfig{Packing: o.packing}.packing()}
	if o.shape != "" {
		return loadSynthetic(o.shape, opt)
	}
	mc, err := modelFlag(cmp.Or(o.model, defaultModels()[0].Embedded))
	if err != nil {
		return nil, err
	}
	return loadBundle(mc, opt)
}

func shapeNames() []string {
	var names []string
	for _, s := range synthetic.Shapes() {
		names = append(names, s.Name)
	}
	return names
}

// loadSynthetic makes a model of random weights in memory.
func loadSynthetic(shape string, opt models.LoadOptions) (*models.Bundle, error) {
	s, err := synthetic.Named(shape)
	if err != nil {
		return nil, usageError{err}
	}
	f, err := synthetic.Build(s, synthetic.DefaultOptions())
	if err != nil {
		return nil, err
	}
	return models.LoadFile(f, opt)
}

// measureEngine runs t reps times on an engine of its own; the first run warms
// caches and is dropped. Prompts are random and new each time, so that the
// prefix cache has no part in the figure.
func measureEngine(ctx context.Context, b *models.Bundle, pool *kernels.Pool, t engineTest, reps int, done func()) (r engineResult, err error) {
	cfg := b.Model.Config()
	length := t.prompt + t.decode + 1
	if length > cfg.Context {
		return r, fmt.Errorf("needs %d tokens, the model's context is %d", length, cfg.Context)
	}
	const block = 32
	kv, err := models.NewKVCache(cfg, models.KVOptions{BlockLen: block, Blocks: (length/block + 2) * t.width})
	if err != nil {
		return r, err
	}
	opt := batcher.DefaultOptions()
	opt.Pool, opt.Queue, opt.Sequences = pool, max(opt.Queue, t.width), max(opt.Sequences, t.width)
	engine := batcher.New(b.Model, kv, opt)
	ctx, cancel := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- engine.Run(ctx) }()
	defer func() {
		cancel()
		if runErr := <-ran; runErr != nil && !errors.Is(runErr, context.Canceled) {
			err = errors.Join(err, runErr)
		}
	}()

	var speeds []float64
	random := rand.New(rand.NewPCG(1, 2))
	for range reps + 1 {
		took, err := runEngineTest(ctx, engine, t, cfg.Vocab, random)
		if err != nil {
			return r, err
		}
		speeds = append(speeds, float64(t.counted())/took.Seconds())
		done()
	}
	speeds = speeds[1:]
	slices.Sort(speeds)
	return engineResult{Threads: pool.Threads(), Test: t.name, TokS: speeds[len(speeds)/2], Min: speeds[0], Max: speeds[len(speeds)-1]}, nil
}

// runEngineTest times one run. Decoding starts the clock with the prompt, one
// token of each sequence.
func runEngineTest(ctx context.Context, e *batcher.Engine, t engineTest, vocab int, random *rand.Rand) (time.Duration, error) {
	prompts := make([][]int32, t.width)
	for i := range prompts {
		prompts[i] = make([]int32, t.prompt)
		for j := range prompts[i] {
			prompts[i][j] = int32(random.IntN(vocab))
		}
	}
	start := time.Now()
	var g errgroup.Group
	for i := range prompts {
		g.Go(func() error {
			s, err := e.Open(ctx, prompts[i])
			if err != nil {
				return err
			}
			defer s.Close()
			if t.decode == 0 {
				_, err := s.Logits(ctx, 0)
				return err
			}
			n := 0
			for _, err := range s.Generate(ctx, batcher.Params{MaxTokens: t.decode, IgnoreEOS: true}) {
				if err != nil {
					return err
				}
				n++
			}
			if n != t.decode {
				return fmt.Errorf("generated %d tokens of %d", n, t.decode)
			}
			return nil
		})
	}
	err := g.Wait()
	return time.Since(start), err
}

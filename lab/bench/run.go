package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// Source names the model that a benchmark of the engine runs.
type Source struct {
	Model, Shape, Packing string
	Backend               string        // one of config.Backends; empty: the CPU
	Get                   config.Getter // of models of the hub
	// Loading is told how many bytes of a model have been read; nil: nobody is.
	Loading func(model string, done, total int64)
}

func (b *Source) load(ctx context.Context, pool *pool.Pool) (*models.Bundle, error) {
	if b.Model != "" && b.Shape != "" {
		return nil, usage.Errorf("--model and --shape exclude each other")
	}
	opt := models.LoadOptions{Pool: pool, Packing: b.Packing, Interrupt: engines.Until(ctx)}
	if b.Shape != "" {
		return loadSynthetic(b.Shape, b.Backend, opt)
	}
	mc, err := config.ModelFlag(cmp.Or(b.Model, config.DefaultModels()[0].Embedded))
	if err == nil {
		err = mc.Get(ctx, b.Get)
	}
	if err != nil {
		return nil, err
	}
	mc.Backend = b.Backend
	if b.Loading != nil {
		opt.Progress = func(done, total int64) { b.Loading(mc.APIName(), done, total) }
	}
	return engines.LoadBundle(mc, config.DefaultHexagon(), opt)
}

// name returns the model's name in reports.
func (b *Source) name(bundle *models.Bundle) string {
	return cmp.Or(b.Shape, b.Model, bundle.Name)
}

// Shapes returns the names of the known shapes.
func Shapes() []string {
	var names []string
	for _, s := range synthetic.Shapes() {
		names = append(names, s.Name)
	}
	return names
}

// loadSynthetic makes a model of random weights in memory.
func loadSynthetic(shape, backend string, opt models.LoadOptions) (*models.Bundle, error) {
	s, err := synthetic.Named(shape)
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	f, err := synthetic.Build(s, synthetic.DefaultOptions())
	if err != nil {
		return nil, err
	}
	return engines.LoadOn(backend, config.DefaultHexagon(), opt, func(opt models.LoadOptions) (*models.Bundle, error) { return models.LoadFile(f, opt) })
}

// committedKV returns a cache whose memory is already committed.
func committedKV(cfg models.Config, opt kv.Options) (*kv.Cache, error) {
	cache, err := kv.New(cfg.KV(), opt)
	if err == nil {
		cache.Commit(0, opt.Blocks)
	}
	return cache, err
}

// engineRuns measures one test with an engine of its own.
type engineRuns struct {
	bundle      *models.Bundle
	draft       *models.Bundle      // nil: none
	held        sampling.Constraint // of tests that are held to a schema
	speculation batcher.Speculation // of tests that speculate; empty: auto
	acceptance  float64
	pool        *pool.Pool
	test        engineTest
	reps        int
	warm        bool                    // the processor's caches are warm: count the first run too
	done        func()                  // after each run
	onStep      func(batcher.StepStats) // may be nil
}

func (r *engineRuns) runs() int {
	if r.warm {
		return r.reps
	}
	return r.reps + 1
}

// measure returns the time of each of reps runs. Unless r.warm, a first run is
// dropped. Every prompt is new and random, so the prefix cache does not help. When it
// returns, no step is under way. The times of the runs before an error come with it.
func (r *engineRuns) measure(ctx context.Context) (times []engineTimes, err error) {
	t, cfg := r.test, r.bundle.Model.Config()
	length := t.prompt + t.decode + 1
	if length > cfg.Context {
		return nil, fmt.Errorf("needs %d tokens, the model's context is %d", length, cfg.Context)
	}
	const block = 32
	size := kv.Options{BlockLen: block, Blocks: (length/block + 2) * t.width, States: 3 * t.width}
	cache, err := committedKV(cfg, size)
	if err != nil {
		return nil, err
	}
	defer cache.Close()
	opt := batcher.DefaultOptions()
	opt.Pool, opt.Queue, opt.Sequences = r.pool, max(opt.Queue, t.width), max(opt.Sequences, t.width)
	opt.OnStep = r.onStep
	opt.Speculation = batcher.SpeculateOff
	if t.guess {
		opt.Speculation = cmp.Or(r.speculation, batcher.SpeculateAuto)
	}
	var drafting *kv.Cache
	if t.guess && r.draft != nil {
		draftKV, err := committedKV(r.draft.Model.Config(), size)
		if err != nil {
			return nil, err
		}
		defer draftKV.Close()
		drafting = draftKV
	}
	predicting, err := engines.PredictorKV(r.bundle, cache, opt.Speculation)
	if err != nil {
		return nil, err
	}
	if predicting != nil {
		defer predicting.Close()
	}
	opt.Drafters = engines.Drafters(r.bundle, r.draft, drafting, predicting, r.pool)
	if t.predict {
		if predicting == nil {
			return nil, usage.Errorf("--tests: %s requires a model with an MTP layer, and speculation", t.name)
		}
		mtp := batcher.NewMTPDrafter(r.bundle.Predictor, predicting, r.pool).(batcher.Follower)
		opt.Drafters = []batcher.Drafter{&spoiled{mtp, rand.New(rand.NewPCG(4, 5)), r.acceptance, cfg.Vocab}}
	}
	engine := batcher.New(r.bundle.Model, cache, opt)
	ctx, cancel := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- engine.Run(ctx) }()
	defer func() {
		cancel()
		if runErr := <-ran; runErr != nil && !errors.Is(runErr, context.Canceled) {
			err = errors.Join(err, runErr)
		}
	}()

	random := rand.New(rand.NewPCG(1, 2))
	for i := range r.runs() {
		took, err := runEngineTest(ctx, engine, t, r.held, cfg.Vocab, random)
		if err != nil {
			return times, err
		}
		if i > 0 || r.warm {
			times = append(times, took)
		}
		r.done()
	}
	return times, nil
}

// engineTimes is the time of one run.
type engineTimes struct {
	whole  time.Duration // from the first prompt, or the first token after it, to the last token
	decode time.Duration // the mean time of a sequence from its first token to its last
	cpu    time.Duration // of the program's threads during whole
}

// runEngineTest times one run.
func runEngineTest(ctx context.Context, e *batcher.Engine, t engineTest, held sampling.Constraint, vocab int, random *rand.Rand) (took engineTimes, err error) {
	prompts := make([][]int32, t.width)
	for i := range prompts {
		prompts[i] = make([]int32, t.prompt)
		for j := range prompts[i] {
			prompts[i][j] = int32(random.IntN(vocab))
		}
	}
	sequences := make([]*batcher.Sequence, t.width)
	defer func() {
		for _, s := range sequences {
			if s != nil {
				s.Close()
			}
		}
	}()
	decode := make([]time.Duration, t.width)
	each := func(do func(i int) error) error {
		var g errgroup.Group
		for i := range prompts {
			g.Go(func() error { return do(i) })
		}
		return g.Wait()
	}
	prefill := func(i int) (err error) {
		if sequences[i], err = e.Open(ctx, prompts[i]); err == nil && (t.deep || t.decode == 0) {
			_, err = sequences[i].Logits(ctx, 0)
		}
		return err
	}
	answer := func(i int) (err error) {
		decode[i], err = t.generate(ctx, sequences[i], prompts[i][0], held, vocab)
		return err
	}
	start, cpu := time.Now(), processorTime()
	switch {
	case t.decode == 0:
		err = each(prefill)
	case t.deep:
		if err = each(prefill); err == nil {
			start, cpu = time.Now(), processorTime()
			err = each(answer)
		}
	default:
		err = each(func(i int) error {
			if err := prefill(i); err != nil {
				return err
			}
			return answer(i)
		})
	}
	took.whole, took.cpu = time.Since(start), processorTime()-cpu
	for _, d := range decode {
		took.decode += d / time.Duration(t.width)
	}
	return took, err
}

// generate decodes the test's tokens in a sequence that begins with token first. It
// returns the time from the first decoded token to the last.
func (t engineTest) generate(ctx context.Context, s *batcher.Sequence, first int32, held sampling.Constraint, vocab int) (time.Duration, error) {
	p := sampling.Params{MaxTokens: t.decode, IgnoreEOS: true}
	if t.repeat {
		p.LogitBias = map[int32]float32{first: 1e6}
	}
	if t.structured {
		p.Constraint = held
	}
	if t.dictate {
		p.Constraint = dictation{vocab: min(vocab, 1<<15)} // which an MTP layer guesses
	}
	n := 0
	for _, err := range s.Generate(ctx, p) {
		if err != nil {
			return 0, err
		}
		n++
	}
	if n != t.decode {
		return 0, fmt.Errorf("generated %d tokens of %d", n, t.decode)
	}
	timing := s.Timing()
	return timing.LastToken.Sub(timing.FirstToken), nil
}

// spoiled is a Drafter that knows the text, as constraints have it, and makes a part of its guesses wrong.
type spoiled struct {
	batcher.Follower
	random     *rand.Rand
	acceptance float64
	vocab      int
}

// Draft implements batcher.Drafter.
func (d *spoiled) Draft(guesses []*batcher.Guess, extra float64) error {
	err := d.Follower.Draft(guesses, extra)
	for _, g := range guesses {
		for i := range g.Tokens {
			if d.random.Float64() >= d.acceptance {
				g.Tokens[i] = (g.Tokens[i] + 1) % int32(d.vocab)
			}
		}
	}
	return err
}

// dictation is a Constraint that allows one token at each position, random among a
// vocabulary of this size.
type dictation struct{ vocab, at int }

func (d dictation) Next(int32) sampling.Constraint { return dictation{d.vocab, d.at + 1} }

func (d dictation) Allow(mask []uint64) {
	id := rand.New(rand.NewPCG(3, uint64(d.at))).IntN(d.vocab)
	mask[id/64] |= 1 << (id % 64)
}

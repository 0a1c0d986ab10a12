package engines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/memory"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/synthetic"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
)

// randomModel is the path of a model of random weights, written an hour ago.
func randomModel(t *testing.T) string {
	t.Helper()
	shape, err := synthetic.Named("tiny")
	if err != nil {
		t.Fatal(err)
	}
	var model bytes.Buffer
	if err := synthetic.Write(&model, shape, synthetic.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "random.gguf")
	hourAgo := time.Now().Add(-time.Hour)
	if err := errors.Join(os.WriteFile(path, model.Bytes(), 0o600), os.Chtimes(path, hourAgo, hourAgo)); err != nil {
		t.Fatal(err)
	}
	return path
}

// running is a runtime whose engines step.
type running struct {
	*Runtime
	ctx context.Context
	log *bytes.Buffer // to read after end
	end func()        // once; fails the test where Run has
}

// run loads the models of cfg and runs them until the test ends.
func run(t *testing.T, cfg config.Config) *running {
	t.Helper()
	log := new(bytes.Buffer)
	r, err := New(t.Context(), cfg, zerolog.New(log), Watcher{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx) }()
	end := sync.OnceFunc(func() {
		stop()
		if err := <-ran; err != nil {
			t.Errorf("Run() = %v, want no error", err)
		}
	})
	t.Cleanup(func() {
		end()
		r.Close()
	})
	return &running{r, ctx, log, end}
}

// answer has a model compute three tokens.
func (r *running) answer(h *Host) error {
	s, err := h.Engine.Open(r.ctx, []int32{1, 2, 3})
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Logits(r.ctx, 0)
	return err
}

func TestAModelWhoseFileIsOverwrittenLeavesTheOthersServing(t *testing.T) {
	path := randomModel(t)
	cfg := config.Default()
	cfg.Models = []config.Model{{Path: path}, {Embedded: "lutra-tiny-s"}}
	cfg.KV.Memory = "8MiB"
	r := run(t, cfg)
	answer := r.answer
	bad, good := r.Hosts[0], r.Hosts[1]
	if err := errors.Join(answer(bad), answer(good)); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var failed *batcher.FailedError
		if err := answer(bad); !errors.As(err, &failed) || failed.Model != "random" || !errors.Is(err, gguf.ErrChanged) {
			t.Errorf("the model whose file was overwritten answers %v, want a FailedError of gguf.ErrChanged", err)
		}
		if err := answer(good); err != nil {
			t.Errorf("the other model answers %v", err)
		}
	}
	r.end()
	if n := strings.Count(r.log.String(), "answers no more requests"); n != 1 {
		t.Errorf("the log reports the failure %d times, want once:\n%s", n, r.log.String())
	}
}

func TestADraftWhoseFileIsOverwrittenStopsDrafting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "draft.gguf")
	f, err := embedded.Open("lutra-tiny-s")
	if err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	if err := gguf.Write(&raw, f.Metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Models, cfg.Verifiers = []config.Model{{Embedded: "lutra-tiny-l", Draft: path}}, nil
	cfg.KV.Memory, cfg.Engine.Speculation = "8MiB", "3"
	var log bytes.Buffer
	r, err := New(t.Context(), cfg, zerolog.New(&log), Watcher{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.Truncate(path, 1000); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx) }()
	s, err := r.Hosts[0].Engine.Open(ctx, []int32{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range s.Generate(ctx, sampling.Params{MaxTokens: 20, IgnoreEOS: true}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if s.Close(); n != 20 {
		t.Errorf("%d tokens without the draft, want 20", n)
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "the draft model has failed"); n != 1 {
		t.Errorf("the log reports the failure %d times, want once:\n%s", n, log.String())
	}
}

func TestMemoryIsDividedWhenAllModelsAreLoaded(t *testing.T) {
	cfg := config.Default()
	cfg.Models[0].Draft = "lutra-tiny-s"
	r := &Runtime{loader: loader{Pool: pool.New(1), shelf: newShelf(), cfg: cfg, log: zerolog.Nop(), room: memory.ForWeights}, arbiter: batcher.NewStepArbiter()}
	defer r.Close()
	if err := r.load(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	asked := 0
	const free = 64 << 20
	r.free = func() int64 {
		asked++
		if len(r.Hosts) != 2 || len(r.verifiers) != 1 || r.Hosts[0].draft == nil {
			t.Errorf("memory is asked for with %d models and %d verifiers loaded", len(r.Hosts), len(r.verifiers))
		}
		return free
	}
	if err := r.makeEngines(cfg); err != nil {
		t.Fatal(err)
	}
	total, caches := int64(0), 0
	for _, h := range r.All() {
		for i, cache := range h.caches {
			opt := kv.Options{BlockLen: cache.BlockLen()}
			total += int64(cache.Blocks()) * kv.BytesPerBlock(h.bundles()[i].Model.Config().KV(), opt)
			caches++
		}
	}
	if asked != 1 || caches != 4 || total > free/kvShare || total < free/kvShare*9/10 {
		t.Errorf("%d caches of %d bytes together, of %d free bytes asked for %d times", caches, total, free, asked)
	}
}

func TestAutomaticMemoryHoldsSoManyContextsAtMost(t *testing.T) {
	shape := models.Config{Layers: 1, AttentionShape: models.AttentionShape{KVHeads: 1, HeadDim: 2}, Context: 100}
	cache, err := newKV(config.Default().KV, shape, 512, 1<<40, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	if want := contextsKept * 4; cache.Blocks() != want { // 100 tokens take 4 blocks of 32
		t.Errorf("%d blocks, want %d", cache.Blocks(), want)
	}
	c := config.Default().KV
	c.Memory = "1MiB"
	if cache, err := newKV(c, models.Config{Layers: 100, AttentionShape: models.AttentionShape{KVHeads: 64, HeadDim: 128}, Context: 100}, 512, 0, 0); err == nil || !strings.Contains(err.Error(), "kv.memory") {
		t.Errorf("a budget of less than a block: %v, %v", cache, err)
	}
}

func TestRecurrentStatesTakeHalfOfACachesMemory(t *testing.T) {
	shape := models.Config{Layers: 4, StateShape: models.StateShape{RecurrentLayers: 3, State: 1 << 18}, AttentionShape: models.AttentionShape{KVHeads: 1, HeadDim: 64}, Context: 1 << 20}
	c := config.Default().KV
	for memory, want := range map[string]int{"64MiB": 31, "3MiB": 1, "1.1MiB": 1, "4GiB": statesKept} {
		c.Memory = memory
		cache, err := newKV(c, shape, 512, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if cache.States() != want || cache.Blocks() < 1 {
			t.Errorf("%s: %d states and %d blocks, want %d states", memory, cache.States(), cache.Blocks(), want)
		}
		budget, err := c.Bytes()
		if total := int64(cache.States())*kv.BytesPerState(shape.KV()) + int64(cache.Blocks())*kv.BytesPerBlock(shape.KV(), kv.Options{BlockLen: cache.BlockLen()}); err != nil || total > budget {
			t.Errorf("%s: %d bytes", memory, total)
		}
		cache.Close()
	}
	c.Memory = "1MiB"
	if _, err := newKV(c, shape, 512, 0, 0); err == nil || !strings.Contains(err.Error(), "kv.memory: 1.0 MiB does not hold one recurrent state (1.0 MiB)") {
		t.Errorf("a budget of less than a state: %v", err)
	}
}

func TestACacheOfStatesAloneHasBlocksForAFewContexts(t *testing.T) {
	for context, want := range map[int]int{100: contextsKept * 4, 1 << 15: tokensKept / 32, 1 << 20: 2 << 20 / 32} {
		shape := models.Config{Layers: 4, StateShape: models.StateShape{RecurrentLayers: 4, State: 1 << 10}, Context: context}
		cache, err := newKV(config.Default().KV, shape, 512, 1<<30, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		if cache.Blocks() != want || cache.States() != statesKept {
			t.Errorf("a context of %d: %d blocks and %d states, want %d and %d", context, cache.Blocks(), cache.States(), want, statesKept)
		}
		cache.Close()
	}
}

func TestSpeculationThatIsAskedForByNameNeedsStatesThatCanGoBack(t *testing.T) {
	plain, recurrent, device := &models.Bundle{Model: &toy.Model{}}, &models.Bundle{Model: &toy.Model{States: 1}}, &models.Bundle{Model: onDevice{&toy.Model{States: 1}}}
	for _, how := range []batcher.Speculation{batcher.SpeculateAuto, batcher.SpeculateOff, "", "3"} {
		for _, b := range []*models.Bundle{plain, recurrent} {
			if err := speculates(how, b); err != nil {
				t.Errorf("speculation %q: %v", how, err)
			}
		}
		if err := speculates(how, device); (err == nil) != (how != "3") || err != nil && !strings.Contains(err.Error(), "engine.speculation is 3: the model's recurrent states lie on a device") {
			t.Errorf("speculation %q with states on a device: %v", how, err)
		}
	}
	if err := drafts(plain, device); err == nil || !strings.Contains(err.Error(), "states lie on a device") {
		t.Errorf("a draft for states on a device: %v", err)
	}
}

// onDevice is a model whose recurrent states a backend has.
type onDevice struct{ *toy.Model }

func (m onDevice) Config() models.Config {
	c := m.Model.Config()
	c.GuessBytes = 0
	return c
}

func TestLoadingIsLoggedWhenItBeginsAndEveryFewSeconds(t *testing.T) {
	var log bytes.Buffer
	clock := time.Unix(0, 0)
	p := fileProgress{log: zerolog.New(&log), now: func() time.Time { return clock }}
	p.update(50, 100) // an embedded model: no file
	p.begin("big.gguf", 1<<30)
	for i := range int64(101) {
		clock = clock.Add(120 * time.Millisecond)
		p.update(i, 100)
	}
	p.update(100, 100)
	type line struct {
		Message, Path, Size string
		Percent             int
	}
	var got []line
	for d := json.NewDecoder(&log); d.More(); {
		var l line
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		got = append(got, l)
	}
	want := []line{{"loading", "big.gguf", "1.00 GiB", 0}, {"loading", "", "", 41}, {"loading", "", "", 83}}
	if !slices.Equal(got, want) {
		t.Errorf("logged %+v, want %+v", got, want)
	}
}

func TestAWatcherHearsOfEveryModelThatLoads(t *testing.T) {
	cfg := config.Default()
	cfg.Models = []config.Model{{Path: randomModel(t), Name: "mine"}, {Embedded: "lutra-tiny-l", Draft: "lutra-tiny-s"}}
	cfg.KV.Memory = "8MiB"
	first, last := map[string]int64{}, map[string]float64{}
	r, err := New(t.Context(), cfg, zerolog.Nop(), Watcher{Loading: func(model string, done, total int64) {
		if _, ok := first[model]; !ok {
			first[model] = total
		}
		if total > 0 {
			last[model] = float64(done) / float64(total)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	for _, name := range []string{"mine", "lutra-tiny-l", "lutra-tiny-s", "lutra-tiny-prm"} {
		if total, ok := first[name]; !ok || total != 0 || last[name] != 1 {
			t.Errorf("%s was first reported with %d bytes and came to %v, want 0 and 1", name, total, last[name])
		}
	}
}

func TestAContextThatCannotBeHeldIsRefused(t *testing.T) {
	for _, c := range []struct {
		context      int
		memory, want string
	}{
		{1025, "auto", "a context of 1025 tokens is longer than the model's own of 1024"},
		{1024, "1MiB", "kv.memory: there is room for 672 tokens, fewer than the configured context of 1024"},
		{100, "1MiB", ""},
	} {
		cfg := config.Default()
		cfg.Models, cfg.KV.Memory = []config.Model{{Embedded: "lutra-tiny-s", Context: c.context}}, c.memory
		r, err := New(t.Context(), cfg, zerolog.Nop(), Watcher{})
		switch {
		case err == nil:
			if got := r.Hosts[0].Bundle.Model.Config().Context; c.want != "" || got != 100 {
				t.Errorf("%+v: a context of %d", c, got)
			}
			r.Close()
		case c.want == "" || !strings.Contains(err.Error(), c.want):
			t.Errorf("%+v: error %v", c, err)
		}
	}
}

func TestADraftModelHasTheVocabularyOfItsModel(t *testing.T) {
	other := randomModel(t)
	for draft, want := range map[string]error{other: tokenizer.ErrVocabulary, "lutra-tiny-prm": nil, "no-such.gguf": nil} {
		cfg := config.Default()
		cfg.Models, cfg.Engine.DraftModel = cfg.Models[:1], draft
		_, err := New(t.Context(), cfg, zerolog.Nop(), Watcher{})
		if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), "lutra-tiny-l") || !strings.Contains(err.Error(), strings.TrimSuffix(filepath.Base(draft), ".gguf")) {
			t.Errorf("%s drafts for lutra-tiny-l: %v, want an error that names both and is %v", draft, err, want)
		}
	}
}

func TestAVerifierThatCanReadNoModelIsLeftOut(t *testing.T) {
	cfg := config.Default()
	cfg.Models = cfg.Models[:1]
	r, err := New(t.Context(), cfg, zerolog.Nop(), Watcher{})
	if err != nil {
		t.Fatal(err)
	}
	if v := r.Verifiers(r.Hosts[0].Model); v.Default != "lutra-tiny-l-probe*lutra-tiny-prm" || len(r.All()) != 2 {
		t.Errorf("verifiers %+v, %d models", v, len(r.All()))
	}
	r.Hosts = nil // as if the models had other words
	verifiers := len(r.verifiers)
	if err := r.loadVerifier(t.Context(), cfg, config.Verifier{Embedded: "lutra-tiny-prm"}); err != nil || len(r.verifiers) != verifiers {
		t.Errorf("loadVerifier = %v, with %d verifiers", err, len(r.verifiers))
	}
	r.Close()
	if _, err := New(t.Context(), config.Config{Models: cfg.Models, KV: cfg.KV, Engine: cfg.Engine, Verifiers: []config.Verifier{{Embedded: "lutra-tiny-s"}}}, zerolog.Nop(), Watcher{}); err == nil || !strings.Contains(err.Error(), "verifier lutra-tiny-s") {
		t.Errorf("a generator for a verifier: error %v", err)
	}
}

func TestEveryModelIsPackedAsConfigured(t *testing.T) {
	cfg := config.Default()
	cfg.Models = []config.Model{{Embedded: "lutra-tiny-s", Packing: "stored"}, {Embedded: "lutra-tiny-l", Packing: "i1"}}
	cfg.Verifiers, cfg.KV.Memory = []config.Verifier{{Embedded: "lutra-tiny-prm", Packing: "stored"}}, "8MiB"
	r, err := New(t.Context(), cfg, zerolog.Nop(), Watcher{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i, want := range []string{"Q2G128", "I1", "Q2G128"} {
		if got := r.All()[i].Bundle.Model.Config().Packings; got != want {
			t.Errorf("model %d is packed as %s, want %s", i, got, want)
		}
	}
}

func TestWhatAPredictorKeepsIsPartOfTheMemoryOfACache(t *testing.T) {
	shape := models.Config{Layers: 4, AttentionShape: models.AttentionShape{KVHeads: 1, HeadDim: 64}, Context: 1 << 20}
	shape.Predictor = kv.Shape{Layers: 1, Heads: 1, HeadDim: 64}
	const memory = 4 << 20
	c := config.Default().KV
	for _, fixed := range []bool{false, true} {
		if c.Memory = "auto"; fixed {
			c.Memory = "4MiB"
		}
		blocks := map[batcher.Speculation]int{}
		for _, how := range []batcher.Speculation{batcher.SpeculateOff, batcher.SpeculateAuto, "3"} {
			own := speculating(shape, how)
			cache, err := newKV(c, own, 512, memory, 2*memory)
			if err != nil {
				t.Fatal(err)
			}
			opt := kv.Options{Type: cache.Type(), BlockLen: cache.BlockLen()}
			each := kv.BytesPerBlock(shape.KV(), opt)
			if how != batcher.SpeculateOff {
				each += kv.BytesPerBlock(shape.Predictor, opt)
			}
			if total := int64(cache.Blocks()) * each; total > memory || total < memory*9/10 {
				t.Errorf("speculation %s, memory %s: all blocks take %d bytes of %d", how, c.Memory, total, memory)
			}
			blocks[how] = cache.Blocks()
			cache.Close()
		}
		if blocks[batcher.SpeculateOff] <= blocks[batcher.SpeculateAuto] || blocks["3"] != blocks[batcher.SpeculateAuto] {
			t.Errorf("memory %s: blocks %v", c.Memory, blocks)
		}
	}
}

func TestResidualsArePartOfTheMemoryOfACacheOf4Bits(t *testing.T) {
	shape := models.Config{Layers: 4, AttentionShape: models.AttentionShape{KVHeads: 1, HeadDim: 64}, Context: 1 << 20}
	shape.Predictor = kv.Shape{Layers: 1, Heads: 1, HeadDim: 64}
	c := config.Default().KV
	for _, kind := range []string{"int4", "int8/int4", "int8"} {
		for _, memory := range []string{"1MiB", "1.3MiB", "4MiB", "64MiB"} {
			c.Type, c.Memory = kind, memory
			budget, err := c.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			cache, err := newKV(c, shape, 512, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			opt := kv.Options{Type: cache.Type(), BlockLen: cache.BlockLen()}
			own := int64(cache.Blocks())*kv.BytesPerBlock(shape.Predictor, opt) + int64(cache.Residuals())*kv.BytesPerResidual(shape.Predictor, opt)
			if total := cache.Bytes() + own; total > budget || total < budget*9/10 {
				t.Errorf("%s in %s: blocks and residuals take %d bytes", kind, memory, total)
			}
			if least := batcher.StepResiduals(512, cache.BlockLen()); kind != "int8" && cache.Residuals() < min(cache.Blocks(), least+cache.Blocks()*cache.BlockLen()/leastContext) {
				t.Errorf("%s in %s: %d residuals of %d blocks", kind, memory, cache.Residuals(), cache.Blocks())
			}
			f := Footprint{Measured: models.Measured{Config: shape}, BlockLen: cache.BlockLen(), sizes: sizesOf(shape, opt, 512)}
			if got, tokens := f.Tokens(budget, 1), cache.Blocks()*cache.BlockLen(); got != tokens || f.Cache(tokens, 1) > budget || f.Cache(tokens+1, 1) <= budget {
				t.Errorf("%s in %s: info --fit says %d tokens, the cache has %d", kind, memory, got, tokens)
			}
			if n := f.Streams(budget, 500); f.Cache(500, n) > budget || f.Cache(500, n+1) <= budget {
				t.Errorf("%s in %s: %d streams of 500 tokens", kind, memory, n)
			}
			cache.Close()
		}
	}
}

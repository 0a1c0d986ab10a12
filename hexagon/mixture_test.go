package hexagon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
)

func TestReferenceMixturesWriteTheirTextInEveryPlacement(t *testing.T) {
	if os.Getenv("LUTRA_GOLDEN") == "" {
		t.Skip("LUTRA_GOLDEN names no reference models")
	}
	p := newPool(t)
	for _, name := range []string{"mixtral-8x2", "mixtral-4x4-q4_k", "qwen3moe-8x2"} {
		dir := filepath.Join(os.Getenv("LUTRA_GOLDEN"), "models", name)
		raw, err := os.ReadFile(filepath.Join(dir, "golden.json"))
		if err != nil {
			t.Fatal(err)
		}
		var g struct {
			golden
			Greedy []int32 `json:"greedy_exact"`
		}
		if err := json.Unmarshal(raw, &g); err != nil {
			t.Fatal(err)
		}
		exact := readArray(t, filepath.Join(dir, "logits_exact.npy"))
		load := func() (*gguf.File, error) { return gguf.Open(filepath.Join(dir, "model.gguf")) }
		for _, placement := range Placements() {
			t.Run(name+"/"+placement, func(t *testing.T) {
				bundle, b := mixtureOn(t, p, Options{Path: PathLookup, Placement: Placement(placement)}, load)
				f := newFeeder(t, bundle.Model)
				row := f.feed(len(g.Tokens), g.Tokens...)
				if e := nmse(row, exact); !(e <= g.Tolerance.Engine+deviceNoise) {
					t.Errorf("NMSE %.3g, want at most %.3g", e, g.Tolerance.Engine+deviceNoise)
				}
				row = row[len(row)-bundle.Model.Config().Vocab:]
				for i, want := range g.Greedy {
					token := int32(vector.Argmax(row))
					if token != want {
						t.Fatalf("token %d is %d, want %d", i, token, want)
					}
					row = f.feed(1, token)
				}
				if c := b.Counts(); c.Tokens != int64(len(g.Tokens)) || c.Routed != c.Computed+c.Overflow+c.Cold {
					t.Errorf("%+v", c)
				}
			})
		}
	}
}

func TestAPlanForOtherMixturesIsRefusedWithWhatDiffers(t *testing.T) {
	p := newPool(t)
	for want, change := range map[string]func(s *experts.Shape){
		"3 layers":                                 func(s *experts.Shape) { s.Layers = 3 },
		"16 experts a layer":                       func(s *experts.Shape) { s.Experts = 16 },
		"2 experts a token":                        func(s *experts.Shape) { s.Chosen = 2 },
		"512 numbers a token":                      func(s *experts.Shape) { s.Hidden = 512 },
		"128 numbers within an expert":             func(s *experts.Shape) { s.Width = 128 },
		"the model synthetic tiny experts has 256": func(s *experts.Shape) { s.Width = 768 },
	} {
		plan := capacityPlan(256, 4, 64, allHot)
		change(&plan.Shape)
		f, err := fileOf(tinyExperts, gguf.TQ2_0)()
		if err != nil {
			t.Fatal(err)
		}
		b, err := Open("hexagon-go", Options{Plan: plan})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := models.LoadFile(f, models.LoadOptions{Pool: p, Backend: b}); !errors.Is(err, models.ErrModel) || !strings.Contains(err.Error(), want) {
			t.Errorf("loading gave %v, want an error that says %q", err, want)
		}
	}
}

func TestAModelWithoutExpertsTakesNoNoticeOfPlacements(t *testing.T) {
	sweep.Full(t)
	p := newPool(t)
	var first []float32
	for _, placement := range Placements() {
		b, backend := mixtureOn(t, p, Options{Placement: Placement(placement), Plan: capacityPlan(64, 4, 16, allHot)}, embeddedFile("lutra-tiny-s"))
		got := newFeeder(t, b.Model).feed(1, someTokens(50)...)
		if first == nil {
			first = got
		}
		if !slices.Equal(got, first) || backend.Counts() != (experts.Counts{}) {
			t.Errorf("placement %s changes a model without experts", placement)
		}
	}
}

func TestALaunchAsksTheSameOfTheDeviceForAnyRows(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const rows, cols, experts, most = 130, 512, 3, 40
	all := deviceMatrices(t, r, rows, cols)
	for name, w := range all {
		for _, path := range []Path{PathLookup, PathTiles} {
			var packets, first []device.Packet
			b := New("test", func(bytes int) (device.Device, error) {
				return hooked(bytes, func(p *device.Packet) error {
					packets = append(packets, *p)
					return nil
				}, nil)
			}, Options{Path: path})
			if err := b.Mixtures(models.MixtureShape{Model: "test", Layers: 1, Experts: experts, Chosen: experts, Hidden: cols, Width: rows}); err != nil {
				t.Fatal(err)
			}
			var ls []*linear
			for range experts {
				l, err := b.Load(w)
				if err != nil {
					t.Fatal(err)
				}
				ls = append(ls, l.(*linear))
			}
			if err := b.Start(); err != nil {
				t.Fatal(err)
			}
			x, y, want := gaussians(r, most*cols), make([]float32, most*rows), make([]float32, most*rows)
			var acts kernels.Acts
			acts.Set(x, most, cols)
			ls[0].Mul(want, &acts)
			from := make([]int32, most)
			for i := range from {
				from[i] = int32(i)
			}
			for _, n := range [][experts]int{{most, most, most}, {0, 1, 0}, {33, 0, 7}} {
				products := make([]product, experts)
				for i, l := range ls {
					products[i] = product{linear: l, n: n[i], x: x, from: from, y: y, to: from, capacity: most, lookup: path == PathLookup}
				}
				packets = nil
				if err := b.products.launch(products); err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = packets
				}
				if len(packets) == 0 || !slices.Equal(packets, first) {
					t.Errorf("%s, %s: %v rows are %d packets, where full capacities are %d; or they are others", name, path, n, len(packets), len(first))
				}
				if m := slices.Max(n[:]) * rows; !slices.Equal(y[:m], want[:m]) {
					t.Errorf("%s, %s: %v rows have other products in a launch than alone", name, path, n)
				}
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// loaded is a model on b, which is started.
func loaded(t *testing.T, p *pool.Pool, b *Backend, load func() (*gguf.File, error), spare bool) *models.Bundle {
	t.Helper()
	f, err := load()
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := models.LoadFile(f, models.LoadOptions{Pool: p, Backend: b, Spare: spare})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bundle.Close() })
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	return bundle
}

func TestADeviceThatFailsAmidALaunchEndsTheStepAndTheCPUGoesOnIfItIsToldTo(t *testing.T) {
	sweep.Full(t)
	p := newPool(t)
	load, tokens := fileOf(tinyExperts, gguf.TQ2_0), someTokens(100)
	want := newFeeder(t, onDevice(t, "", Options{}, p, load).Model).feed(len(tokens), tokens...)
	for _, at := range []int{1, 40, 90} { // products by tiles: of the first launch, and of later ones
		for _, spare := range []bool{false, true} {
			t.Run(fmt.Sprint(at, spare), func(t *testing.T) {
				products := 0
				b := New("faulty", func(bytes int) (device.Device, error) {
					return hooked(bytes, func(p *device.Packet) error {
						if p.Op == device.OpTileMul {
							if products++; products == at {
								return errDied
							}
						}
						return nil
					}, nil)
				}, Options{Path: PathTiles, Placement: PlacementNaive})
				bundle := loaded(t, p, b, load, spare)
				f := newFeeder(t, bundle.Model)
				forward := func() error {
					f.batch.Reset()
					f.batch.Add(f.seq, 0, len(tokens), tokens...)
					return bundle.Model.Forward(&f.batch, f.cache)
				}
				if err := f.seq.Grow(len(tokens)); err != nil {
					t.Fatal(err)
				}
				var fault *models.FaultError
				if err := forward(); !errors.As(err, &fault) || fault.Spare != spare || !errors.Is(err, errDied) {
					t.Fatalf("the step ends with %v", err)
				}
				err := forward()
				switch {
				case !spare && !errors.As(err, &fault):
					t.Errorf("the next step ends with %v", err)
				case spare && err != nil:
					t.Error(err)
				case spare && !slices.Equal(f.batch.Logits, want):
					t.Errorf("NMSE %.3g against the CPU, which computes everything now", nmse(f.batch.Logits, want))
				}
			})
		}
	}
}

// watched is a model that calls a function after each step.
type watched struct {
	models.Model
	after func(b *models.Batch)
}

func (w *watched) Forward(b *models.Batch, cache *kv.Cache) error {
	err := w.Model.Forward(b, cache)
	w.after(b)
	return err
}

// engineOf runs an engine for a test.
func engineOf(t *testing.T, m models.Model, p *pool.Pool) *batcher.Engine {
	t.Helper()
	cache, err := kv.New(m.Config().KV(), kv.Options{BlockLen: 16, Blocks: 128})
	if err != nil {
		t.Fatal(err)
	}
	opt := batcher.DefaultOptions()
	opt.Pool, opt.StepTokens = p, 64
	e := batcher.New(m, cache, opt)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		cache.Close()
	})
	return e
}

// next is the most likely token after a prompt.
func next(ctx context.Context, e *batcher.Engine, prompt []int32) ([]float32, error) {
	s, err := e.Open(ctx, prompt)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	row, err := s.Logits(ctx)
	return slices.Clone(row), err
}

func TestAPromptThatIsCancelledAmidItsChunksLeavesOthersTheirAnswers(t *testing.T) {
	sweep.Full(t)
	p := newPool(t)
	bundle, _ := mixtureOn(t, p, Options{Path: PathLookup, Plan: capacityPlan(64, 4, 16, 8)}, fileOf(tinyExperts, gguf.TQ2_0))
	other := someTokens(150)
	want := slices.Clone(newFeeder(t, bundle.Model).feed(1, other...))
	ctx, cancel := context.WithCancel(t.Context())
	steps := 0
	e := engineOf(t, &watched{bundle.Model, func(*models.Batch) {
		if steps++; steps == 2 {
			cancel()
		}
	}}, p)
	answered := make(chan error, 1)
	go func() {
		row, err := next(t.Context(), e, other)
		if err == nil && !slices.Equal(row, want) {
			err = fmt.Errorf("its logits are others: NMSE %.3g", nmse(row, want))
		}
		answered <- err
	}()
	if _, err := next(ctx, e, someTokens(900)); !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled prompt ends with %v", err)
	}
	if err := <-answered; err != nil {
		t.Errorf("the other prompt: %v", err)
	}
}

func TestAPromptThatOverflowsGetsTheSameLogitsBesideAnyOthers(t *testing.T) {
	sweep.Full(t)
	p := newPool(t)
	bundle, b := mixtureOn(t, p, Options{Path: PathLookup, Plan: capacityPlan(64, 4, 16, allHot)}, fileOf(tinyExperts, gguf.TQ2_0))
	prompts := [][]int32{someTokens(150), someTokens(151), someTokens(130), someTokens(64), someTokens(20), slices.Concat(someTokens(150), someTokens(40))}
	var want [][]float32
	for _, prompt := range prompts {
		want = append(want, slices.Clone(newFeeder(t, bundle.Model).feed(1, prompt...)))
	}
	e := engineOf(t, bundle.Model, p)
	for range 2 { // the second time the prefix cache helps
		errs := make(chan error, len(prompts))
		for i, prompt := range prompts {
			go func() {
				row, err := next(t.Context(), e, prompt)
				if err == nil && !slices.Equal(row, want[i]) {
					err = fmt.Errorf("prompt %d: NMSE %.3g against itself alone", i, nmse(row, want[i]))
				}
				errs <- err
			}()
		}
		for range prompts {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	}
	if c := b.Counts(); c.Overflow == 0 {
		t.Errorf("nothing overflows: %+v", c)
	}
}

func TestExpertsThatAreTooTallForAPacketAreTheCPUs(t *testing.T) {
	w := matrices.Random(t, rand.New(rand.NewPCG(1, 1)), matrix.Q4, device.MaxDim+32, 32)
	b, err := Open("hexagon-go", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Mixtures(models.MixtureShape{Model: "test", Layers: 1, Experts: 1, Chosen: 1, Hidden: 32, Width: w.Rows / 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Expert(0, 0).Load(w); !errors.Is(err, matrix.ErrUnsupported) {
		t.Errorf("loading gave %v", err)
	}
	if _, err := b.Load(w); err != nil { // as an output matrix
		t.Error(err)
	}
}

package hexagon

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// onDevice loads a model on the backend of that name; empty: the CPU.
func onDevice(t testing.TB, kind string, opt Options, p *pool.Pool, load func() (*gguf.File, error)) *models.Bundle {
	t.Helper()
	f, err := load()
	if err != nil {
		t.Fatal(err)
	}
	use := models.LoadOptions{Pool: p}
	var b *Backend
	if kind == "hexagon-qemu" {
		sweep.Hexagon(t, "qemu-hexagon")
	}
	if kind != "" {
		opt.Pool = p
		if b, err = Open(kind, opt); err != nil {
			t.Skip(err)
		}
		use.Backend = b
	}
	bundle, err := models.LoadFile(f, use)
	if errors.Is(err, models.ErrModel) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bundle.Close(); err != nil {
			t.Error(err)
		}
	})
	if b != nil {
		if err := b.Start(); err != nil {
			t.Fatal(err)
		}
	}
	return bundle
}

func embeddedFile(name string) func() (*gguf.File, error) {
	return func() (*gguf.File, error) { return embedded.Open(name) }
}

func newPool(t testing.TB) *pool.Pool {
	p := pool.New(2)
	t.Cleanup(p.Close)
	return p
}

// feeder drives one sequence through a model.
type feeder struct {
	t     testing.TB
	m     models.Model
	cache *kv.Cache
	seq   *kv.Sequence
	batch models.Batch
}

func newFeeder(t testing.TB, m models.Model) *feeder {
	t.Helper()
	cache, err := kv.New(m.Config().KV(), kv.Options{BlockLen: 16, Blocks: 64, States: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cache.Close() })
	return &feeder{t: t, m: m, cache: cache, seq: cache.Open(nil)}
}

// feed computes tokens and returns the logits of the last out of them.
func (f *feeder) feed(out int, tokens ...int32) []float32 {
	f.t.Helper()
	at := f.seq.Len()
	if err := f.seq.Grow(len(tokens)); err != nil {
		f.t.Fatal(err)
	}
	f.batch.Reset()
	f.batch.Add(f.seq, at, out, tokens...)
	if err := f.m.Forward(&f.batch, f.cache); err != nil {
		f.t.Fatal(err)
	}
	return f.batch.Logits
}

// nmse is Σ(got-want)² / Σ want².
func nmse(got, want []float32) float64 {
	var num, den float64
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		num, den = num+d*d, den+float64(w)*float64(w)
	}
	return num / den
}

// golden holds the logits of a reference model from an independent float64 forward pass.
type golden struct {
	Tokens    []int32 `json:"tokens"`
	Tolerance struct {
		Engine float64 `json:"nmse_engine_vs_exact_max"`
	} `json:"tolerance"`
}

// deviceNoise is the NMSE that arithmetic on a device may cause by itself: fp16
// results, attention weights in fp16, activations of 14 bits.
const deviceNoise = 2e-5

func TestReferenceModelsKeepToTheirToleranceOnTheDevice(t *testing.T) {
	var all []string
	for _, variable := range []string{"LUTRA_GOLDEN", "LUTRA_GOLDEN_GROUPS"} {
		found, err := filepath.Glob(filepath.Join(os.Getenv(variable), "models/*/golden.json"))
		if err != nil {
			t.Fatal(err)
		}
		if os.Getenv(variable) != "" {
			all = append(all, found...)
		}
	}
	if len(all) == 0 {
		t.Skip("LUTRA_GOLDEN and LUTRA_GOLDEN_GROUPS name no reference models")
	}
	p := newPool(t)
	for _, path := range all {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var g golden
			raw, err := os.ReadFile(path)
			if err == nil {
				err = json.Unmarshal(raw, &g)
			}
			if err != nil {
				t.Fatal(err)
			}
			want := readArray(t, filepath.Join(dir, "logits_exact.npy"))
			load := func() (*gguf.File, error) { return gguf.Open(filepath.Join(dir, "model.gguf")) }
			for _, path := range []Path{PathLookup, PathTiles} {
				var first []float32
				for _, kind := range []string{"hexagon-go", "hexagon-qemu"} {
					t.Run(fmt.Sprintf("%s/%s", path, kind), func(t *testing.T) {
						b := onDevice(t, kind, Options{Path: path}, p, load)
						cfg, logits := b.Model.Config(), newFeeder(t, b.Model).feed(len(g.Tokens), g.Tokens...)
						e := nmse(logits, want)
						t.Logf("NMSE %.3g, tolerance %.3g, %.0f %% of the weights on the device (%s)", e, g.Tolerance.Engine,
							100*float64(cfg.Sent)/float64(cfg.Params), cfg.Packings)
						if !(e <= g.Tolerance.Engine+deviceNoise) {
							t.Errorf("NMSE %.3g, want at most %.3g", e, g.Tolerance.Engine+deviceNoise)
						}
						if first == nil {
							first = logits
						}
						if !slices.Equal(first, logits) {
							t.Error("the devices differ")
						}
					})
				}
			}
		})
	}
}

// readArray reads a .npy file of float32: 10 bytes, the text whose length ends them,
// and the numbers.
func readArray(t *testing.T, path string) []float32 {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw = raw[10+int(binary.LittleEndian.Uint16(raw[8:])):]
	x := make([]float32, len(raw)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return x
}

const question = "<|im_start|>user A box holds 12 eggs. Ann buys 7 boxes and eats 3 eggs. How many eggs does she have?<|im_end|>\n<|im_start|>assistant "

func TestEmbeddedModelsAnswerAlikeOnAllDevicesAndNearTheCPU(t *testing.T) {
	p := newPool(t)
	for i, name := range []string{"lutra-tiny-s", "lutra-tiny-l"}[:sweep.Of(t, 1, 2)] {
		for _, path := range []Path{PathAuto, PathLookup, PathTiles} {
			load := embeddedFile(name)
			cpu := onDevice(t, "", Options{}, p, load)
			prompt := cpu.Tokenizer.Encode(nil, question, tokenizer.Options{ParseSpecial: true})
			var exact []float32
			var answers [][]int32
			kinds := []string{"hexagon-go", "hexagon-qemu"}
			if i > 0 && path != PathAuto { // of one shape: the emulator has run these operations
				kinds = kinds[:1]
			}
			for _, kind := range kinds {
				t.Run(fmt.Sprintf("%s/%s/%s", name, path, kind), func(t *testing.T) {
					b := onDevice(t, kind, Options{Path: path}, p, load)
					f := newFeeder(t, b.Model)
					own := newFeeder(t, cpu.Model)
					row, want := f.feed(1, prompt...), own.feed(1, prompt...)
					var answer []int32
					worst := 0.0
					for range 30 {
						worst = max(worst, nmse(row, want))
						token := int32(vector.Argmax(row))
						answer = append(answer, token)
						if slices.Contains(b.Tokenizer.EOGs(), token) {
							break
						}
						row, want = f.feed(1, token), own.feed(1, token)
					}
					t.Logf("%d tokens, NMSE against the CPU's logits up to %.3g", len(answer), worst)
					if !(worst <= cpuNoise) {
						t.Errorf("NMSE against the CPU's logits is %.3g, want %.3g at most", worst, cpuNoise)
					}
					answers = append(answers, answer)
					bits := append([]float32(nil), row...)
					if exact == nil {
						exact = bits
					}
					if fmt.Sprint(answers[0]) != fmt.Sprint(answer) || fmt.Sprint(exact) != fmt.Sprint(bits) {
						t.Errorf("%s answers %v, the other device %v; last logits equal: %t", kind, answer, answers[0], fmt.Sprint(exact) == fmt.Sprint(bits))
					}
				})
			}
		}
	}
}

// cpuNoise bounds the distance of the logits from the CPU's, which rounds activations to 8
// bits where the device has 14 bits or fp16.
const cpuNoise = 2e-3

func TestANeighbourChangesNoAnswerOnOnePath(t *testing.T) {
	sweep.Full(t)
	p := newPool(t)
	for _, path := range []Path{PathLookup, PathTiles} {
		b := onDevice(t, "hexagon-go", Options{Path: path}, p, embeddedFile("lutra-tiny-s"))
		prompts := [][]int32{{5, 6, 7, 8}, {9}, make([]int32, 40)}
		var alone [][]float32
		for _, prompt := range prompts {
			alone = append(alone, slices.Clone(newFeeder(t, b.Model).feed(1, prompt...)))
		}
		f := newFeeder(t, b.Model)
		f.batch.Reset()
		for _, prompt := range prompts {
			s := f.cache.Open(nil)
			if err := s.Grow(len(prompt)); err != nil {
				t.Fatal(err)
			}
			f.batch.Add(s, 0, 1, prompt...)
		}
		if err := b.Model.Forward(&f.batch, f.cache); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(f.batch.Logits, slices.Concat(alone...)) {
			t.Errorf("%s: logits are others in a crowd", path)
		}
	}
}

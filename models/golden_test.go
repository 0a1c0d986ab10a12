package models

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/weights"
)

// golden is the description beside a reference model: what it was fed, and
// what an independent float64 forward pass and llama.cpp made of it.
type golden struct {
	Tokens       []int32   `json:"tokens"`
	Vocab        int       `json:"n_vocab"`
	GreedyExact  []int32   `json:"greedy_exact"`
	GapExact     []float64 `json:"greedy_gap_exact"`
	LlamaCppNMSE float64   `json:"nmse_llamacpp_vs_exact"`
	Tolerance    struct {
		Engine float64 `json:"nmse_engine_vs_exact_max"`
		Strict float64 `json:"nmse_strict_f32_engine_vs_exact"`
	} `json:"tolerance"`
	Story *struct {
		Prompt []int32   `json:"prompt_tokens"`
		Greedy []int32   `json:"greedy_exact"`
		Gaps   []float64 `json:"gaps_exact"`
	} `json:"story"`
}

// reference is a reference model: a folder, and of what is in it the values for
// one context, where they depend on it.
type reference struct {
	dir     string
	context int // 0: any
}

func (r reference) String() string {
	if r.context > 0 {
		return fmt.Sprintf("%s.nctx%d", filepath.Base(r.dir), r.context)
	}
	return filepath.Base(r.dir)
}

// file is the path of one of its files.
func (r reference) file(name, ext string) string {
	if r.context > 0 {
		name += fmt.Sprintf(".nctx%d", r.context)
	}
	return filepath.Join(r.dir, name+ext)
}

// open loads the model.
func (r reference) open(t testing.TB, opt LoadOptions) Model {
	opt.Context = r.context
	return openModel(t, filepath.Join(r.dir, "model.gguf"), opt)
}

// readGolden reads a reference's description and its exact logits [len(Tokens)][Vocab].
func readGolden(t *testing.T, r reference) (golden, []float32) {
	t.Helper()
	var g golden
	raw, err := os.ReadFile(r.file("golden", ".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	npy, err := os.ReadFile(r.file("logits_exact", ".npy"))
	if err != nil {
		t.Fatal(err)
	}
	// The header of a .npy file is 10 bytes and the text whose length ends them.
	npy = npy[10+int(binary.LittleEndian.Uint16(npy[8:])):]
	logits := make([]float32, len(npy)/4)
	for i := range logits {
		logits[i] = math.Float32frombits(binary.LittleEndian.Uint32(npy[4*i:]))
	}
	if len(logits) != len(g.Tokens)*g.Vocab {
		t.Fatalf("%v: %d logits for %d tokens of %d", r, len(logits), len(g.Tokens), g.Vocab)
	}
	return g, logits
}

// runner drives one sequence through a model.
type runner struct {
	t   testing.TB
	m   Model
	kv  *kv.Cache
	seq *kv.Sequence
	b   Batch
}

func newRunner(t testing.TB, m Model, kind kv.Type) *runner {
	t.Helper()
	cache, err := kv.New(m.Config().KV(), kv.Options{Type: kind, BlockLen: 16, Blocks: 64, States: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cache.Close() })
	return &runner{t: t, m: m, kv: cache, seq: cache.Open(nil)}
}

// feed computes tokens and returns the logits of the last out of them.
func (r *runner) feed(out int, tokens ...int32) []float32 {
	r.t.Helper()
	pos := r.seq.Len()
	if err := r.seq.Grow(len(tokens)); err != nil {
		r.t.Fatal(err)
	}
	r.b.Reset()
	r.b.Add(r.seq, pos, out, tokens...)
	if err := r.m.Forward(&r.b, r.kv); err != nil {
		r.t.Fatal(err)
	}
	return r.b.Logits
}

// nmse is Σ(got-want)² / Σ want².
func nmse(got, want []float32) float64 {
	var num, den float64
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		num += d * d
		den += float64(w) * float64(w)
	}
	return num / den
}

// oneThread has a model loaded for one thread: a second worker may sleep through all steps that warm
// a model up, and allocates its buffers in those that are watched.
func oneThread(t testing.TB) LoadOptions {
	p := pool.New(1)
	t.Cleanup(p.Close)
	return LoadOptions{Pool: p}
}

// openModel loads the model in the GGUF file at path.
func openModel(t testing.TB, path string, opt LoadOptions) Model {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if opt.Pool == nil {
		opt.Pool = pool.New(2)
		t.Cleanup(opt.Pool.Close)
	}
	m, err := loadModel(f, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.close() })
	return m
}

// goldenModels are the reference models whose architectures and storage types
// are supported.
var goldenModels = []string{
	"llama-f32", "llama-bf16", "llama-q8_0", "llama-q4_0", "llama-q4_k", "llama-q6_k", "llama-mix-q4_k_m",
	"llama-q4_1", "llama-q5_0", "llama-q5_k", "llama-q2_k", "llama-q3_k", "llama-iq4_nl",
	"llama-tq1_0", "llama-tq2_0", "llama-gqa-untied", "llama3-rope-tied",
	"stories260K-f32", "stories260K-q8_0", "stories260K-q4_0",
	"qwen2", "qwen3", "smollm3", "gemma2", "bitnet-f16-scales", "bitnet-i2s", "bitnet-tq2_0", "bitnet-b1.58-f16", "bitnet-b1.58-i2s",
	"mixtral-8x2", "mixtral-4x4-q4_k", "qwen3moe-8x2",
}

// goldenGroupModels have types with a scale each 64 or 128 weights.
var goldenGroupModels = []string{"qwen3-q1_0", "qwen3-q2_0", "qwen3-q2_0-code3", "qwen3-pq2_0", "qwen3-ptq1_0", "qwen35"}

// references are the reference models at hand: those kept beside the tests,
// and the larger collections when LUTRA_GOLDEN and LUTRA_GOLDEN_GROUPS name them.
func references(t *testing.T) []reference {
	t.Helper()
	dirs, err := filepath.Glob("testdata/golden/*/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []reference
	for _, path := range dirs {
		all = append(all, reference{dir: filepath.Dir(path)})
	}
	if root := os.Getenv("LUTRA_GOLDEN_GROUPS"); root == "" {
		sweep.Part(t, "LUTRA_GOLDEN_GROUPS names no reference models")
	} else {
		for _, name := range goldenGroupModels {
			all = append(all, reference{dir: filepath.Join(root, "models", name)})
		}
	}
	if root := os.Getenv("LUTRA_GOLDEN"); root == "" {
		sweep.Part(t, "LUTRA_GOLDEN names no reference models")
	} else {
		for _, name := range goldenModels {
			all = append(all, reference{dir: filepath.Join(root, "models", name)})
		}
		for _, context := range []int{256, 512} { // short and long factors
			all = append(all, reference{filepath.Join(root, "models", "phi3-longrope"), context})
		}
	}
	return all
}

func TestLogitsAgreeWithAnIndependentForwardPass(t *testing.T) {
	for _, ref := range references(t) {
		t.Run(ref.String(), func(t *testing.T) {
			g, want := readGolden(t, ref)
			m := ref.open(t, LoadOptions{})
			kinds := []kv.Type{kv.F32, kv.F16, kv.Int8}
			if m.Config().Experts == 0 { // 4 bits of a random model's keys choose other experts for most tokens
				kinds = kvTypes(m, append(kinds, kv.Int4, int8AndInt4)...)
			}
			for _, kind := range kinds {
				got := newRunner(t, m, kind).feed(len(g.Tokens), g.Tokens...)
				if m.Config().Experts > 0 && kind == kv.Int8 {
					got = withoutOtherExperts(t, got, want, g.Vocab)
				}
				e := nmse(got, want)
				t.Logf("KV %v: NMSE %.3g = %.2f × llama.cpp's with KV f32", kind, e, e/g.LlamaCppNMSE)
				bar := g.Tolerance.Engine + kvNoise[kind]
				if strings.HasPrefix(m.Config().Arch, "bitnet") {
					bar = max(bar, bitnetNoise)
				}
				if !(e <= bar) {
					t.Errorf("KV %v: NMSE %.3g, want at most %.3g", kind, e, bar)
				}
			}
		})
	}
}

// Matrices that are ternary and packed as they are stored keep to the precision of their storage type. That is float32
// activations with F16, and a scale each 32 of them with the others.
func TestTernaryModelsPackedAsStoredAreAsExactAsOthers(t *testing.T) {
	for _, ref := range references(t) {
		g, want := readGolden(t, ref)
		packed := ref.open(t, LoadOptions{})
		if !strings.Contains(packed.Config().Packings, "I2") {
			continue
		}
		t.Run(ref.String(), func(t *testing.T) {
			m := ref.open(t, LoadOptions{Packing: weights.PackingStored})
			e := nmse(newRunner(t, m, kv.F32).feed(len(g.Tokens), g.Tokens...), want)
			as := nmse(newRunner(t, packed, kv.F32).feed(len(g.Tokens), g.Tokens...), want)
			t.Logf("as %s NMSE %.3g = %.2f × llama.cpp's; as %s %.3g", m.Config().Packings, e, e/g.LlamaCppNMSE, packed.Config().Packings, as)
			if !(e <= g.LlamaCppNMSE) {
				t.Errorf("NMSE %.3g, want llama.cpp's %.3g at most", e, g.LlamaCppNMSE)
			}
		})
	}
}

// int8AndInt4 is of keys in 8 bits and values in 4.
var int8AndInt4 = kv.TypeOf(kv.Int8, kv.Int4)

// kvTypes gives the formats that hold the heads of m.
func kvTypes(m Model, kinds ...kv.Type) []kv.Type {
	return slices.DeleteFunc(kinds, func(k kv.Type) bool { return k.Check(m.Config().KV()) != nil })
}

// kvNoise is the error that rounding keys and values may cause by itself: the
// reference engines kept theirs in float32.
var kvNoise = map[kv.Type]float64{kv.F16: 1e-6, kv.Int8: 1.2e-3, kv.Int4: 0.25, int8AndInt4: 0.1}

// withoutOtherExperts is got with want in place of rows that are far off, of which there may be few. If two experts are nearly
// equal, rounded keys and values may choose the other one.
func withoutOtherExperts(t *testing.T, got, want []float32, width int) []float32 {
	t.Helper()
	got, others, rows := slices.Clone(got), 0, len(want)/width
	for i := range rows {
		if row := rowOf(got, i, width); nmse(row, rowOf(want, i, width)) > 0.02 {
			copy(row, rowOf(want, i, width))
			others++
		}
	}
	if others > rows/10 {
		t.Errorf("%d of %d rows are far off", others, rows)
	}
	return got
}

// bitnetNoise is the error of activations rounded to int8, one scale a row, as
// BitNet's definition has it ("The Era of 1-bit LLMs", §2) and the ternary
// kernels compute. The reference did not round.
const bitnetNoise = 2e-3

func TestTheExactPathAgreesToTheLastDigits(t *testing.T) {
	for _, ref := range references(t) {
		t.Run(ref.String(), func(t *testing.T) {
			g, want := readGolden(t, ref)
			m := ref.open(t, LoadOptions{Exact: true})
			e := nmse(newRunner(t, m, kv.F32).feed(len(g.Tokens), g.Tokens...), want)
			t.Logf("NMSE %.3g", e)
			if !(e <= g.Tolerance.Strict) {
				t.Errorf("NMSE %.3g, want at most %.3g", e, g.Tolerance.Strict)
			}
		})
	}
}

// Two engines may part where two tokens are nearly equal. Each step is
// therefore asked for on the reference's own text, and may differ only where
// the reference's gap is within three times the rms error of our logits.
func TestGreedyDecodingFollowsTheReference(t *testing.T) {
	sweep.NoEmulator(t)
	for _, ref := range references(t) {
		t.Run(ref.String(), func(t *testing.T) {
			g, exact := readGolden(t, ref)
			m := ref.open(t, LoadOptions{})
			rms := rmsError(newRunner(t, m, kv.F16).feed(len(g.Tokens), g.Tokens...), exact)
			follow(t, m, g.Tokens, g.GreedyExact, g.GapExact, 3*rms)
			if g.Story != nil {
				follow(t, m, g.Story.Prompt, g.Story.Greedy, g.Story.Gaps, 3*rms)
			}
		})
	}
}

// follow decodes along the tokens want and compares the largest logit of each step.
func follow(t *testing.T, m Model, prompt, want []int32, gaps []float64, tie float64) {
	t.Helper()
	r := newRunner(t, m, kv.F16)
	row := r.feed(1, prompt...)
	for i, token := range want {
		if got := int32(vector.Argmax(row)); got != token {
			if gaps[i] >= tie {
				t.Errorf("greedy token %d is %d, want %d (gap %.4f, near ties end at %.4f)", i, got, token, gaps[i], tie)
			} else {
				t.Logf("near tie at greedy token %d: %d instead of %d (gap %.4f < %.4f)", i, got, token, gaps[i], tie)
			}
		}
		if i+1 < len(want) {
			row = r.feed(1, token)
		}
	}
}

// rmsError is sqrt(mean((got-want)²)).
func rmsError(got, want []float32) float64 {
	sum := 0.0
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(want)))
}

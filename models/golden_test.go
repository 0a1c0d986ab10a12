package models

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models/gguf"
)

// golden is the description beside a reference model: what it was fed, and
// what an independent float64 forward pass and llama.cpp made of it.
type golden struct {
	Tokens       []int32   `json:"tokens"`
	Vocab        int       `json:"n_vocab"`
	GreedyExact  []int32   `json:"greedy_exact"`
	GapExact     []float64 `json:"greedy_gap_exact"`
	CommonPrefix int       `json:"greedy_common_prefix"`
	LlamaCppNMSE float64   `json:"nmse_llamacpp_vs_exact"`
	Tolerance    struct {
		Engine float64 `json:"nmse_engine_vs_exact_max"`
		Strict float64 `json:"nmse_strict_f32_engine_vs_exact"`
	} `json:"tolerance"`
	Story *struct {
		Prompt []int32 `json:"prompt_tokens"`
		Greedy []int32 `json:"greedy_exact"`
		Text   string  `json:"text_exact"`
	} `json:"story"`
}

// readGolden reads dir/golden.json and its exact logits [len(Tokens)][Vocab].
func readGolden(t *testing.T, dir string) (golden, []float32) {
	t.Helper()
	var g golden
	raw, err := os.ReadFile(filepath.Join(dir, "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	npy, err := os.ReadFile(filepath.Join(dir, "logits_exact.npy"))
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
		t.Fatalf("%s: %d logits for %d tokens of %d", dir, len(logits), len(g.Tokens), g.Vocab)
	}
	return g, logits
}

// runner drives one sequence through a model.
type runner struct {
	t   testing.TB
	m   Model
	kv  *KVCache
	seq *KVSeq
	b   Batch
}

func newRunner(t testing.TB, m Model, kind KVType) *runner {
	t.Helper()
	kv, err := NewKVCache(m.Config(), KVOptions{Type: kind, BlockLen: 16, Blocks: 64})
	if err != nil {
		t.Fatal(err)
	}
	return &runner{t: t, m: m, kv: kv, seq: kv.Open(nil)}
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

// greedy continues after a row of logits, n tokens one by one.
func (r *runner) greedy(row []float32, n int) []int32 {
	r.t.Helper()
	var out []int32
	for {
		next := int32(kernels.Argmax(row))
		if out = append(out, next); len(out) == n {
			return out
		}
		row = r.feed(1, next)
	}
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

// openModel loads the model in the GGUF file at path.
func openModel(t testing.TB, path string, opt LoadOptions) Model {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if opt.Pool == nil {
		opt.Pool = kernels.NewPool(2)
		t.Cleanup(opt.Pool.Close)
	}
	m, err := loadModel(f, opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// goldenModels are the reference models of the llama architecture whose
// storage types the kernels run.
var goldenModels = []string{
	"llama-f32", "llama-bf16", "llama-q8_0", "llama-q4_0", "llama-q4_k", "llama-q6_k", "llama-mix-q4_k_m",
	"llama-tq1_0", "llama-tq2_0", "llama-gqa-untied", "llama3-rope-tied",
	"stories260K-f32", "stories260K-q8_0", "stories260K-q4_0",
}

// goldenDirs are the reference models at hand: those kept beside the tests,
// and the larger collection when LUTRA_GOLDEN names it.
func goldenDirs(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("testdata/golden/*/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	for i := range dirs {
		dirs[i] = filepath.Dir(dirs[i])
	}
	if root := os.Getenv("LUTRA_GOLDEN"); root != "" {
		for _, name := range goldenModels {
			dirs = append(dirs, filepath.Join(root, "models", name))
		}
	}
	return dirs
}

func TestLogitsAgreeWithAnIndependentForwardPass(t *testing.T) {
	for _, dir := range goldenDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			g, want := readGolden(t, dir)
			m := openModel(t, filepath.Join(dir, "model.gguf"), LoadOptions{})
			for _, kind := range []KVType{KVF32, KVF16, KVInt8} {
				got := newRunner(t, m, kind).feed(len(g.Tokens), g.Tokens...)
				t.Logf("KV %v: NMSE %.3g, llama.cpp's own %.3g, bar %.3g", kind, nmse(got, want), g.LlamaCppNMSE, g.Tolerance.Engine)
			}
		})
	}
}

func TestTheExactPathAgreesToTheLastDigits(t *testing.T) {
	for _, dir := range goldenDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			g, want := readGolden(t, dir)
			m := openModel(t, filepath.Join(dir, "model.gguf"), LoadOptions{Exact: true})
			got := newRunner(t, m, KVF32).feed(len(g.Tokens), g.Tokens...)
			if e := nmse(got, want); !(e <= g.Tolerance.Strict) {
				t.Errorf("NMSE %.3g, want at most %.3g", e, g.Tolerance.Strict)
			} else {
				t.Logf("NMSE %.3g", e)
			}
		})
	}
}

func TestGreedyDecodingFollowsTheReference(t *testing.T) {
	for _, dir := range goldenDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			g, _ := readGolden(t, dir)
			m := openModel(t, filepath.Join(dir, "model.gguf"), LoadOptions{})
			r := newRunner(t, m, KVF16)
			got := r.greedy(r.feed(1, g.Tokens...), len(g.GreedyExact))
			if !slices.Equal(got, g.GreedyExact) {
				t.Errorf("greedy tokens %v, want %v (gaps %v)", got, g.GreedyExact, g.GapExact)
			}
			if g.Story != nil {
				r := newRunner(t, m, KVF16)
				got := r.greedy(r.feed(1, g.Story.Prompt...), len(g.Story.Greedy))
				if !slices.Equal(got, g.Story.Greedy) {
					t.Errorf("story %v, want %v", got, g.Story.Greedy)
				}
			}
		})
	}
}

var _ = fmt.Sprint

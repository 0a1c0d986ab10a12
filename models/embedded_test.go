package models

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/kv"
)

// trained has the results of an independent float64 forward pass with int8 activations for the embedded models
// (tools/train/golden.py).
type trained struct {
	Prompt    []int32          `json:"prompt"`
	S, L, MoE trainedGenerator // as named in the training recipe
	PRM       []float64        `json:"prm_on_S_greedy"`
}

type trainedGenerator struct {
	Top    [][2]float64 `json:"top"` // token, logit after the prompt, largest first
	Greedy []int32      `json:"greedy"`
}

func readTrained(t *testing.T) []trained {
	t.Helper()
	raw, err := os.ReadFile("embedded/testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct{ Cases []trained }
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	return g.Cases
}

func openEmbedded(t testing.TB, name string) *Bundle {
	t.Helper()
	f, err := embedded.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	pool := pool.New(2)
	t.Cleanup(pool.Close)
	b, err := LoadFile(f, LoadOptions{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// A value just between two int8 codes may round either way in two engines;
// float64 reference and float16 KV cache are this far apart at most. A score
// near one half moves most.
const (
	logitNoise = 0.3
	scoreNoise = 0.05
)

func TestEmbeddedGeneratorsDecodeAsTrained(t *testing.T) {
	sweep.NoEmulator(t)
	for name, pick := range map[string]func(*trained) *trainedGenerator{
		"lutra-tiny-s":   func(c *trained) *trainedGenerator { return &c.S },
		"lutra-tiny-l":   func(c *trained) *trainedGenerator { return &c.L },
		"lutra-tiny-moe": func(c *trained) *trainedGenerator { return &c.MoE },
	} {
		t.Run(name, func(t *testing.T) {
			b := openEmbedded(t, name)
			worst := 0.0
			for _, c := range readTrained(t) {
				want := pick(&c)
				if len(want.Top) == 0 || len(want.Greedy) == 0 {
					t.Fatal("there are no reference values")
				}
				r := newRunner(t, b.Model, kv.F16)
				row := slices.Clone(r.feed(1, c.Prompt...))
				for _, top := range want.Top {
					worst = max(worst, math.Abs(float64(row[int(top[0])])-top[1]))
				}
				for i, token := range want.Greedy {
					if got := int32(vector.Argmax(row)); row[got]-row[token] > logitNoise {
						t.Errorf("token %d: %d (%.3f), want %d (%.3f)", i, got, row[got], token, row[token])
					}
					row = r.feed(1, token)
				}
			}
			t.Logf("largest difference of a top logit: %.3f", worst)
			if worst > logitNoise {
				t.Errorf("a top logit differs by %.3f, want at most %v", worst, logitNoise)
			}
		})
	}
}

func TestTheEmbeddedRewardModelScoresAsTrained(t *testing.T) {
	sweep.NoEmulator(t)
	b := openEmbedded(t, "lutra-tiny-prm")
	if n := b.Model.Config().Outputs; n != 1 {
		t.Fatalf("%d outputs, want 1", n)
	}
	worst := 0.0
	for _, c := range readTrained(t) {
		tokens := slices.Concat(c.Prompt, c.S.Greedy)
		scores := newRunner(t, b.Model, kv.F16).feed(len(tokens), tokens...)
		var got []float64
		for i := len(c.Prompt); i < len(tokens); i++ {
			if bytes.Contains(b.Tokenizer.Piece(tokens[i]), []byte("\n")) || b.Tokenizer.EOG(tokens[i]) {
				got = append(got, 1/(1+math.Exp(-float64(scores[i]))))
			}
		}
		if len(got) != len(c.PRM) {
			t.Fatalf("%d scores, want %d", len(got), len(c.PRM))
		}
		for i, want := range c.PRM {
			worst = max(worst, math.Abs(got[i]-want))
		}
	}
	t.Logf("largest difference of a probability: %.4f", worst)
	if worst > scoreNoise {
		t.Errorf("a probability differs by %.4f, want at most %v", worst, scoreNoise)
	}
}

func TestAFileMayBoundTheTurnsThatItsModelReads(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	for value, want := range map[any]int{nil: 0, uint32(6): 6, uint32(0): 0, int32(-3): 0, uint64(1 << 63): math.MaxInt32, "six": 0} {
		f, err := embedded.Open(embedded.Default)
		if err != nil {
			t.Fatal(err)
		}
		f.Metadata["lutra.chat.max_turns"] = value
		b, err := LoadFile(f, LoadOptions{Pool: pool})
		if err != nil {
			t.Fatal(err)
		}
		if b.MaxTurns != want {
			t.Errorf("lutra.chat.max_turns = %v gives %d turns, want %d", value, b.MaxTurns, want)
		}
	}
}

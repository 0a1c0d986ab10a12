package reward

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// scored is a tiny random reward model and what PyTorch makes of it in float64
// (testdata/README.md).
type scored struct {
	Model string
	Cases []struct {
		Problem, Response string
		Scores            []float64 // of the steps
	}
}

func scoredModels(t *testing.T) []scored {
	t.Helper()
	raw, err := os.ReadFile("testdata/scores.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []scored
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// openReward runs a model of testdata, read as its file says.
func openReward(t *testing.T, file string) *Scorer {
	t.Helper()
	pool := pool.New(2)
	t.Cleanup(pool.Close)
	b, err := models.Load(filepath.Join("testdata", file), models.LoadOptions{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(Formats(), func(f Format) bool { return f.Name == b.Verifier.Format })
	if i < 0 {
		t.Fatalf("%s names the format %q", file, b.Verifier.Format)
	}
	v, err := New(ttstest.ServeBundle(t, b, kv.F32, pool), Formats()[i])
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// scoreNoise bounds the difference of float32 from float64: the reference, too, has norms and softmax in float32.
const scoreNoise = 1e-5

func TestRewardModelsScoreAsTheirAuthorsCode(t *testing.T) {
	for _, g := range scoredModels(t) {
		t.Run(g.Model, func(t *testing.T) {
			v, worst := openReward(t, g.Model), 0.0
			compare := func(how string, got []float32, want []float64) {
				if len(got) != len(want) {
					t.Errorf("%s: scores %v, want %v", how, got, want)
					return
				}
				for i := range want {
					d := math.Abs(float64(got[i]) - want[i])
					if worst = max(worst, d); !(d <= scoreNoise) {
						t.Errorf("%s: step %d scores %.6f, want %.6f", how, i, got[i], want[i])
					}
				}
			}
			for _, c := range g.Cases {
				if v.format.whole { // without bounds at the authors'
					r := c.Scores[0]
					c.Scores[0] = (1 + r/(1+math.Abs(r))) / 2
				}
				prompt := tts.Prompt{Messages: []template.Message{{Role: "user", Content: c.Problem}}}
				ratings, _, err := v.Rate(t.Context(), &prompt, scaling.AggregateLast, c.Response)
				if err != nil {
					t.Fatal(err)
				}
				compare("rated", ratings[0].StepScores, c.Scores)

				// A search gives it the tokens of a generator, step by step.
				words := v.Model()
				judge, err := v.Open(t.Context(), words, &tts.Request{Prompt: prompt}, nil)
				if err != nil {
					t.Fatal(err)
				}
				cand := tts.Candidate{}
				for _, step := range ratings[0].Steps {
					cand.IDs = words.Tokenizer.Encode(cand.IDs[:0], c.Response[:step.End], tokenizer.Options{})
					forks, err := judge.Fork(t.Context(), 1)
					if err != nil {
						t.Fatal(err)
					}
					judge.Close()
					judge = forks[0]
					if err := judge.Score(t.Context(), &cand); err != nil {
						t.Fatal(err)
					}
				}
				judge.Close()
				compare("searched", cand.StepScores, c.Scores)
			}
			t.Logf("largest difference %.2g", worst)
		})
	}
}

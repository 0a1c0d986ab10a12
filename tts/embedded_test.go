package tts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts/answer"
)

// serve runs an embedded model on a pool until the test ends.
func serve(t *testing.T, name string, pool *kernels.Pool) *Model {
	t.Helper()
	file, err := embedded.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := models.LoadFile(file, models.LoadOptions{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	b.Name = name
	kv, err := models.NewKVCache(b.Model.Config(), models.KVOptions{BlockLen: 16, Blocks: 4096})
	if err != nil {
		t.Fatal(err)
	}
	opt := batcher.DefaultOptions()
	opt.Pool = pool
	e := batcher.New(b.Model, kv, opt)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		drain, stop := context.WithTimeout(context.Background(), 20*time.Second)
		defer stop()
		if err := e.Drain(drain); err != nil {
			t.Errorf("%s: a sequence was left open: %v", name, err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return NewModel(b, e)
}

// tiny is the embedded generator and its reward model, on one pool.
func tiny(t *testing.T, generator string) (*Model, Verifiers) {
	t.Helper()
	pool := kernels.NewPool(0)
	t.Cleanup(pool.Close)
	reward, err := NewReward(serve(t, "lutra-tiny-prm", pool), Formats()[0])
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, generator, pool), Verifiers{Default: "lutra-tiny-prm", ByName: map[string]Scorer{"lutra-tiny-prm": reward}}
}

func problems(t *testing.T, n int) []Problem {
	t.Helper()
	var out []Problem
	for line := range strings.Lines(embedded.TestSet()) {
		var p struct {
			Question string
			Answer   int
		}
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		if out = append(out, Problem{p.Question, strconv.Itoa(p.Answer)}); len(out) == n {
			break
		}
	}
	return out
}

// sampled is the request that measurements start from.
func sampled() Request {
	return Request{Sampling: batcher.Params{Temperature: 0.8, Seed: 1, MaxTokens: 256}}
}

func TestTheEmbeddedVerifierGivesItsTrainingScores(t *testing.T) {
	m, v := tiny(t, "lutra-tiny-s")
	for _, c := range []struct {
		question string
		solution []int32
		want     []float32 // of the training code, which quantises activations too
	}{
		{"What is 12 * 7?", []int32{49, 50, 42, 55, 61, 56, 52, 259, 288, 58, 32, 56, 52, 1023}, []float32{0.9959, 0.9971}},
		{"What is 12 * 7?", []int32{49, 50, 42, 55, 61, 56, 53, 259, 288, 58, 32, 56, 53, 1023}, []float32{0, 0}}, // 12*7=85
	} {
		req := &Request{Prompt: Prompt{Messages: []template.Message{{Role: "user", Content: c.question}}}}
		prompt, err := m.Encode(t.Context(), &req.Prompt)
		if err != nil {
			t.Fatal(err)
		}
		judge, err := v.ByName[v.Default].Open(t.Context(), m, req, prompt)
		if err != nil {
			t.Fatal(err)
		}
		got := Candidate{IDs: c.solution, Finish: FinishStop}
		if err := judge.Score(t.Context(), &got); err != nil {
			t.Fatal(err)
		}
		judge.Close()
		if len(got.StepScores) != len(c.want) {
			t.Fatalf("%d scores, want %d", len(got.StepScores), len(c.want))
		}
		for i, s := range got.StepScores {
			if d := s - c.want[i]; d > 0.03 || d < -0.03 {
				t.Errorf("%s: score %d = %v, want %v", c.question, i, s, c.want[i])
			}
		}
	}
}

func TestBeamSearchSolvesMoreHeldOutProblemsThanOneSample(t *testing.T) {
	m, v := tiny(t, "lutra-tiny-s")
	set := problems(t, 12)
	plan, err := ParsePlan("beam16x4")
	if err != nil {
		t.Fatal(err)
	}
	one, err := Measure(t.Context(), Single{Model: m}, set, sampled(), answer.Rule{}, 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	beam, err := Measure(t.Context(), Search{Model: m, Plan: plan, Verifiers: v}, set, sampled(), answer.Rule{}, 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	if beam.Right <= one.Right {
		t.Errorf("beam search solved %d of %d, one sample %d", beam.Right, len(set), one.Right)
	}
}

// TestScalingTable prints how many held-out problems each method solves. It is
// a measurement, run by hand: LUTRA_MEASURE=100 (problems).
func TestScalingTable(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("LUTRA_MEASURE"))
	if n == 0 {
		t.Skip("a measurement: set LUTRA_MEASURE to a number of problems")
	}
	name := os.Getenv("LUTRA_MEASURE_MODEL")
	if name == "" {
		name = "lutra-tiny-s"
	}
	m, v := tiny(t, name)
	for _, spec := range []string{"bon1;verifier=logprob", "sc8", "sc16", "bon8;select=max", "bon16;select=max", "bon16", "beam4x2", "beam16x4", "beam16x4;select=max", "beam16x4;aggregate=min;select=max", "dvts16x4", "auto"} {
		plan, err := ParsePlan(spec)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		got, err := Measure(t.Context(), Search{Model: m, Plan: plan, Verifiers: v}, problems(t, n), sampled(), answer.Rule{}, 8, nil)
		if err != nil {
			t.Fatal(spec, err)
		}
		fmt.Printf("%-36s %4.1f %% right, %4.1f %% of candidates, %4.1f %% any; %5.0f tokens and %5.0f of the verifier a problem, %.2f s\n", spec,
			100*float64(got.Right)/float64(n), 100*got.Passed, 100*float64(got.Any)/float64(n),
			float64(got.Usage.Completion)/float64(n), float64(got.Usage.Verifier)/float64(n), time.Since(begin).Seconds()/float64(n))
	}
}

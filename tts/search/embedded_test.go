package search_test

import (
	"cmp"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/answer"
	"github.com/lutra-lm/lutra/tts/reward"
	. "github.com/lutra-lm/lutra/tts/search"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// serve runs an embedded model on a pool until the test ends.
func serve(t testing.TB, name string, pool *pool.Pool) *tts.Model {
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
	return ttstest.ServeBundle(t, b, kv.F16, pool)
}

// tiny returns the embedded generator and its reward model, on one pool.
func tiny(t testing.TB, generator string) (*tts.Model, tts.Verifiers) {
	t.Helper()
	pool := pool.New(0)
	t.Cleanup(pool.Close)
	v, err := reward.New(serve(t, "lutra-tiny-prm", pool), reward.Formats()[0])
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, generator, pool), tts.Verifiers{Default: "lutra-tiny-prm", ByName: map[string]tts.Scorer{"lutra-tiny-prm": v}}
}

// problem is a held-out question with its right answer.
type problem struct {
	Question string
	Answer   int
}

func problems(t testing.TB, n int) []problem {
	t.Helper()
	return read(t, embedded.TestSet(), n)
}

// read returns the first n problems of a set.
func read(t testing.TB, set string, n int) []problem {
	t.Helper()
	var out []problem
	for line := range strings.Lines(set) {
		var p problem
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		if out = append(out, p); len(out) == n {
			break
		}
	}
	return out
}

// tally counts a strategy's results on some problems.
type tally struct {
	right  int     // first choices
	any    int     // problems with a right candidate
	passed float64 // mean share of right candidates: pass@1, when they are whole answers
	usage  tts.Usage
}

// solve puts the problems to s, eight at a time.
func solve(t *testing.T, s tts.Strategy, set []problem) (sum tally) {
	t.Helper()
	reader, err := answer.Rule{}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all errgroup.Group
	all.SetLimit(8)
	for i, p := range set {
		all.Go(func() error {
			req := tts.Request{Prompt: tts.Prompt{Messages: []template.Message{{Role: "user", Content: p.Question}}}}
			req.Sampling = sampling.Params{Temperature: 0.8, Seed: uint64(i), MaxTokens: 256}
			var text string
			var used tts.Usage
			cands := []*tts.Candidate{}
			for e, err := range s.Run(t.Context(), &req) {
				if err != nil {
					return err
				}
				d := ttstest.Flatten(e)
				text += d.Text
				used.Add(d.Usage)
				if d.Outcome != nil {
					cands = d.Outcome.Candidates
				}
			}
			right := func(text string) bool {
				got, ok := reader.Read(text)
				return ok && got.Key == reader.Key(strconv.Itoa(p.Answer))
			}
			n := 0
			for _, c := range cands {
				if right(c.Text) {
					n++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if right(text) {
				sum.right++
			}
			if n > 0 {
				sum.any++
				sum.passed += float64(n) / float64(len(cands)) / float64(len(set))
			}
			sum.usage.Add(used)
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestTheEmbeddedVerifierGivesItsTrainingScores(t *testing.T) {
	m, v := tiny(t, "lutra-tiny-s")
	for _, c := range []struct {
		question string
		solution []int32
		want     []float32 // of the training code, which quantises activations too
	}{
		{"What is 12 * 7?", []int32{49, 50, 42, 55, 61, 56, 52, 261, 284, 58, 32, 56, 52, 1023}, []float32{0.9959, 0.9971}},
		{"What is 12 * 7?", []int32{49, 50, 42, 55, 61, 56, 53, 261, 284, 58, 32, 56, 53, 1023}, []float32{0, 0}}, // 12*7=85
	} {
		req := &tts.Request{Prompt: tts.Prompt{Messages: []template.Message{{Role: "user", Content: c.question}}}}
		prompt, err := m.Encode(t.Context(), &req.Prompt)
		if err != nil {
			t.Fatal(err)
		}
		judge, err := v.ByName[v.Default].Open(t.Context(), m, req, prompt)
		if err != nil {
			t.Fatal(err)
		}
		got := tts.Candidate{IDs: c.solution, Finish: tts.FinishStop}
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

// Short questions in wordings of their own are harder for the models than the long
// stories of the test set.
func TestSearchSolvesMoreShortQuestionsThanOneSample(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	m, v := tiny(t, "lutra-tiny-s")
	text, err := os.ReadFile("../../models/embedded/everyday.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	set := read(t, string(text), sweep.Of(t, 60, 200))
	one := solve(t, tts.Single{Model: m}, set)
	for _, written := range []string{"bon16", "beam16x4"} {
		if got := solve(t, Search{Model: m, Plan: plan(t, written), Verifiers: v}, set); got.right <= one.right {
			t.Errorf("%s solved %d of %d, one sample %d", written, got.right, len(set), one.right)
		}
	}
}

// TestScalingTable prints how many held-out problems each method solves. It is
// a measurement, run by hand: LUTRA_MEASURE=100 (problems).
func TestScalingTable(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("LUTRA_MEASURE"))
	if n == 0 {
		t.Skip("a measurement: set LUTRA_MEASURE to a number of problems")
	}
	name := cmp.Or(os.Getenv("LUTRA_MEASURE_MODEL"), "lutra-tiny-s")
	m, v := tiny(t, name)
	for _, written := range []string{"bon1", "sc8", "sc16", "bon8;select=max", "bon16;select=max", "bon16", "beam4x2", "beam16x4", "beam16x4;aggregate=min", "dvts16x4", "auto"} {
		begin := time.Now()
		got := solve(t, Search{Model: m, Plan: plan(t, written), Verifiers: v}, problems(t, n))
		each := func(total int) float64 { return float64(total) / float64(n) }
		t.Logf("%s, %-24s %5.1f %% right, %5.1f %% of candidates, %5.1f %% any; a problem %5.0f tokens, %5.0f of the verifier, %.2f s", name, written,
			100*each(got.right), 100*got.passed, 100*each(got.any), each(got.usage.Completion), each(got.usage.Verifier), time.Since(begin).Seconds()/float64(n))
	}
}

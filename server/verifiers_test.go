package server

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts/reward"
)

const rewardModels = "../tts/reward/testdata/"

// judged serves the small embedded generator and a reward model of
// tts/reward/testdata, read as its file says.
func judged(t *testing.T, file string) *fixture {
	t.Helper()
	pool := pool.New(2)
	t.Cleanup(pool.Close)
	b, err := models.Load(rewardModels+file, models.LoadOptions{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(reward.Formats(), func(f reward.Format) bool { return f.Name == b.Verifier.Format })
	judge := runBundle(t, b)
	scorer, err := reward.New(judge, reward.Formats()[i])
	if err != nil {
		t.Fatal(err)
	}
	s := New(DefaultOptions())
	f := &fixture{Server: s, t: t, model: embeddedModel(t, "lutra-tiny-s", pool), judge: judge.Engine}
	f.engine = f.model.Engine
	if err := s.Publish(registry.Served{Model: f.model}, registry.Served{Model: judge, Reward: scorer}); err != nil {
		t.Fatal(err)
	}
	live := httptest.NewServer(s.Handler())
	f.url = live.URL
	t.Cleanup(func() {
		live.Close()
		f.settle()
	})
	return f
}

func TestEveryKindOfRewardModelJudgesOverHTTP(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	raw, err := os.ReadFile(rewardModels + "scores.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Model string
		Cases []struct {
			Problem, Response string
			Scores            []float64
		}
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for _, g := range all {
		t.Run(g.Model, func(t *testing.T) {
			f := judged(t, g.Model)
			name := strings.TrimSuffix(g.Model, ".gguf")
			for _, c := range g.Cases {
				_, _, answer := f.post("/v1/rewards", rewardBody(problem{Question: c.Problem}, `,"model":"`+name+`"`, c.Response))
				r := strict[wireRewards](t, answer)
				if len(r.Data) != 1 || len(r.Data[0].StepScores) != len(c.Scores) || len(r.Data[0].Steps) != len(c.Scores) {
					t.Fatalf("rewards %s, want %d steps", answer, len(c.Scores))
				}
				for i, want := range c.Scores { // with keys and values in binary16
					if strings.HasPrefix(name, "sequence") {
						want = (1 + want/(1+math.Abs(want))) / 2
					}
					if got := r.Data[0].StepScores[i]; math.Abs(got-want) > 5e-3 {
						t.Errorf("step %d of %q scores %v, want %v", i, c.Response, got, want)
					}
				}
			}
			for _, plan := range []string{"best_of_n;n=4", "beam_search;n=4;width=2;max_steps=3"} {
				status, _, answer := f.post("/v1/chat/completions", question(t, 0, `,"test_time_scaling":"`+plan+`;verifier=`+name+`;include=candidates"`))
				if status != http.StatusOK {
					t.Fatalf("%s: status %d, %s", plan, status, answer)
				}
				c := readSearched(t, answer)
				for _, cand := range c.Search.Candidates {
					if cand.Score == nil || !(*cand.Score > 0 && *cand.Score < 1) {
						t.Errorf("%s: candidate %q has the score %v", plan, cand.Text, cand.Score)
					}
				}
				if len(c.Search.Candidates) == 0 {
					t.Errorf("%s: no candidates in %s", plan, answer)
				}
			}
		})
	}
}

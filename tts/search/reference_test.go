package search

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// published reads what testdata/generate.py has had published implementations choose.
func published[T any](t *testing.T, name string) (cases []T) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) == 0 {
		t.Fatalf("%s: %d cases, %v", name, len(cases), err)
	}
	return cases
}

func TestParticlesAreThoseOfThePublishedImplementation(t *testing.T) {
	type particle struct {
		path  string
		score float64
		ended bool
	}
	for i, c := range published[struct {
		N          int
		Resampling scaling.Resampling
		Steps      []struct {
			Ends     []bool
			Scores   []float64
			Uniforms []float64
			Drawn    []int
		}
		Chosen int
		Path   string
	}](t, "particles") {
		all := make([]particle, c.N)
		for s, step := range c.Steps {
			live := 0
			weights := make([]float64, c.N)
			for j := range all {
				if p := &all[j]; !p.ended {
					if s > 0 {
						p.path += "."
					}
					p.path += fmt.Sprint(live)
					p.score, p.ended = step.Scores[live], step.Ends[live]
					live++
				}
				weights[j] = logit(all[j].score)
			}
			drawn := draw(softmax(weights, 1), len(weights), c.Resampling, func(i int) float64 { return step.Uniforms[i] })
			if !slices.Equal(drawn, step.Drawn) {
				t.Fatalf("run %d, step %d: %v are drawn, want %v", i, s, drawn, step.Drawn)
			}
			next := make([]particle, c.N)
			for j, from := range drawn {
				next[j] = all[from]
			}
			all = next
		}
		var cands []*tts.Candidate
		for j, p := range all {
			cands = append(cands, &tts.Candidate{Index: j, Text: p.path, Score: float32(p.score), Finish: tts.FinishStop})
		}
		if best := rank(cands, scaling.SelectMax).order[0]; best.Index != c.Chosen || best.Text != c.Path {
			t.Errorf("run %d: particle %d (%s) is chosen, want %d (%s)", i, best.Index, best.Text, c.Chosen, c.Path)
		}
	}
}

func TestParticlesOfSeveralIterationsAreThoseOfThePublishedImplementation(t *testing.T) {
	type particle struct { // by solution step
		names  []string
		scores []float64
		ended  bool
	}
	cut := 0
	for i, c := range published[struct {
		Particles int
		Rounds    []struct {
			Steps []struct {
				Ends             []bool
				Scores, Uniforms []float64
				Drawn            []int
			}
			Uniforms   []float64
			References []int
		}
		Paths  []string
		Chosen int
	}](t, "gibbs") {
		var all, references []particle
		name := 0
		shares := func() []float64 {
			var weights []float64
			for _, p := range all {
				weights = append(weights, logit(p.scores[len(p.scores)-1]))
			}
			return softmax(weights, 1)
		}
		for at, round := range c.Rounds {
			free := make([]particle, c.Particles-len(references))
			for s, step := range round.Steps {
				live := 0
				for j := range free {
					if p := &free[j]; !p.ended {
						p.names, p.scores = append(slices.Clip(p.names), fmt.Sprint(name)), append(slices.Clip(p.scores), step.Scores[live])
						p.ended = step.Ends[live]
						live++
						name++
					}
				}
				all = slices.Concat(free, references)
				drawn := draw(shares(), len(free), scaling.Multinomial, func(i int) float64 { return step.Uniforms[i] })
				if !slices.Equal(drawn, step.Drawn) {
					t.Fatalf("run %d, round %d, step %d: %v are drawn, want %v", i, at, s, drawn, step.Drawn)
				}
				for j, from := range drawn {
					if free[j] = all[from]; len(free[j].names) > s+1 {
						free[j] = particle{free[j].names[:s+1], free[j].scores[:s+1], false}
						cut++
					}
				}
			}
			all = slices.Concat(free, references)
			kept := draw(shares(), len(round.References), scaling.Multinomial, func(i int) float64 { return round.Uniforms[i] })
			if !slices.Equal(kept, round.References) {
				t.Fatalf("run %d: references of round %d are %v, want %v", i, at, kept, round.References)
			}
			references = nil
			for _, k := range kept {
				references = append(references, all[k])
			}
		}
		var cands []*tts.Candidate
		for j, p := range all {
			if got := strings.Join(p.names, "."); got != c.Paths[j] {
				t.Errorf("run %d: particle %d is %s, want %s", i, j, got, c.Paths[j])
			}
			cands = append(cands, &tts.Candidate{Index: j, Score: float32(p.scores[len(p.scores)-1]), Finish: tts.FinishStop})
		}
		if best := rank(cands, scaling.SelectMax).order[0]; best.Index != c.Chosen {
			t.Errorf("run %d: particle %d is chosen, want %d", i, best.Index, c.Chosen)
		}
	}
	if cut == 0 {
		t.Error("no run draws a reference before its end")
	}
}

func TestConfidenceEndsAndChoosesAsThePublishedImplementation(t *testing.T) {
	differ := 0
	for i, c := range published[struct {
		Window, Warmup int
		Eta            float64
		TopK           int `json:"top_k"`
		Samples        []struct {
			Answer   string
			Logprobs [][]float32
			Tokens   int
		}
		Threshold float64
		Lowest    []float64
		Voters    []int
		Votes     map[scaling.Measure]string
	}](t, "deepconf") {
		set := scaling.DeepConf{Window: c.Window, TopK: c.TopK, Eta: c.Eta}
		d := &deepConf{set: &set}
		var cands []*tts.Candidate
		write := func(n int) {
			for j, s := range c.Samples[:n] {
				if j < len(cands) {
					continue
				}
				one := &tts.Candidate{Index: j}
				for _, logprobs := range s.Logprobs {
					var tok sampling.Token
					for _, l := range logprobs {
						tok.Top = append(tok.Top, sampling.TokenLogprob{Logprob: l})
					}
					if d.token(one, &tok); one.Filtered {
						break
					}
				}
				if !one.Filtered {
					one.Finish, one.Key = tts.FinishStop, s.Answer
				}
				if n := len(one.Confidences.Tokens); j >= c.Warmup && n != s.Tokens {
					t.Errorf("run %d: answer %d ends with token %d, want %d", i, j, n, s.Tokens)
				}
				cands = append(cands, one)
			}
		}
		write(c.Warmup)
		var lowest []float64
		for _, one := range cands {
			lowest = append(lowest, lowestGroup(one.Confidences.Tokens, c.Window))
		}
		const rounded = 2e-3 // they round twice to thousandths
		if d.least = percentile(lowest, 100-c.Eta); math.Abs(d.least-c.Threshold) > rounded {
			t.Errorf("run %d: the threshold is %v, want %v", i, d.least, c.Threshold)
		}
		write(len(c.Samples))
		for how, want := range c.Votes {
			set.Weight = how
			var voters []int
			for j, one := range cands {
				d.weigh(one)
				if got := lowestGroup(one.Confidences.Tokens, c.Window); math.Abs(got-c.Lowest[j]) > rounded {
					t.Errorf("run %d: the least confidence of answer %d is %v, want %v", i, j, got, c.Lowest[j])
				}
				if !one.Filtered {
					voters = append(voters, j)
				}
			}
			rk := rank(cands, scaling.SelectWeightedVote)
			if got := rk.order[0].Key; got != want || !slices.Equal(voters, c.Voters) {
				t.Errorf("run %d, %s: %v vote for %s, want %v for %s", i, how, voters, got, c.Voters, want)
			}
			if rank(cands, scaling.SelectVote).order[0].Key != want {
				differ++
			}
		}
	}
	if differ == 0 {
		t.Error("a plain vote would choose the same everywhere")
	}
}

func TestVotesAreEnoughWhereThePublishedCriterionSaysSo(t *testing.T) {
	for _, c := range published[struct {
		First, Second int
		Probability   float64
		Stop          bool
	}](t, "adaptive") {
		if got := scaling.Majority(c.First, c.Second); math.Abs(got-c.Probability) > 1e-6 || (got >= 0.95) != c.Stop {
			t.Errorf("after %d and %d votes the first leads with %v, want %v", c.First, c.Second, got, c.Probability)
		}
	}
}

func TestMoreRowsAStepAreBoughtWhileTheyCostLittle(t *testing.T) {
	for _, c := range []struct {
		cost []float64
		want int
	}{{[]float64{1, 1, 1, 1}, 8}, {[]float64{1, 1.1, 1.2, 9}, 4}, {[]float64{50, 100}, 0}} {
		r := &searchRun{searchInput: &searchInput{}}
		r.plan.Select, r.plan.Adaptive = scaling.SelectVote, scaling.Adaptive{Threshold: 0.95, Price: 0.02, StepCost: c.cost}
		for i, key := range []string{"a", "b", "a", "b"} {
			r.tree.done = append(r.tree.done, &tts.Candidate{Index: i, Key: key, Finish: tts.FinishStop})
		}
		if n, reason := (adaptive{}).worth(r, 8); n != c.want || reason != tts.StopPrice {
			t.Errorf("with steps at %v the next round has %d candidates (%s), want %d", c.cost, n, reason, c.want)
		}
	}
}

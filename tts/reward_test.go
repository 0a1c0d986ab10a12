package tts

import (
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
)

const solution = "1.\n2.\n\n3.\nAnswer: 3"

// seen makes a toy reward model that notes every text it gives logits for, and
// scores it by opine.
func seen(t *testing.T, format Format) (*toy.Model, *Model, *Reward, func() []string) {
	t.Helper()
	var texts atomic.Pointer[[]string]
	texts.Store(new([]string))
	tok := words(t)
	good, bad := tok.Encode(nil, "+", tokenizer.Options{})[0], tok.Encode(nil, "-", tokenizer.Options{})[0]
	m := &toy.Model{Logits: func(tokens []int32, row []float32) {
		clear(row)
		all := append(slices.Clone(*texts.Load()), tok.Decode(tokens, true))
		texts.Store(&all)
		x := logit(opine(tokens))
		if len(row) == 1 {
			row[0] = x
		} else {
			row[good], row[bad] = x+3, 3
		}
	}}
	if format.Good == "" {
		m.Outputs = 1
	}
	model := run(t, m)
	v, err := NewReward(model, format)
	if err != nil {
		t.Fatal(err)
	}
	return m, model, v, func() []string { return *texts.Load() }
}

func logit(p float32) float32 {
	p = min(max(p, 0.001), 0.999)
	return float32(math.Log(float64(p) / (1 - float64(p))))
}

func TestEachFormatReadsItsScoresWhereTheyStand(t *testing.T) {
	chat := "<|im_start|>user\n"
	reply := "<|im_end|>\n<|im_start|>assistant\n"
	for name, want := range map[string][]string{
		"lutra":         {asked + "1.\n", asked + "1.\n2.\n", asked + "1.\n2.\n\n3.\n", asked + solution + "<|im_end|>"},
		"math-shepherd": {asked + " 1. ки", asked + " 1. ки\n2. ки", asked + " 1. ки\n2. ки\n3. ки", asked + " 1. ки\n2. ки\n3. ки\nAnswer: 3 ки"},
		"rlhflow": {
			chat + asked + " 1." + reply,
			chat + asked + " 1." + reply + "+<|im_end|>\n" + chat + "2." + reply,
			chat + asked + " 1." + reply + "+<|im_end|>\n" + chat + "2." + reply + "+<|im_end|>\n" + chat + "3." + reply,
			chat + asked + " 1." + reply + "+<|im_end|>\n" + chat + "2." + reply + "+<|im_end|>\n" + chat + "3." + reply + "+<|im_end|>\n" + chat + "Answer: 3" + reply,
		},
	} {
		i := slices.IndexFunc(Formats(), func(f Format) bool { return f.Name == name })
		m, model, v, texts := seen(t, Formats()[i])
		req := request(1, 1)
		prompt := model.Tokenizer.Encode(nil, asked, tokenizer.Options{})
		end, _ := model.Tokenizer.EOS()
		whole := append(model.Tokenizer.Encode(nil, solution, tokenizer.Options{}), end)

		judge, err := v.Open(t.Context(), model, req, prompt)
		if err != nil {
			t.Fatal(err)
		}
		c := Candidate{IDs: whole, Finish: FinishStop}
		if err := judge.Score(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
		if got := texts(); !slices.Equal(got, want) {
			t.Errorf("%s read its scores after %q, want %q", name, got, want)
		}
		for i, s := range c.StepScores {
			special := model.Tokenizer.Encode(nil, want[i], tokenizer.Options{ParseSpecial: true})
			if p := opine(special); math.Abs(float64(s)-float64(min(max(p, 0.001), 0.999))) > 1e-5 {
				t.Errorf("%s: score %d = %v, want %v", name, i, s, p)
			}
		}
		if judge.Spent() < m.Computed() {
			t.Errorf("%s: %d tokens spent, but %d were computed", name, judge.Spent(), m.Computed())
		}
		judge.Close()

		// The same, step by step through forks.
		at, err := v.Open(t.Context(), model, req, prompt)
		if err != nil {
			t.Fatal(err)
		}
		piecewise := Candidate{}
		for i, id := range whole {
			piecewise.IDs = append(piecewise.IDs, id)
			if i == len(whole)-1 {
				piecewise.Finish = FinishStop
			} else if !strings.Contains(string(model.Tokenizer.Piece(id)), "\n") {
				continue
			}
			forks, err := at.Fork(t.Context(), 2)
			if err != nil {
				t.Fatal(err)
			}
			at.Close()
			forks[0].Close()
			at = forks[1]
			if err := at.Score(t.Context(), &piecewise); err != nil {
				t.Fatal(err)
			}
		}
		at.Close()
		// A blank line on its own is read as the end of what came before.
		if scores := piecewise.StepScores; len(scores) < len(want) || scores[0] != c.StepScores[0] || scores[len(scores)-1] != c.StepScores[len(want)-1] {
			t.Errorf("%s: step by step %v, at once %v", name, scores, c.StepScores)
		}
	}
}

func TestVerifiersThatCannotReadAreRefused(t *testing.T) {
	generator := run(t, &toy.Model{})
	if _, err := NewReward(generator, Formats()[0]); err == nil {
		t.Error("a generator was taken for a model of one output")
	}
	single := run(t, &toy.Model{Outputs: 1})
	if _, err := NewReward(single, Formats()[1]); err == nil {
		t.Error("a model of one output was taken for one of tokens")
	}
	v, err := NewReward(single, Formats()[0])
	if err != nil {
		t.Fatal(err)
	}
	other := *generator
	other.Vocab++
	if _, err := v.Open(t.Context(), &other, request(1, 1), []int32{1}); err == nil {
		t.Error("a verifier was opened on tokens of another vocabulary")
	}
}

func TestSolutionsLongerThanTheVerifierReadsKeepTheirScores(t *testing.T) {
	opt := batcher.DefaultOptions()
	opt.Context = 14
	v, err := NewReward(runOn(t, &toy.Model{Outputs: 1}, 64, opt), Formats()[0])
	if err != nil {
		t.Fatal(err)
	}
	s := Search{Model: run(t, thinks(t)), Plan: plan(t, "beam8x2"), Verifiers: Verifiers{Default: "short", ByName: map[string]Scorer{"short": v}}}
	for _, c := range carryOut(t, s, request(1, 1)).Candidates {
		if len(c.StepScores) == 0 || c.Score == 0 {
			t.Errorf("candidate %q has the scores %v", c.Text, c.StepScores)
		}
	}
}

func TestSearchesComputeNothingTwice(t *testing.T) {
	model, reward := thinks(t), &toy.Model{}
	m := runOn(t, model, 1024, batcher.DefaultOptions())
	s, _ := judged(t, m, "beam16x4", reward, 1024)
	got := carryOut(t, s, request(1, 1))
	forks := 16 * got.Steps // each computes its parent's last token for itself
	if n := got.usage.Prompt + got.usage.Completion + forks; model.Computed() > n {
		t.Errorf("the generator computed %d tokens, want at most %d", model.Computed(), n)
	}
	if n := got.usage.Verifier + forks; reward.Computed() > n {
		t.Errorf("the verifier computed %d tokens, want at most %d", reward.Computed(), n)
	}
}

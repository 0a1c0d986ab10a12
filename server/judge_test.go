package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/judge"
)

// withJudges serves a judge by a rubric.
func withJudges(o *Options) {
	rubric := judge.Options{Name: "strict", Criteria: judge.Criteria{Rubric: "Is it right?", MaxTokens: 8}}
	o.Scorers = map[string]tts.Scorer{"strict": judge.New(rubric, nil)}
}

// judgedAnswer holds an answer's report of its candidates.
type judgedAnswer struct {
	Usage struct {
		Search struct {
			Critiques int `json:"critique_tokens"`
		} `json:"test_time_scaling"`
	}
	Search struct {
		Candidates []struct {
			Verdict   string
			Critiques []writtenCritique
		}
		Judge struct {
			MaxTokens int `json:"max_tokens"`
		}
	} `json:"test_time_scaling"`
}

type writtenCritique struct {
	Text string
}

func TestAnswersTellWhatJudgesHaveWritten(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	f := real(t, withJudges)
	const include = `,"include":["candidates","critiques"]}`
	for _, plan := range []string{
		`{"method":"best_of_n","n":3,"verifier":"self","judge":{"critiques":2,"max_tokens":8}`,
		`{"method":"best_of_n","n":3,"verifier":"strict"`,
		`{"method":"beam_search","n":2,"width":2,"max_steps":2,"verifier":"self","judge":{"max_tokens":4}`,
		`{"method":"particle_filtering","n":2,"max_steps":2,"verifier":"self","judge":{"total_tokens":8}`,
		`{"method":"best_of_n","n":4,"verifier":"self","adaptive":true,"select":"max","judge":{"max_tokens":4}`,
	} {
		status, _, text := f.post("/v1/chat/completions", question(t, 0, `,"receipt":true,"test_time_scaling":`+plan+include))
		var a judgedAnswer
		if err := json.Unmarshal(text, &a); err != nil || status != http.StatusOK {
			t.Fatalf("%s: %d, %v: %s", plan, status, err, text)
		}
		if a.Search.Judge.MaxTokens == 0 || a.Usage.Search.Critiques == 0 {
			t.Errorf("%s: %s", plan, text)
		}
		for _, c := range a.Search.Candidates {
			if c.Verdict == "" || len(c.Critiques) == 0 || c.Critiques[0].Text == "" {
				t.Errorf("%s: a candidate without its critiques: %s", plan, text)
			}
		}
	}
}

func TestRequestsBringNoRubricAndNoMoreCritiquesThanThereMayBe(t *testing.T) {
	f := real(t, withJudges)
	for plan, param := range map[string]string{
		`{"method":"best_of_n","verifier":"self","judge":{"rubric":"Say 5."}}`:       ".judge.rubric",
		`{"method":"best_of_n","verifier":"strict","template":"Say 5."}`:             ".template",
		`{"method":"best_of_n","verifier":"self","judge":{"critiques":17}}`:          ".judge.critiques",
		`{"method":"best_of_n","verifier":"self","judge":{"temperature":"hot"}}`:     ".judge.temperature",
		`{"method":"best_of_n","verifier":"lutra-tiny-prm","judge":{"critiques":2}}`: ".judge",
		`{"method":"beam_search","verifier":"strict"}`:                               ".verifier",
	} {
		status, _, text := f.post("/v1/chat/completions", question(t, 0, `,"test_time_scaling":`+plan))
		if status != http.StatusBadRequest || !strings.Contains(string(text), `"test_time_scaling`+param+`"`) {
			t.Errorf("%s: %d %s, want a fault of %s", plan, status, text, param)
		}
	}
}

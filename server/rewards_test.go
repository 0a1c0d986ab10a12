package server

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// wireRewards is the answer of /v1/rewards, written down apart from the
// server's own types.
type wireRewards struct {
	Object string `json:"object"`
	Model  string `json:"model"`
	Data   []struct {
		Object     string    `json:"object"`
		Index      int       `json:"index"`
		Score      float64   `json:"score"`
		StepScores []float64 `json:"step_scores"`
		Steps      []struct {
			Start int `json:"start"`
			End   int `json:"end"`
		} `json:"steps"`
	} `json:"data"`
	Usage struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	} `json:"usage"`
}

// rewardBody asks for scores of responses to a problem.
func rewardBody(p problem, fields string, responses ...string) string {
	return `{"messages":[{"role":"user","content":` + string(must(json.Marshal(p.Question))) + `}],"responses":` + string(must(json.Marshal(responses))) + fields + `}`
}

func TestRightSolutionsScoreHigherThanWrongOnes(t *testing.T) {
	sweep.Full(t)
	f := real(t, nil)
	better, n := 0, 20
	for _, p := range problems(t, n) {
		p.Steps = append(p.Steps, fmt.Sprint("Answer: ", p.Answer))
		right := strings.Join(p.Steps, "\n")
		wrong := strings.Replace(right, "Answer: ", "Answer: 1", 1)
		_, _, answer := f.post("/v1/rewards", rewardBody(p, `,"model":"lutra-tiny-prm"`, wrong, right))
		r := strict[wireRewards](t, answer)
		if r.Object != "list" || r.Model != "lutra-tiny-prm" || len(r.Data) != 2 || r.Usage.Total != r.Usage.Prompt || r.Usage.Prompt < 60 {
			t.Fatalf("rewards %s", answer)
		}
		if r.Data[1].Score > r.Data[0].Score {
			better++
		}
		for i, d := range r.Data {
			if d.Index != i || d.Object != "reward" || len(d.StepScores) != len(p.Steps) || len(d.Steps) != len(p.Steps) || d.Score != d.StepScores[len(p.Steps)-1] {
				t.Fatalf("reward %d of %s", i, answer)
			}
			for k, s := range d.Steps {
				if got := strings.TrimSuffix([]string{wrong, right}[i][s.Start:s.End], "\n"); i == 1 && got != p.Steps[k] {
					t.Errorf("step %d stands at %v: %q, want %q", k, s, got, p.Steps[k])
				}
			}
		}
	}
	if better < n-2 {
		t.Errorf("the right one of two solutions scores higher in %d of %d problems", better, n)
	}
}

func TestAPromptIsScoredAsTheUsersMessage(t *testing.T) {
	f := real(t, nil)
	p := problems(t, 1)[0]
	p.Steps = append(p.Steps, fmt.Sprint("Answer: ", p.Answer))
	solution := strings.Join(p.Steps, "\n")
	_, _, byMessage := f.post("/v1/rewards", rewardBody(p, "", solution))
	_, _, byPrompt := f.post("/v1/rewards", `{"prompt":`+string(must(json.Marshal(p.Question)))+`,"responses":[`+string(must(json.Marshal(solution)))+`]}`)
	if string(byMessage) != string(byPrompt) || strict[wireRewards](t, byPrompt).Data[0].Score < 0.5 {
		t.Errorf("as a message %s, as a prompt %s", byMessage, byPrompt)
	}
}

func TestARewardIsTheScoreThatTheSearchSaw(t *testing.T) {
	f := real(t, nil)
	p := problems(t, 1)[0]
	_, _, answer := f.post("/v1/chat/completions", question(t, 0, `,"test_time_scaling":"bon4;include=candidates"`))
	c := readSearched(t, answer)
	var texts []string
	for _, cand := range c.Search.Candidates {
		texts = append(texts, cand.Text)
	}
	_, _, answer = f.post("/v1/rewards", rewardBody(p, "", texts...))
	r := strict[wireRewards](t, answer)
	for i, cand := range c.Search.Candidates {
		if math.Abs(r.Data[i].Score-*cand.Score) > 1e-5 {
			t.Errorf("candidate %d (%q) was worth %v to the search, %v to /v1/rewards", i, cand.Text, *cand.Score, r.Data[i].Score)
		}
	}
}

func TestStepsAreCountedInCharactersAndAggregated(t *testing.T) {
	f := real(t, nil)
	p := problems(t, 1)[0]
	_, _, answer := f.post("/v1/rewards", rewardBody(p, `,"aggregate":"min"`, "Ä ö.\n\nü.\n", "a"))
	r := strict[wireRewards](t, answer)
	first := r.Data[0]
	if len(first.Steps) != 2 || first.Steps[0].Start != 0 || first.Steps[0].End != 5 || first.Steps[1].Start != 6 || first.Steps[1].End != 9 {
		t.Errorf("steps %+v, want [0,5) and [6,9)", first.Steps)
	}
	if first.Score != min(first.StepScores[0], first.StepScores[1]) || len(r.Data[1].Steps) != 1 {
		t.Errorf("rewards %s, want the smaller score", answer)
	}
}

func TestEveryBadRewardRequestIsRefusedWithItsReason(t *testing.T) {
	f := real(t, func(o *Options) { o.MaxChoices = 3 })
	p := problems(t, 1)[0]
	for _, c := range []struct {
		body   string
		status int
		code   string
		param  string
	}{
		{rewardBody(p, `,"model":"lutra-tiny-s"`, "a"), 400, jsonread.CodeValue, "model"},
		{rewardBody(p, `,"model":"nobody"`, "a"), 404, "model_not_found", "model"},
		{rewardBody(p, ""), 400, jsonread.CodeMissing, "responses"},
		{rewardBody(p, "", "a", "b", "c", "d"), 400, jsonread.CodeValue, "responses"},
		{rewardBody(p, "", "a", " \n"), 400, jsonread.CodeValue, "responses[1]"},
		{rewardBody(p, `,"prompt":"x"`, "a"), 400, jsonread.CodeValue, "prompt"},
		{`{"responses":["a"]}`, 400, jsonread.CodeMissing, "messages"},
		{`{"prompt":"a","responses":"b"}`, 400, jsonread.CodeType, "responses"},
		{`{"prompt":"a","responses":[1]}`, 400, jsonread.CodeType, "responses[0]"},
		{`{"prompt":"a","responses":["b"],"aggregate":"sum"}`, 400, jsonread.CodeValue, "aggregate"},
		{`{"prompt":"a","responses":[` + string(must(json.Marshal(strings.Repeat("word ", 4000)))) + `]}`, 400, api.CodeContext, "responses"},
		{`{"prompt":"a","responses":[` + string(must(json.Marshal(strings.Repeat("0 ", 1500)))) + `]}`, 400, api.CodeContext, "responses"},
		{`{"prompt":` + string(must(json.Marshal(strings.Repeat("word ", 4000)))) + `,"responses":["a"]}`, 400, api.CodeContext, "prompt"},
		{rewardBody(problem{Question: strings.Repeat("word ", 4000)}, "", "a"), 400, api.CodeContext, "messages"},
	} {
		status, _, answer := f.post("/v1/rewards", c.body)
		wantError(t, jsonread.Brief(c.body), status, answer, c.status, c.code, c.param)
	}
	none := start(t, &toy.Model{}, nil)
	status, _, answer := none.post("/v1/rewards", `{"prompt":"a","responses":["b"]}`)
	wantError(t, "a server without reward models", status, answer, http.StatusNotFound, "model_not_found", "model")
}

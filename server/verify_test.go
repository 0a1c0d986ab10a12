package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/search"
	"github.com/lutra-lm/lutra/tts/verify"
)

// verdicts returns the verdict of each candidate of an answer.
func verdicts(t *testing.T, answer []byte) []string {
	t.Helper()
	var a struct {
		Search struct {
			Candidates []struct{ Verdict string } `json:"candidates"`
		} `json:"test_time_scaling"`
	}
	if err := json.Unmarshal(answer, &a); err != nil || len(a.Search.Candidates) == 0 {
		t.Fatalf("%s: %v", answer, err)
	}
	var list []string
	for _, c := range a.Search.Candidates {
		list = append(list, c.Verdict)
	}
	return list
}

func TestChecksAreVerifiersAndGiveOneAnswerInACrowdToo(t *testing.T) {
	f := real(t, nil)
	for _, plan := range []string{
		`{"method":"best_of_n","n":4,"temperature":1.5,"verify":{"arithmetic":true},"early_stop":false,"include":["candidates"]}`,
		`{"method":"beam_search","n":4,"width":2,"temperature":1.5,"verify":{"arithmetic":true},"include":["candidates"]}`,
		`{"method":"self_consistency","n":4,"verify":{"pattern":"^2"},"include":["candidates"]}`,
		`{"method":"best_of_n","n":2,"verify":{"json_schema":{"type":"object"}},"include":["candidates"]}`,
	} {
		body := question(t, 0, `,"test_time_scaling":`+plan)
		status, _, alone := f.post("/v1/chat/completions", body)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", plan, status, alone)
		}
		for _, v := range verdicts(t, alone) {
			if v == "" {
				t.Errorf("%s: a candidate has no verdict: %s", plan, alone)
			}
		}
		var crowd sync.WaitGroup
		for range 3 {
			crowd.Go(func() {
				_, _, again := f.post("/v1/chat/completions", body)
				a, b := readSearched(t, alone), readSearched(t, again)
				a.Model, b.Model = "", ""
				if x, y := fmt.Sprint(a.Choices[0].Message, *a.Choices[0].Search.Score, a.Usage.Completion), fmt.Sprint(b.Choices[0].Message, *b.Choices[0].Search.Score, b.Usage.Completion); x != y {
					t.Errorf("%s: alone %s, in a crowd %s", plan, x, y)
				}
			})
		}
		crowd.Wait()
	}
}

func TestASearchEndsAtTheFirstAnswerThatPassesAllTests(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	f := start(t, says(t, "7"), nil)
	fields := `,"test_time_scaling":{"method":"best_of_n","n":6,"verify":{"language":"javascript","tests":["1 + 1 === 2"]},"include":["candidates"]}`
	for _, path := range []struct{ path, body string }{
		{"/v1/chat/completions", chatBody(fields)},
		{"/v1/responses", `{"model":"toy","input":"hi"` + fields + `}`},
		{"/v1/messages", `{"model":"toy","max_tokens":20,"messages":[{"role":"user","content":"hi"}]` + fields + `}`},
	} {
		status, header, answer := f.post(path.path, path.body)
		if status != http.StatusOK || header.Get("X-Lutra-Scaling-Applied") != "best_of_n;n=6" {
			t.Errorf("%s: %d %s", path.path, status, answer)
		}
		if path.path == "/v1/chat/completions" {
			if got := verdicts(t, answer); len(got) != 1 || got[0] != "1 of 1 tests passed" || !strings.Contains(string(answer), `"stop_reason":"decided"`) {
				t.Errorf("%s", answer)
			}
		}
	}
}

func TestChecksThatDoNotFitAreRefusedByName(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	for plan, param := range map[string]string{
		`{"method":"beam_search","verify":{"language":"python","tests":["1"]}}`:                               "verify.tests",
		`{"method":"auto","verify":{"pattern":"1"}}`:                                                          "verify.pattern",
		`{"method":"deepconf","verify":{"arithmetic":true}}`:                                                  "verify",
		`{"method":"best_of_n","verifier":"logprob","verify":{"arithmetic":true}}`:                            "verify",
		`{"method":"best_of_n","verify":{"arithmetic":true,"pattern":"1"}}`:                                   "verify.arithmetic",
		`{"method":"best_of_n","verify":{"tests":["1"]}}`:                                                     "verify.language",
		`{"method":"best_of_n","verify":{"language":"python"}}`:                                               "verify.tests",
		`{"method":"best_of_n","verify":{"language":"cobol","tests":["1"]}}`:                                  "verify.language",
		`{"method":"best_of_n","verify":{"language":"python","tests":[7]}}`:                                   "verify.tests[0]",
		`{"method":"best_of_n","verify":{"language":"python","tests":["` + strings.Repeat("x", 9000) + `"]}}`: "verify.tests",
		`{"method":"best_of_n","verify":{"json_schema":"x"}}`:                                                 "verify.json_schema",
		`{"method":"best_of_n","verify":{"json_schema":{"type":3}}}`:                                          "verify.json_schema",
		`{"method":"best_of_n","verify":{"pattern":"("}}`:                                                     "verify.pattern",
		`{"method":"best_of_n","verify":true}`:                                                                "verify",
		`{"method":"best_of_n","verifier":"nobody"}`:                                                          "verifier",
	} {
		status, _, answer := f.post("/v1/chat/completions", chatBody(`,"test_time_scaling":`+plan))
		if status != http.StatusBadRequest || !strings.Contains(string(answer), `"param":"test_time_scaling.`+param+`"`) {
			t.Errorf("%.80s: %d %s, want a fault of %s", plan, status, answer, param)
		}
	}
}

// webhook has a server's requests judged by f.
func webhook(t *testing.T, steps bool, f http.HandlerFunc) func(*Options) {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return func(o *Options) {
		o.Scorers = map[string]tts.Scorer{"judge": search.ByWebhook(verify.NewWebhook(verify.WebhookOptions{Name: "judge", URL: s.URL, Steps: steps}))}
	}
}

// longest scores candidates by their length.
func longest(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Model      string
		Messages   []struct{ Role, Content string }
		Candidates []struct{ Text string }
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || len(q.Messages) != 1 || q.Messages[0].Role != "user" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var scores []float64
	for _, c := range q.Candidates {
		scores = append(scores, float64(min(len(c.Text), 1000))/1000)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"scores": scores})
}

func TestAServiceOfTheOperatorJudgesAnswersAndSteps(t *testing.T) {
	f := real(t, webhook(t, true, longest))
	if _, _, models := f.do(http.MethodGet, "/v1/models", nil); !strings.Contains(string(models), `"judge"`) {
		t.Errorf("the card does not name the verifier: %s", models)
	}
	for _, plan := range []string{`"bon4;verifier=judge;select=max;temperature=1.5"`, `"beam4x2;verifier=judge"`, `"pf4;verifier=judge"`} {
		status, _, answer := f.post("/v1/chat/completions", question(t, 0, `,"test_time_scaling":`+plan))
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", plan, status, answer)
		}
		c := readSearched(t, answer).Choices[0]
		if want := float64(len(c.Message.Content)) / 1000; *c.Search.Score < want-0.01 || *c.Search.Score > want+0.01 {
			t.Errorf("%s: the score is %v, the answer has %d bytes", plan, *c.Search.Score, len(c.Message.Content))
		}
	}
}

func TestAServiceThatFailsIsNamedAndOneOfWholeAnswersGetsNoSteps(t *testing.T) {
	f := start(t, says(t, "7"), webhook(t, false, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"scores":[7]}`) }))
	status, _, answer := f.post("/v1/chat/completions", chatBody(`,"test_time_scaling":"bon2;verifier=judge"`))
	if status != http.StatusServiceUnavailable || !strings.Contains(string(answer), `"code":"verifier_failed"`) || !strings.Contains(string(answer), "'judge'") {
		t.Errorf("%d %s", status, answer)
	}
	status, _, answer = f.post("/v1/chat/completions", chatBody(`,"test_time_scaling":"beam4x2;verifier=judge"`))
	if status != http.StatusBadRequest || !strings.Contains(string(answer), `"param":"test_time_scaling.verifier"`) && !strings.Contains(string(answer), "whole answers") {
		t.Errorf("%d %s", status, answer)
	}
}

func TestWhoLeavesWhileAServiceJudgesLeavesNothingBehind(t *testing.T) {
	asked, release := make(chan struct{}, 16), make(chan struct{})
	f := start(t, says(t, "7"), webhook(t, false, func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	}))
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(chatBody(`,"test_time_scaling":"bon4;verifier=judge"`)))
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	<-asked
	cancel()
	<-left
	f.settle()
}

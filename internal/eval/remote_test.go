package eval

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// fake is a server that answers with the choices, and notes the last request.
func fake(t *testing.T, owner string, applies bool, choices ...string) (url string, last *map[string]any) {
	t.Helper()
	last = new(map[string]any)
	reply := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"data": []any{map[string]any{"id": "m", "owned_by": owner}}})
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		*last = nil
		if err := json.NewDecoder(r.Body).Decode(last); err != nil {
			t.Error(err)
		}
		if applies {
			w.Header().Set(appliedHeader, "yes")
		}
		var list []any
		for i, c := range choices {
			list = append(list, map[string]any{"index": i, "message": map[string]any{"role": "assistant", "content": c}})
		}
		reply(w, map[string]any{"choices": list, "usage": map[string]any{"completion_tokens": 12}})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL + "/v1/", last
}

func mustRemote(t *testing.T, url string) Solve {
	t.Helper()
	solve, err := Remote(t.Context(), url, "", Asking{System: "be brief", Temperature: 0.8, MaxTokens: 99})
	if err != nil {
		t.Fatal(err)
	}
	return solve
}

func TestALutraServerIsToldThePlan(t *testing.T) {
	url, last := fake(t, "lutra", true, "Answer: 7")
	got, err := mustRemote(t, url)(t.Context(), Point{"m", "beam_search", 16, 4}, Question{"q", 5})
	if err != nil || got.Text != "Answer: 7" || got.Tokens != 12 || got.Candidates != nil {
		t.Errorf("solved %+v, %v", got, err)
	}
	sent := *last
	if plan := sent["metadata"].(map[string]any)["test_time_scaling"]; plan != "beam_search;n=16;width=4" || sent["seed"] != 5.0 || sent["max_tokens"] != 99.0 || sent["n"] != nil || len(sent["messages"].([]any)) != 2 {
		t.Errorf("sent %v", sent)
	}
}

func TestAServerIsToldWhetherToThink(t *testing.T) {
	url, last := fake(t, "other", false, "<think>\\boxed{1}</think>Answer: 7")
	solve, err := Remote(t.Context(), url, "", Asking{MaxTokens: 9, Thinking: new(false)})
	if err != nil {
		t.Fatal(err)
	}
	got, err := solve(t.Context(), Point{"m", Single, 1, 0}, Question{"q", 5})
	if err != nil || got.Text != "Answer: 7" {
		t.Errorf("solved %+v, %v", got, err)
	}
	if vars, _ := (*last)["chat_template_kwargs"].(map[string]any); vars["enable_thinking"] != false {
		t.Errorf("sent %v", *last)
	}
}

func TestALutraServerThatIgnoresThePlanIsNotMeasured(t *testing.T) {
	url, _ := fake(t, "lutra", false, "Answer: 7")
	if _, err := mustRemote(t, url)(t.Context(), Point{"m", "best_of_n", 4, 0}, Question{"q", 5}); err == nil || !strings.Contains(err.Error(), "did not apply") {
		t.Errorf("error %v", err)
	}
}

func TestChoicesOfOtherServersAreVotedHere(t *testing.T) {
	url, last := fake(t, "someone", false, "hm", "Answer: 3", "so it is 7", "Answer: 7.0", "well")
	solve := mustRemote(t, url)
	got, err := solve(t.Context(), Point{"m", "self_consistency", 5, 0}, Question{"q", 5})
	if err != nil || got.Text != "so it is 7" || len(got.Candidates) != 5 {
		t.Errorf("solved %+v, %v", got, err)
	}
	if sent := *last; sent["n"] != 5.0 || sent["metadata"] != nil {
		t.Errorf("sent %v", sent)
	}
	if _, err := solve(t.Context(), Point{"m", "best_of_n", 5, 0}, Question{"q", 5}); err == nil || !strings.Contains(err.Error(), "lutra server") {
		t.Errorf("best of n: error %v", err)
	}
	if got, err := solve(t.Context(), Point{"m", Single, 1, 0}, Question{"q", 5}); err != nil || got.Text != "hm" || got.Candidates != nil {
		t.Errorf("single: %+v, %v", got, err)
	}
}

func TestServersThatFailAreReported(t *testing.T) {
	if _, err := Remote(t.Context(), "http://127.0.0.1:0/v1", "", Asking{}); err == nil {
		t.Error("no server: no error")
	}
	url, _ := fake(t, "someone", false)
	if _, err := mustRemote(t, url)(t.Context(), Point{"m", Single, 1, 0}, Question{"q", 5}); err == nil {
		t.Error("no choices: no error")
	}
}

func TestVotesGoToTheMostFrequentAnswer(t *testing.T) {
	for _, c := range []struct {
		candidates []string
		want       int
	}{{[]string{"x"}, 0}, {[]string{"x", "y"}, 0}, {[]string{"x", "is 1"}, 1}, {[]string{"is 1", "is 2"}, 0}, {[]string{"is 1", "is 2", "Answer: 2.0"}, 1}} {
		if got := vote(c.candidates); got != c.candidates[c.want] {
			t.Errorf("vote(%q) = %q", c.candidates, got)
		}
	}
}

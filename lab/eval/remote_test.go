package eval

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/apiclient"
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
		(*last)["plan"] = r.Header.Get("X-Lutra-Scaling")
		if applies {
			w.Header().Set("X-Lutra-Scaling-Applied", "yes")
		}
		if (*last)["stream"] == true {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, searched)
			return
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

// searched is the stream of a lutra server that has searched.
const searched = `data: {"choices":[{"index":0,"delta":{"content":""}}],"test_time_scaling":{"method":"beam_search","step":1}}

data: {"choices":[{"index":0,"delta":{"content":"Answer: "}}]}

data: {"choices":[{"index":0,"delta":{"content":"7"},"finish_reason":"stop","test_time_scaling":{"candidate":3,"score":0.9,"votes":2}}],"test_time_scaling":{"method":"beam_search","n":16,"width":4,"stop_reason":"complete","agreement":0.5,"candidates":[{"candidate":3,"text":"Answer: 7","finish_reason":"stop","score":0.9,"answer":"7","votes":2},{"candidate":1,"text":"Answer: 8","finish_reason":"length","score":0.2,"answer":"8"}]}}

data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":12,"test_time_scaling":{"verifier_tokens":5}}}

data: [DONE]

`

// remoteOf asks a server as a would.
func remoteOf(t *testing.T, url string, a Asking) Solve {
	t.Helper()
	client, err := apiclient.New(url, "")
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return Remote(client, list.Lutra, a)
}

func mustRemote(t *testing.T, url string) Solve {
	t.Helper()
	return remoteOf(t, url, Asking{System: "be brief", Temperature: 0.8, MaxTokens: 99})
}

func TestALutraServerIsToldThePlan(t *testing.T) {
	url, last := fake(t, "lutra", true)
	got, err := mustRemote(t, url)(t.Context(), Point{"m", "beam_search", 16, 4}, Question{"q", 5})
	want := Solution{Text: "Answer: 7", Tokens: 12, Verifier: 5, Candidates: []Candidate{{Text: "Answer: 7", Score: 0.9, Votes: 2, Chosen: true}, {Text: "Answer: 8", Score: 0.2, Cut: true}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("solved %+v, %v, want %+v", got, err, want)
	}
	sent := *last
	if sent["plan"] != "beam_search;n=16;width=4;include=candidates" || sent["seed"] != 5.0 || sent["max_tokens"] != 99.0 || sent["n"] != nil || len(sent["messages"].([]any)) != 2 {
		t.Errorf("sent %v", sent)
	}
}

func TestAServerIsToldTheTemperatureOfASingleSample(t *testing.T) {
	url, last := fake(t, "other", false, "Answer: 7")
	for method, want := range map[string]float64{"single": 0.8, "single;temperature=0.5": 0.5, "single;temperature=0": 1e-6} {
		if _, err := mustRemote(t, url)(t.Context(), Point{"m", method, 1, 0}, Question{"q", 5}); err != nil {
			t.Fatal(err)
		}
		if got, _ := (*last)["temperature"].(float64); math.Abs(got-want) > 1e-7 {
			t.Errorf("%s: sent temperature %v, want %v", method, got, want)
		}
	}
}

func TestAServerIsToldWhetherToThink(t *testing.T) {
	url, last := fake(t, "other", false, "<think>\\boxed{1}</think>Answer: 7")
	got, err := remoteOf(t, url, Asking{MaxTokens: 9, Thinking: new(false)})(t.Context(), Point{"m", Single, 1, 0}, Question{"q", 5})
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
	if sent := *last; sent["n"] != 5.0 || sent["plan"] != "" {
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
	url, _ := fake(t, "someone", false)
	if _, err := mustRemote(t, url)(t.Context(), Point{"m", Single, 1, 0}, Question{"q", 5}); err == nil {
		t.Error("no choices: no error")
	}
}

func TestVotesGoToTheMostFrequentAnswer(t *testing.T) {
	for _, c := range []struct {
		candidates []string
		want       int
	}{{[]string{"x"}, 0}, {[]string{"x", "y"}, 0}, {[]string{"x", "is 1"}, 1}, {[]string{"is 1", "is 2"}, 0}, {[]string{"is 1", "is 2", "Answer: 2.0"}, 1},
		{[]string{"is 2 …", "is 1", "is 2 …"}, 1}, {[]string{"is 1 …", "is 2 …", "is 2 …"}, 1}, {[]string{"x …", "y"}, 1}} {
		var list []Candidate
		for _, text := range c.candidates {
			whole, cut := strings.CutSuffix(text, " …")
			list = append(list, Candidate{Text: whole, Cut: cut})
		}
		if got := vote(list); got != list[c.want].Text || !list[c.want].Chosen {
			t.Errorf("vote(%q) = %q", c.candidates, got)
		}
	}
}

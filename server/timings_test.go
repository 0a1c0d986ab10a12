package server

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/lutra-lm/lutra/server/report"
)

func TestTimingsAreToldWhereTheyAreAskedFor(t *testing.T) {
	f := start(t, says(t, "Hi there."), nil)
	type answer struct {
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
		}
		Timings *report.Timings
	}
	// last returns an answer, or the last chunk of one.
	last := func(path, body string) (a answer) {
		t.Helper()
		status, _, text := f.post(path, body)
		if status != 200 {
			t.Fatalf("%s %s: %d %s", path, body, status, text)
		}
		for line := range bytes.SplitSeq(bytes.TrimSpace(text), []byte("\n")) {
			if line = bytes.TrimPrefix(line, []byte("data: ")); len(line) == 0 || string(line) == "[DONE]" {
				continue
			}
			a = answer{}
			if err := json.Unmarshal(line, &a); err != nil {
				t.Fatal(err)
			}
		}
		return a
	}
	for path, prompt := range map[string]string{
		"/v1/chat/completions": `{"model":"toy","messages":[{"role":"user","content":"foo"}],"max_tokens":3`,
		"/v1/completions":      `{"model":"toy","prompt":"foo bar","max_tokens":3`,
	} {
		for _, stream := range []string{"", `,"stream":true`, `,"n":2`, `,"n":2,"stream":true,"stream_options":{"include_usage":true}`} {
			if a := last(path, prompt+stream+"}"); a.Timings != nil {
				t.Errorf("%s%s has timings that nobody asked for: %+v", path, stream, a.Timings)
			}
			a := last(path, prompt+stream+`,"timings_per_token":true}`)
			at := a.Timings
			if at == nil || at.PredictedN == 0 || at.PromptN+at.Cached == 0 || at.PromptMS <= 0 || at.PromptPerSec <= 0 || at.PromptToken <= 0 || at.PredictedMS < 0 {
				t.Errorf("%s%s has the timings %+v", path, stream, at)
			} else if u := a.Usage; u.Prompt > 0 && (at.PredictedN != u.Completion || at.PromptN+at.Cached != u.Prompt) {
				t.Errorf("%s%s has the timings %+v beside the usage %+v", path, stream, at, u)
			}
		}
		if a := last(path, prompt+`,"timings_per_token":true,"test_time_scaling":{"method":"best_of_n","n":2}}`); a.Timings != nil {
			t.Errorf("a search of %s has timings: %+v", path, a.Timings)
		}
		if status, _, _ := f.post(path, prompt+`,"timings_per_token":1}`); status != 400 {
			t.Errorf("%s takes a number for timings_per_token: %d", path, status)
		}
	}
}

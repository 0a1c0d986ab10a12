package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// oneAnswer is the report of a search in APIs whose answers have one choice.
type oneAnswer struct {
	Method     string
	N          int
	StopReason string `json:"stop_reason"`
	Live       *int   // of progress
	Candidates []struct {
		Text   string
		Answer string
		Finish string `json:"finish_reason"`
	}
	Choice *struct {
		Answer string
		Votes  int
	}
	Usage *struct {
		Chosen    int `json:"chosen_tokens"`
		Discarded int `json:"discarded_tokens"`
	}
}

// reportsOf returns the reports in an answer or a stream, the last of them as it is written.
func reportsOf(t *testing.T, answer []byte) (all []oneAnswer, last string) {
	t.Helper()
	for line := range strings.SplitSeq(string(answer), "\n") {
		var v struct {
			Scaling  json.RawMessage `json:"test_time_scaling"`
			Response struct {
				Scaling json.RawMessage `json:"test_time_scaling"`
			}
		}
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &v) != nil {
			continue
		}
		for _, raw := range []json.RawMessage{v.Scaling, v.Response.Scaling} {
			var r oneAnswer
			if raw == nil {
				continue
			}
			if err := json.Unmarshal(raw, &r); err != nil {
				t.Fatal(err)
			}
			all, last = append(all, r), string(raw)
		}
	}
	return all, last
}

func TestEveryAPISearchesAmongCallsAndReportsIt(t *testing.T) {
	const schema = `{"type":"object","properties":{"city":{"type":"string"}}}`
	f := start(t, says(t, "I look.\n"+toolcall.Hermes.Write("get_weather", `{"city": "Berlin"}`)), nil)
	f.withTemplate(template.ChatML)
	fn := `"name":"get_weather","parameters":` + schema
	for path, body := range map[string]string{
		"/v1/messages":  `{"model":"toy","max_tokens":200,"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"get_weather","input_schema":` + schema + `}],`,
		"/v1/responses": `{"model":"toy","input":"Hi","tools":[{"type":"function",` + fn + `}],`,
		"/api/chat":     `{"model":"toy","messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{` + fn + `}}],`,
	} {
		for _, plan := range []string{"sc3;early_stop=false;include=candidates", "beam3x3;verifier=logprob;include=candidates"} {
			var reports [2]string
			for i, stream := range []bool{false, true} {
				status, h, answer := f.post(path, fmt.Sprintf(`%s"stream":%t,"test_time_scaling":%q}`, body, stream, plan))
				if status != 200 || h.Get("X-Lutra-Scaling-Applied") == "" || !strings.Contains(string(answer), "get_weather") {
					t.Errorf("%s %s: %d %s", path, plan, status, answer)
					continue
				}
				all, last := reportsOf(t, answer)
				if reports[i] = last; len(all) == 0 {
					t.Fatalf("%s %s: nothing is reported: %s", path, plan, answer)
				}
				r := all[len(all)-1]
				if r.N != 3 || r.StopReason == "" || len(r.Candidates) != 3 || r.Choice == nil || r.Choice.Votes != 3 || r.Choice.Answer != `get_weather({"city":"Berlin"})` || r.Usage.Chosen == 0 || r.Usage.Discarded != 2*r.Usage.Chosen {
					t.Errorf("%s %s: %+v", path, plan, r)
				}
				if progress := len(all) > 1 && all[0].Live != nil; progress != (stream && path != "/v1/responses") {
					t.Errorf("%s %s: %d reports, stream: %t", path, plan, len(all), stream)
				}
			}
			if reports[0] != reports[1] {
				t.Errorf("%s %s: streamed %s, whole %s", path, plan, reports[1], reports[0])
			}
		}
	}
}

func TestAStoredResponseKeepsTheReportOfItsSearch(t *testing.T) {
	f := start(t, says(t, "Answer: 12"), nil)
	f.withTemplate(template.ChatML)
	_, _, stream := f.post("/v1/responses", `{"input":"Hi","stream":true,"test_time_scaling":"sc3"}`)
	_, want := reportsOf(t, stream)
	_, id, _ := strings.Cut(string(stream), `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	_, _, again := f.do("GET", "/v1/responses/"+id, nil)
	if _, got := reportsOf(t, again); got != want || want == "" {
		t.Errorf("the response is kept with %s, want %s", got, want)
	}
	if _, _, events := f.do("GET", "/v1/responses/"+id+"?stream=true", nil); string(events) != string(stream) {
		t.Errorf("its events are %s, want %s", events, stream)
	}
}

func TestAPIsOfOneAnswerRefuseSeveral(t *testing.T) {
	f := start(t, says(t, "Hi"), nil)
	for path, body := range map[string]string{
		"/v1/messages":  `{"model":"toy","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"n":2}`,
		"/v1/responses": `{"input":"Hi","n":1}`,
	} {
		if status, _, answer := f.post(path, body); status != 400 || !strings.Contains(string(answer), "Invalid 'n'") || !strings.Contains(string(answer), "test_time_scaling") {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
}

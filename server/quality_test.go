package server

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/receipt"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts/profile"
)

// toys is a profile of two toy models, of which the second is better.
const toys = `{"version":1,"temperature":0.8,"models":[
 {"name":"toy","points":[{"plan":"single","quality":0.5,"ci_low":0.4,"ci_high":0.6,"tokens":9,"ms":1},
  {"plan":"self_consistency;n=4","quality":0.8,"ci_low":0.7,"ci_high":0.9,"tokens":40,"ms":3}]},
 {"name":"other","points":[{"plan":"self_consistency;n=2","quality":0.9,"ci_low":0.8,"ci_high":0.95,"tokens":20,"ms":5}]}]}`

// profiled serves two toy models that are in a profile.
func profiled(t *testing.T, tune func(*Options)) *fixture {
	t.Helper()
	p, err := profile.Read([]byte(toys))
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, says(t, "Answer: 4"), func(o *Options) {
		o.Profiles = []*profile.Profile{p}
		if tune != nil {
			tune(o)
		}
	})
	other := toyModel(t, says(t, "Answer: 5"), "other", nil)
	f.others = append(f.others, other.Engine)
	if err := f.Publish(registry.Served{Model: f.model}, registry.Served{Model: other}); err != nil {
		t.Fatal(err)
	}
	live := httptest.NewServer(f.Handler())
	f.url = live.URL
	t.Cleanup(live.Close)
	return f
}

// reported is an answer's report of its search.
type reported struct {
	Model   string
	Choices []struct{ Message struct{ Content string } }
	Scaling *struct {
		Method string
		N      int
		Chosen *struct {
			Model, Plan string
			Quality     float64
			Expected    float64 `json:"expected_ms"`
			Took        float64 `json:"took_ms"`
		}
		Fill *struct{ Offered, Finished, Dropped, Tokens int }
	} `json:"test_time_scaling"`
	Usage struct {
		Completion int `json:"completion_tokens"`
	}
}

// with returns the body of a chat that has further fields.
func with(fields string) string {
	if fields != "" {
		fields = ", " + fields
	}
	return chatBody(fields)
}

func (f *fixture) ask(fields string) (reported, string) {
	f.t.Helper()
	status, h, answer := f.post("/v1/chat/completions", with(fields))
	if status != 200 {
		f.t.Fatalf("%s: %d %s", fields, status, answer)
	}
	var r reported
	if err := json.Unmarshal(answer, &r); err != nil {
		f.t.Fatal(err)
	}
	return r, h.Get(api.ScalingExpected)
}

func TestARequestMaySayWhatToReachInsteadOfHow(t *testing.T) {
	f := profiled(t, nil)
	for fields, want := range map[string]string{
		`"test_time_scaling":{"quality":0.5}`:                                            "single",
		`"test_time_scaling":{"quality":0.75}`:                                           "self_consistency;n=4",
		`"test_time_scaling":"quality=0.75;deadline_ms=300000"`:                          "self_consistency;n=4",
		`"test_time_scaling":{"deadline_ms":300000}`:                                     "self_consistency;n=4",
		`"metadata":{"test_time_scaling":"quality=0.6"}`:                                 "self_consistency;n=4",
		`"model":"toy+q70"`:                                                              "self_consistency;n=4",
		`"model":"toy+q70","test_time_scaling":{"include":["candidates"],"quality":0.5}`: "single",
	} {
		got, header := f.ask(fields)
		s := got.Scaling
		if s == nil || s.Chosen == nil {
			t.Errorf("%s: nothing is said of a choice: %+v", fields, got)
			continue
		}
		c := s.Chosen
		if c.Plan != want || c.Model != "toy" || c.Quality < 0.5 || c.Expected <= 0 || c.Took <= 0 || !strings.Contains(header, "quality=0.") || !strings.Contains(header, `model="toy"`) {
			t.Errorf("%s: chose %+v, %q, want %s", fields, c, header, want)
		}
	}
	if got, _ := f.ask(`"test_time_scaling":{"method":"self_consistency","n":3,"deadline_ms":300000}`); got.Scaling.Chosen != nil || got.Scaling.N != 3 {
		t.Errorf("a method with a deadline alone was chosen anew: %+v", got.Scaling)
	}
}

func TestProfilesAreListedWithWhatTheyAreExpectedToTake(t *testing.T) {
	f := profiled(t, nil)
	type list struct {
		Object string
		Data   []struct {
			Model  string
			Points []struct {
				Model, Plan string
				Quality     float64
				Low         float64 `json:"ci_low"`
				High        float64 `json:"ci_high"`
				Tokens      float64
				Expected    float64 `json:"expected_ms"`
			}
		}
	}
	_, _, answer := f.do("GET", "/v1/profiles", nil)
	got := strict[list](t, answer)
	if len(got.Data) != 2 || got.Data[0].Model != "toy" || len(got.Data[0].Points) != 2 || len(got.Data[1].Points) != 1 {
		t.Fatalf("%s", answer)
	}
	if p := got.Data[0].Points[1]; p.Plan != "self_consistency;n=4" || p.Quality != 0.8 || p.Low != 0.7 || p.High != 0.9 || p.Tokens != 40 || p.Expected <= 0 {
		t.Errorf("%+v", p)
	}
	f = profiled(t, func(o *Options) { o.APIKeysFile = keyFile(t, "one: k models=toy", 0o600) })
	if got := strict[list](t, f.as("GET", "/v1/profiles", "k", "").Body.Bytes()); len(got.Data) != 1 || got.Data[0].Model != "toy" {
		t.Errorf("a key for one model sees the profiles %+v", got)
	}
	f = start(t, says(t, "Answer: 4"), nil)
	if _, _, answer := f.do("GET", "/v1/profiles", nil); len(strict[list](t, answer).Data) != 0 {
		t.Errorf("without profiles: %s", answer)
	}
}

func TestEveryAPIThatSearchesTakesAQualityAndADeadline(t *testing.T) {
	f := profiled(t, nil)
	const aims = `"test_time_scaling":{"quality":0.8,"deadline_ms":300000}`
	for path, body := range map[string]string{
		"/v1/completions": `{"prompt":"Two and two?",` + aims + `}`,
		"/v1/responses":   `{"input":"Two and two?",` + aims + `}`,
		"/v1/messages":    `{"model":"toy","max_tokens":30,"messages":[{"role":"user","content":"Two and two?"}],` + aims + `}`,
		"/api/chat":       `{"model":"toy","stream":false,"messages":[{"role":"user","content":"Two and two?"}],` + aims + `}`,
		"/api/generate":   `{"model":"toy","stream":false,"prompt":"Two and two?",` + aims + `}`,
	} {
		status, h, answer := f.post(path, body)
		if status != 200 || h.Get(api.ScalingApplied) != "self_consistency;n=4" || !strings.HasPrefix(h.Get(api.ScalingExpected), "quality=0.800;") {
			t.Errorf("%s: %d, %q, %q: %s", path, status, h.Get(api.ScalingApplied), h.Get(api.ScalingExpected), answer)
		}
		status, _, answer = f.post(path, strings.Replace(body, "0.8", "0.99", 1))
		if status != 400 || !strings.Contains(string(answer), "self_consistency;n=4") {
			t.Errorf("%s asked for too much: %d %s", path, status, answer)
		}
	}
}

func TestWhatCannotBeReachedIsRefusedWithWhatCan(t *testing.T) {
	f := profiled(t, nil)
	for _, c := range []struct{ fields, code, param, says string }{
		{`"test_time_scaling":{"quality":0.99}`, "quality_unreachable", "test_time_scaling.quality", `toy with \"self_consistency;n=4\": quality 0.800`},
		{`"test_time_scaling":{"quality":0.5,"deadline_ms":1}`, "deadline_unreachable", "test_time_scaling.deadline_ms", "the soonest that reaches 0.5 is toy with"},
		{`"test_time_scaling":{"quality":0}`, "invalid_value", "test_time_scaling.quality", ""},
		{`"test_time_scaling":{"quality":1.5}`, "invalid_value", "test_time_scaling.quality", ""},
		{`"test_time_scaling":{"quality":"high"}`, "invalid_type", "test_time_scaling.quality", ""},
		{`"test_time_scaling":{"deadline_ms":0}`, "invalid_value", "test_time_scaling.deadline_ms", ""},
		{`"test_time_scaling":{"deadline_ms":90000000}`, "search_limit_exceeded", "test_time_scaling.deadline_ms", ""},
		{`"test_time_scaling":"quality=0.5;quality=0.6"`, "invalid_value", "test_time_scaling.quality", ""},
		{`"test_time_scaling":{"quality":0.5},"n":3,"model":"other"`, "quality_unreachable", "test_time_scaling.quality", "no method that fits"},
	} {
		status, _, answer := f.post("/v1/chat/completions", with(c.fields))
		wantError(t, c.fields, status, answer, 400, c.code, c.param)
		if !strings.Contains(string(answer), c.says) {
			t.Errorf("%s: %s does not say %s", c.fields, answer, c.says)
		}
	}
	plain := start(t, says(t, "Hi."), nil)
	status, _, answer := plain.post("/v1/chat/completions", with(`"test_time_scaling":{"quality":0.5}`))
	wantError(t, "without a profile", status, answer, 400, "profile_required", "test_time_scaling.quality")
}

func TestAnotherModelAnswersIfTheOperatorListsIt(t *testing.T) {
	f := profiled(t, func(o *Options) { o.Alternates = []string{"toy", "other", "absent"} })
	got, _ := f.ask(`"model":"toy","test_time_scaling":{"quality":0.85}`)
	if got.Model != "other" || got.Scaling.Chosen.Model != "other" || got.Choices[0].Message.Content != "Answer: 5" {
		t.Errorf("the answer is %+v", got)
	}
	if got, _ := f.ask(`"model":"other","test_time_scaling":{"quality":0.4}`); got.Model != "toy" {
		t.Errorf("what is good enough and soonest is %q", got.Model)
	}
}

func TestARepeatedRequestDoesWhatWasChosen(t *testing.T) {
	f := real(t, nil)
	body := strings.Replace(fewEggs, `"max_tokens":40`, `"max_tokens":60,"seed":5,"receipt":true,"test_time_scaling":{"quality":0.95,"deadline_ms":300000}`, 1) + "}"
	status, _, answer := f.post("/v1/chat/completions", body)
	was, _ := received(t, status, answer)
	if was.Search == nil || !was.Search.Chosen || !strings.Contains(string(was.Search.Plan), `"best_of_n"`) {
		t.Fatalf("the receipt's search is %+v", was.Search)
	}
	again, err := was.Repeat([]byte(body), "", nil)
	if err != nil || strings.Contains(string(again), "quality") || !strings.Contains(string(again), `"model":"lutra-tiny-s"`) {
		t.Fatalf("%s, %v", again, err)
	}
	status, _, answer = f.post("/v1/chat/completions", string(again))
	now, _ := received(t, status, answer)
	if v := receipt.Compare(&was, &now); !v.Same() || v.Candidates < 2 {
		t.Errorf("%+v", v)
	}
}

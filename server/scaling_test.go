package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/models/toy"
)

// wireCandidate is a search's report of one candidate, written down apart from the server's own
// types.
type wireCandidate struct {
	Candidate    int       `json:"candidate"`
	Text         string    `json:"text"`
	FinishReason *string   `json:"finish_reason"`
	Tokens       int       `json:"tokens"`
	Score        *float64  `json:"score"`
	Logprob      *float64  `json:"logprob"`
	Answer       *string   `json:"answer"`
	Votes        int       `json:"votes"`
	StepScores   []float64 `json:"step_scores"`
	Steps        []struct {
		Text   string  `json:"text"`
		Tokens int     `json:"tokens"`
		Score  float64 `json:"score"`
	} `json:"steps"`
}

type wireNode struct {
	Parent int     `json:"parent"`
	Step   int     `json:"step"`
	Text   string  `json:"text"`
	Tokens int     `json:"tokens"`
	Score  float64 `json:"score"`
	Fate   string  `json:"fate"`
}

// wireSearch is both a search's progress and its outcome, which has a reason.
type wireSearch struct {
	Method     string          `json:"method"`
	N          int             `json:"n"`
	Width      int             `json:"width"`
	Steps      int             `json:"steps"`
	StopReason string          `json:"stop_reason"`
	Select     string          `json:"select"`
	Agreement  float64         `json:"agreement"`
	Degraded   bool            `json:"degraded"`
	Candidates []wireCandidate `json:"candidates"`
	Tree       []wireNode      `json:"tree"`

	Prompt   *int       `json:"prompt"`
	Added    []wireNode `json:"added"`
	Step     int        `json:"step"`
	Live     int        `json:"live"`
	Finished int        `json:"finished"`
	Tokens   int        `json:"tokens"`
	Best     float64    `json:"best"`
	Leader   *string    `json:"leader"`
}

// searched is a chat completion, or a chunk of one, as far as a search shapes it.
type searched struct {
	Model   string `json:"model"`
	Choices []struct {
		Index        int                             `json:"index"`
		Message      struct{ Content string }        `json:"message"`
		Delta        struct{ Role, Content *string } `json:"delta"`
		FinishReason *string                         `json:"finish_reason"`
		Search       *wireCandidate                  `json:"test_time_scaling"`
	} `json:"choices"`
	Usage *struct {
		wireUsage
		Search *struct {
			Chosen    int `json:"chosen_tokens"`
			Discarded int `json:"discarded_tokens"`
			Verifier  int `json:"verifier_tokens"`
		} `json:"test_time_scaling"`
	} `json:"usage"`
	Search *wireSearch `json:"test_time_scaling"`
}

func readSearched(t *testing.T, answer []byte) searched {
	t.Helper()
	var c searched
	if err := json.Unmarshal(answer, &c); err != nil || len(c.Choices) == 0 {
		t.Fatalf("answer %s: %v", answer, err)
	}
	return c
}

// askFor sends a chat with these fields to a model, and headers, and returns
// what was applied.
func (f *fixture) askFor(model, fields string, headers ...string) (applied string, status int, answer []byte) {
	f.t.Helper()
	body := strings.Replace(chatBody(`,"seed":1,"max_tokens":8`+fields), `"toy"`, `"`+model+`"`, 1)
	status, h, answer := f.do(http.MethodPost, "/v1/chat/completions", strings.NewReader(body), headers...)
	return h.Get("X-Lutra-Scaling-Applied"), status, answer
}

const (
	inBody     = `,"test_time_scaling":{"method":"best_of_n","n":2}`
	inMetadata = `,"metadata":{"test_time_scaling":"best_of_n;n=4"}`
)

func TestEveryChannelAsksForASearchAndTheFirstOneCounts(t *testing.T) {
	f := start(t, &toy.Model{}, func(o *Options) {
		o.DefaultScaling = "self_consistency;n=6"
		o.Presets = map[string]string{"deep": "best_of_n;n=5;select=vote", "plain": "none"}
	})
	inHeader := []string{"X-Lutra-Scaling", "best_of_n;n=3"}
	for _, c := range []struct {
		name, model, fields string
		headers             []string
		want                string
	}{
		{"the default", "toy", "", nil, "self_consistency;n=6"},
		{"a short name", "toy+sc7", "", nil, "self_consistency;n=7"},
		{"votes of the certain", "toy+cert3", "", nil, "self_consistency;n=3"},
		{"a preset", "toy+deep", "", nil, "best_of_n;n=5"},
		{"an alias with a preset", "gpt-4o+deep", "", nil, "best_of_n;n=5"},
		{"the default model with a preset", "default+bon2", "", nil, "best_of_n;n=2"},
		{"metadata before the name", "toy+sc7", inMetadata, nil, "best_of_n;n=4"},
		{"the header before metadata", "toy+sc7", inMetadata, inHeader, "best_of_n;n=3"},
		{"the body before the header", "toy+sc7", inMetadata + inBody, inHeader, "best_of_n;n=2"},
		{"a string in the body", "toy", `,"test_time_scaling":"sc3"`, nil, "self_consistency;n=3"},
		{"null in the body", "toy", `,"test_time_scaling":null`, nil, "self_consistency;n=6"},
		{"nothing instead of the default", "toy", `,"test_time_scaling":"none"`, nil, ""},
		{"no method instead of the name", "toy+sc7", `,"test_time_scaling":{"method":"none"}`, nil, ""},
		{"no header instead of the default", "toy", "", []string{"X-Lutra-Scaling", "none"}, ""},
		{"nothing in the metadata", "toy", `,"metadata":{"test_time_scaling":"none"}`, nil, ""},
		{"nothing behind the name", "toy+none", "", nil, ""},
		{"a preset of nothing", "toy+plain", "", nil, ""},
		{"an object that changes a preset", "toy+deep", `,"test_time_scaling":{"n":4,"include":["tree"]}`, nil, "best_of_n;n=4"},
		{"an object that changes a header", "toy", `,"test_time_scaling":{"include":["tree"]}`, inHeader, "best_of_n;n=3"},
		{"an object that changes the default", "toy", `,"test_time_scaling":{"include":["tree"]}`, nil, "self_consistency;n=6"},
		{"an object that changes no search", "toy+plain", `,"test_time_scaling":{"include":["tree"]}`, nil, ""},
		{"a default that does not suit", "toy", `,"temperature":0`, nil, ""},
		{"more choices than the default has", "toy", `,"n":7`, nil, ""},
	} {
		applied, status, answer := f.askFor(c.model, c.fields, c.headers...)
		if status != http.StatusOK || applied != c.want {
			t.Errorf("%s: %d, applied %q, want %q (%s)", c.name, status, applied, c.want, answer)
			continue
		}
		got := readSearched(t, answer)
		if (got.Search != nil) != (c.want != "") || got.Model != c.model {
			t.Errorf("%s: %s", c.name, answer)
		}
		if c.want != "" && !strings.HasPrefix(c.want, got.Search.Method+";") {
			t.Errorf("%s: method %q, want that of %q", c.name, got.Search.Method, c.want)
		}
	}
}

func TestADefaultOfNoneIsThePlainAnswer(t *testing.T) {
	f := start(t, &toy.Model{}, func(o *Options) { o.DefaultScaling = "none" })
	if applied, status, answer := f.askFor("toy", ""); applied != "" || status != http.StatusOK || readSearched(t, answer).Search != nil {
		t.Errorf("%d, applied %q: %s", status, applied, answer)
	}
}

func TestEveryFaultOfAPlanHasItsCodeAndItsField(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	body := func(object string) string { return `,"test_time_scaling":` + object }
	for _, c := range []struct {
		model, fields string
		headers       []string
		code, param   string
	}{
		{"toy", body(`{"method":"magic"}`), nil, "unknown_method", "test_time_scaling.method"},
		{"toy", body(`{}`), nil, "unknown_method", "test_time_scaling.method"},
		{"toy", body(`"magic"`), nil, "unknown_method", "test_time_scaling.method"},
		{"toy", body(`7`), nil, "invalid_type", "test_time_scaling"},
		{"toy", body(`{"method":"beam_search","n":6}`), nil, "n_not_divisible", "test_time_scaling.n"},
		{"toy", body(`{"method":"best_of_n","verifier":"nobody"}`), nil, "verifier_not_found", "test_time_scaling.verifier"},
		{"toy", body(`{"method":"best_of_n","verifier":"toy"}`), nil, "verifier_not_found", "test_time_scaling.verifier"},
		{"toy", body(`{"method":"best_of_n","temperature":0}`), nil, "temperature_zero", "test_time_scaling.temperature"},
		{"toy", body(`{"method":"best_of_n"}`) + `,"temperature":0`, nil, "temperature_zero", "temperature"},
		{"toy", body(`{"method":"best_of_n","n":65}`), nil, "search_limit_exceeded", "test_time_scaling.n"},
		{"toy", body(`{"method":"best_of_n","budget":{"tokens":9999999}}`), nil, "search_limit_exceeded", "test_time_scaling.budget.tokens"},
		{"toy", body(`{"method":"best_of_n","n":2}`) + `,"n":3`, nil, "invalid_value", "test_time_scaling.n"},
		{"toy", body(`{"method":"best_of_n","n":0}`), nil, "invalid_value", "test_time_scaling.n"},
		{"toy", body(`{"method":"best_of_n","n":"many"}`), nil, "invalid_type", "test_time_scaling.n"},
		{"toy", body(`{"method":"best_of_n","adaptive":7}`), nil, "invalid_type", "test_time_scaling.adaptive"},
		{"toy", body(`{"method":"best_of_n","adaptive":{"step_cost":[1,"x"]}}`), nil, "invalid_type", "test_time_scaling.adaptive.step_cost"},
		{"toy", body(`{"method":"best_of_n","adaptive":{"step_cost":[2,1]}}`), nil, "invalid_value", "test_time_scaling.adaptive.step_cost"},
		{"toy", body(`{"method":"best_of_n","adaptive":{"step_cost":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}}`), nil, "invalid_value", "test_time_scaling.adaptive.step_cost"},
		{"toy", body(`{"method":"auto","adaptive":true}`), nil, "invalid_value", "test_time_scaling.adaptive"},
		{"toy", body(`{"method":"deepconf","deepconf":{"window":0}}`), nil, "invalid_value", "test_time_scaling.deepconf.window"},
		{"toy", body(`{"method":"deepconf","verifier":"logprob"}`), nil, "invalid_value", "test_time_scaling.verifier"},
		{"toy", body(`{"method":"particle_filtering","n":8,"verifier":"logprob","particles":{"iterations":3}}`), nil, "n_not_divisible", "test_time_scaling.n"},
		{"toy", body(`{"method":"best_of_n","select":"luck"}`), nil, "invalid_value", "test_time_scaling.select"},
		{"toy", body(`{"method":"best_of_n","early_stop":{"consensus":0}}`), nil, "invalid_value", "test_time_scaling.early_stop.consensus"},
		{"toy", body(`{"method":"best_of_n","early_stop":"yes"}`), nil, "invalid_type", "test_time_scaling.early_stop"},
		{"toy", body(`{"method":"best_of_n","include":["all"]}`), nil, "invalid_value", "test_time_scaling.include[0]"},
		{"toy", body(`{"method":"best_of_n","answer":{"extract":"regex:("}}`), nil, "invalid_value", "test_time_scaling.answer"},
		{"toy", "", []string{"X-Lutra-Scaling", "magic"}, "unknown_method", "X-Lutra-Scaling"},
		{"toy", "", []string{"X-Lutra-Scaling", "sc4;n"}, "invalid_value", "X-Lutra-Scaling"},
		{"toy", `,"metadata":{"test_time_scaling":"beam4x3"}`, nil, "n_not_divisible", "metadata.test_time_scaling"},
		{"toy+sc100", "", nil, "search_limit_exceeded", "model"},
	} {
		_, status, answer := f.askFor(c.model, c.fields, c.headers...)
		wantError(t, c.model+c.fields+strings.Join(c.headers, ""), status, answer, http.StatusBadRequest, c.code, c.param)
	}
	status, _, answer := f.post("/v1/completions", `{"prompt":"a","best_of":100}`)
	wantError(t, "best_of 100", status, answer, http.StatusBadRequest, "search_limit_exceeded", "best_of")
	for _, model := range []string{"toy+magic", "toy+", "+bon4+bon4", "nobody+bon4"} {
		_, status, answer := f.askFor(model, "")
		wantError(t, model, status, answer, http.StatusNotFound, "model_not_found", "model")
	}
}

func TestAStrictServerKnowsTheFieldsOfAPlan(t *testing.T) {
	f := start(t, &toy.Model{}, func(o *Options) { o.Strict = true })
	if _, status, answer := f.askFor("toy", `,"test_time_scaling":{"method":"best_of_n","n":2,"step":{"max_tokens":3},"early_stop":false,"include":[]}`); status != http.StatusOK {
		t.Errorf("%d %s", status, answer)
	}
	_, status, answer := f.askFor("toy", `,"test_time_scaling":{"method":"best_of_n","widht":2}`)
	wantError(t, "a slip", status, answer, http.StatusBadRequest, "unknown_parameter", "test_time_scaling.widht")
}

func TestVerifiersAndPresetsAreListedAndJudgesDoNotChat(t *testing.T) {
	f := real(t, nil)
	list, err := f.client().ListModels(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range list.Models {
		ids = append(ids, m.ID)
	}
	want := []string{"lutra-tiny-s", "lutra-tiny-prm", "lutra-tiny-s+beam16x4", "lutra-tiny-s+bon8", "lutra-tiny-s+cert8", "lutra-tiny-s+sc16", "lutra-tiny-s+sc8"}
	if !slices.Equal(ids, want) {
		t.Errorf("models %q, want %q", ids, want)
	}
	if m, err := f.client().GetModel(t.Context(), "lutra-tiny-s+bon8"); err != nil || m.ID != "lutra-tiny-s+bon8" || m.Root != "lutra-tiny-s" {
		t.Errorf("GetModel = %+v, %v", m, err)
	}
	for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
		status, _, answer := f.post(path, `{"model":"lutra-tiny-prm","prompt":"a","messages":[{"role":"user","content":"Hi"}]}`)
		wantError(t, path, status, answer, http.StatusBadRequest, "invalid_value", "model")
	}
}

func TestGoOpenAIGetsTheBestOfFourByTheNameOfTheModel(t *testing.T) {
	f := real(t, nil)
	p := problems(t, 1)[0]
	req := goopenai.ChatCompletionRequest{Model: "lutra-tiny-s+bon4", Messages: user(p.Question), Seed: new(3), MaxCompletionTokens: 300}
	resp, err := f.client().CreateChatCompletion(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Choices) != 1 || resp.Choices[0].FinishReason != "stop" || !strings.Contains(resp.Choices[0].Message.Content, "Answer:") ||
		resp.Usage.CompletionTokens < 100 || resp.Header().Get("X-Lutra-Scaling-Applied") != "best_of_n;n=4" {
		t.Errorf("the answer is %+v", resp)
	}
	stream, err := f.client().CreateChatCompletionStream(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	text, err := readStream(stream)
	if err != nil || text != resp.Choices[0].Message.Content {
		t.Errorf("the stream says %q, %v, want %q", text, err, resp.Choices[0].Message.Content)
	}
}

// readStream reads choice 0 to its end, as old clients do.
func readStream(stream *goopenai.ChatCompletionStream) (text string, err error) {
	for {
		c, err := stream.Recv()
		if err != nil {
			if err.Error() == "EOF" {
				err = nil
			}
			return text, err
		}
		text += c.Choices[0].Delta.Content
	}
}

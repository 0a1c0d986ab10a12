package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/receipt"
)

const fewEggs = `{"messages":[{"role":"user","content":"A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"}],"max_tokens":40`

// received returns the receipt in an answer, and the answer.
func received(t *testing.T, status int, answer []byte) (receipt.Receipt, *receipt.Saved) {
	t.Helper()
	if status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	s, err := receipt.Read(answer)
	if err != nil {
		t.Fatalf("%v in\n%s", err, answer)
	}
	return s.Receipt, s
}

func sumOf(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func TestAReceiptSaysWhatAnAnswerWasComputedFrom(t *testing.T) {
	f := real(t, nil)
	file, err := os.ReadFile("../models/embedded/lutra-tiny-s.gguf")
	if err != nil {
		t.Fatal(err)
	}
	body := fewEggs + `, "n":2,"top_p":0.9,"receipt":true}`
	status, _, answer := f.post("/v1/chat/completions", body)
	r, saved := received(t, status, answer)
	if r.Request != body || r.Hash != sumOf([]byte(body)) || r.Endpoint != "/v1/chat/completions" {
		t.Errorf("the request is %q (%s) at %s", r.Request, r.Hash, r.Endpoint)
	}
	if want := (receipt.Model{Name: "lutra-tiny-s", SHA256: sumOf(file), Packing: "I2", KV: "f16", Context: f.model.Context}); !reflect.DeepEqual(r.Model, want) {
		t.Errorf("the model is %+v, want %+v", r.Model, want)
	}
	if len(r.Prompts) != 1 || r.Prompts[0].Tokens < 20 || len(r.Prompts[0].Hash) != 64 {
		t.Errorf("the prompts are %+v", r.Prompts)
	}
	if r.Kernels != cpu.Family() || r.Build.Go == "" || r.Search != nil || r.Candidates != nil {
		t.Errorf("the receipt is %+v", r)
	}
	if s := r.Sampling; s.Seed == 0 || s.N != 2 || s.Temperature != 1 || s.TopP != 0.9 || s.RepetitionPenalty != 1 || s.MaxTokens != 40 {
		t.Errorf("sampled with %+v", s)
	}
	var whole struct {
		Usage struct {
			Completion int `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal(answer, &whole); err != nil || len(r.Choices) != 2 || r.Choices[0].Tokens+r.Choices[1].Tokens != whole.Usage.Completion {
		t.Errorf("%d choices, %+v, of %d tokens (%v)", len(r.Choices), r.Choices, whole.Usage.Completion, err)
	}
	for i, c := range r.Choices {
		if text := saved.Texts[i]; c.Text != sumOf([]byte(text)) || !strings.HasPrefix(string(f.spell(t, c.IDs)), strings.TrimRight(text, "\n")) || text == "" {
			t.Errorf("choice %d is %q, of tokens %v", i, text, c.IDs)
		}
	}
}

// spell returns the bytes of tokens.
func (f *fixture) spell(t *testing.T, ids []int32) (text []byte) {
	for _, id := range ids {
		text = append(text, f.model.Tokenizer.Piece(id)...)
	}
	return text
}

// repeated asks for the answer of a receipt again.
func (f *fixture) repeated(t *testing.T, r *receipt.Receipt, body string) receipt.Receipt {
	t.Helper()
	again, err := r.Repeat([]byte(body), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	status, _, answer := f.post(r.Endpoint, string(again))
	now, _ := received(t, status, answer)
	return now
}

func TestAnAnswerIsComputedAgainFromItsReceipt(t *testing.T) {
	f := real(t, func(o *Options) { o.DefaultScaling = "sc8"; o.Presets["mine"] = "best_of_n;n=4;verifier=logprob" })
	text := `{"prompt":["7*8=","12*7="],"max_tokens":8,"n":2`
	for name, c := range map[string]struct{ path, body, header string }{
		"a default search":       {"/v1/chat/completions", fewEggs + `,"receipt":true}`, ""},
		"no search":              {"/v1/chat/completions", fewEggs + `,"test_time_scaling":"none","receipt":true}`, ""},
		"a search by header":     {"/v1/chat/completions", fewEggs + `,"receipt":true}`, "beam_search;n=8;width=4"},
		"a search by name":       {"/v1/chat/completions", strings.Replace(fewEggs, "{", `{"model":"lutra-tiny-s+mine",`, 1) + `,"receipt":true}`, ""},
		"a search in words":      {"/v1/chat/completions", fewEggs + `,"test_time_scaling":{"method":"dvts","n":4,"width":2,"early_stop":{"consensus":0.9},"step":{"stop":["\n","."]},"budget":{"tokens":300},"include":["tree"]},"receipt":true}`, ""},
		"a vote without an end":  {"/v1/chat/completions", fewEggs + `,"test_time_scaling":{"method":"self_consistency","n":4,"early_stop":false,"select":"weighted_vote"},"receipt":true}`, ""},
		"candidates in rounds":   {"/v1/chat/completions", fewEggs + `,"test_time_scaling":{"method":"best_of_n","n":6,"adaptive":{"first":2,"price":0.001,"step_cost":[1,1.5]}},"receipt":true}`, ""},
		"answers that end early": {"/v1/chat/completions", fewEggs + `,"test_time_scaling":{"method":"deepconf","n":6,"early_stop":false,"deepconf":{"window":8,"eta":50}},"receipt":true}`, ""},
		"particles":              {"/v1/chat/completions", fewEggs + `,"test_time_scaling":"pf6;particles.temperature=2","receipt":true}`, ""},
		"a check":                {"/v1/chat/completions", fewEggs + `,"test_time_scaling":{"method":"best_of_n","n":4,"verify":{"arithmetic":true}},"receipt":true}`, ""},
		"particle Gibbs":         {"/v1/chat/completions", fewEggs + `,"test_time_scaling":"pf6;particles.iterations=2","receipt":true}`, ""},
		"completions":            {"/v1/completions", text + `,"test_time_scaling":"none","receipt":true}`, ""},
		"completions' best_of":   {"/v1/completions", text + `,"best_of":4,"receipt":true}`, ""},
		"searches of two":        {"/v1/completions", text + `,"test_time_scaling":"bon8","receipt":true}`, ""},
		"an echo":                {"/v1/completions", text + `,"echo":true,"receipt":true}`, ""},
		"a seed of all 64 bits":  {"/v1/completions", text + `,"seed":18446744073709551615,"test_time_scaling":"none","receipt":true}`, ""},
		"a negative seed":        {"/v1/completions", text + `,"seed":-5,"test_time_scaling":"none","receipt":true}`, ""},
		"a schema":               {"/v1/chat/completions", fewEggs + `,"test_time_scaling":"none","response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"integer"}},"required":["b","a"]}}},"receipt":true}`, ""},
		"a number nobody writes": {"/v1/chat/completions", fewEggs + `,"temperature":7e-1,"top_p":0,"min_p":0.05,"typical_p":0.9,"receipt":true,"test_time_scaling":"none"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			header := []string{}
			if c.header != "" {
				header = []string{"X-Lutra-Scaling", c.header}
			}
			status, _, answer := f.do("POST", c.path, strings.NewReader(c.body), header...)
			was, _ := received(t, status, answer)
			now := f.repeated(t, &was, c.body)
			if v := receipt.Compare(&was, &now); !v.Same() || v.Tokens == 0 && !strings.Contains(c.body, `"max_tokens":0`) {
				t.Errorf("%+v\n%+v\n%+v", v, was, now)
			}
			if !strings.Contains(c.body, `"seed"`) {
				c.body = strings.Replace(c.body, "{", `{"seed":`+strconv.FormatUint(was.Sampling.Seed, 10)+`,`, 1)
			}
			stream := strings.Replace(c.body, "{", `{"stream":true,`, 1)
			status, _, events := f.do("POST", c.path, strings.NewReader(stream), header...)
			streamed, saved := received(t, status, events)
			if v := receipt.Compare(&was, &streamed); !v.Same() || len(saved.Texts) == 0 {
				t.Errorf("streamed: %+v", v)
			}
			if n := bytes.Count(events, []byte(`"receipt":{`)); n != 1 || !bytes.Contains(events[bytes.Index(events, []byte(`"receipt":{`)):], []byte("data: [DONE]")) || bytes.Count(events[bytes.Index(events, []byte(`"receipt":{`)):], []byte("data: ")) != 1 {
				t.Errorf("the last chunk, and no other, has a receipt, want it in\n%s", events)
			}
		})
	}
}

func TestAReceiptOfHashesHoldsNoWords(t *testing.T) {
	f := real(t, nil)
	body := fewEggs + `,"receipt":"hash","seed":3,"test_time_scaling":{"method":"best_of_n","n":4,"early_stop":false}}`
	status, _, answer := f.post("/v1/chat/completions", body)
	was, _ := received(t, status, answer)
	_, words, _ := bytes.Cut(answer, []byte(`"receipt":`))
	if was.Request != "" || slices.ContainsFunc(append(was.Choices, was.Candidates...), func(c receipt.Choice) bool { return c.IDs != nil || c.Tokens == 0 }) || bytes.Contains(words, []byte("eggs")) {
		t.Errorf("the receipt is %s", words)
	}
	now := f.repeated(t, &was, body)
	if v := receipt.Compare(&was, &now); !v.Same() || v.Candidates != 4 {
		t.Errorf("%+v", v)
	}
	now.Candidates[3].Hash = sumOf(nil)
	now.Candidates[3].IDs = nil
	if v := receipt.Compare(&was, &now); len(v.Where) != 1 || v.Where[0].Token != -1 || !strings.Contains(v.Where[0].Why, "hashes alone") {
		t.Errorf("of another candidate: %+v", v)
	}
}

func TestASearchsReceiptNamesItsVerifier(t *testing.T) {
	f := real(t, nil)
	file, err := os.ReadFile("../models/embedded/lutra-tiny-prm.gguf")
	if err != nil {
		t.Fatal(err)
	}
	for plan, judged := range map[string]bool{`"bon8"`: true, `"sc8"`: false, `{"method":"best_of_n","n":4,"verifier":"logprob"}`: false} {
		status, _, answer := f.post("/v1/chat/completions", fewEggs+`,"receipt":true,"test_time_scaling":`+plan+`}`)
		r, _ := received(t, status, answer)
		if v := r.Search.Verifier; (v != nil) != judged || judged && (v.Name != "lutra-tiny-prm" || v.SHA256 != sumOf(file)) {
			t.Errorf("%s: the verifier is %+v", plan, v)
		}
	}
}

func TestWithoutTheFieldNoAnswerHasAReceipt(t *testing.T) {
	f := real(t, nil)
	for _, field := range []string{"", `,"receipt":false`, `,"receipt":null`} {
		for _, stream := range []string{"", `,"stream":true`, `,"stream":true,"stream_options":{"include_usage":true}`} {
			if status, _, answer := f.post("/v1/chat/completions", fewEggs+field+stream+`}`); status != 200 || bytes.Contains(answer, []byte("receipt")) {
				t.Errorf("%s: %d %s", field, status, answer)
			}
		}
	}
}

func TestReceiptsAreRefusedByNameWhereThereAreNone(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	status, _, answer := f.post("/v1/chat/completions", chatBody(`,"receipt":true`))
	wantError(t, "a model without a file", status, answer, 400, jsonread.CodeUnsupported, "receipt")
	for value, code := range map[string]string{`"all"`: jsonread.CodeValue, `1`: jsonread.CodeType, `{}`: jsonread.CodeType, `""`: jsonread.CodeValue} {
		status, _, answer := f.post("/v1/completions", `{"prompt":"Hi","max_tokens":1,"receipt":`+value+`}`)
		wantError(t, value, status, answer, 400, code, "receipt")
	}
	for path, body := range map[string]string{
		"/v1/responses": `{"input":"Hi","receipt":true}`, "/v1/messages": `{"max_tokens":4,"messages":[{"role":"user","content":"Hi"}],"receipt":true}`,
	} {
		if status, _, answer := f.post(path, body); status != 400 || !bytes.Contains(answer, []byte("receipt")) {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
}

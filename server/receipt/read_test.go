package receipt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
)

// kept returns a small receipt in an answer.
func kept(t testing.TB, change func(r *Receipt)) string {
	t.Helper()
	body := `{"messages":[],"receipt":true}`
	r := Receipt{
		Version: 1, Endpoint: "/v1/chat/completions", Request: body, Hash: sum([]byte(body)), Kernels: "amd64-avx2",
		Model: Model{Name: "m", SHA256: sum(nil), Packing: "I2", KV: "f16", Context: 100}, Sampling: Sampling{N: 1, Params: sampling.Params{Seed: 7, Temperature: 1, TopP: 1, RepetitionPenalty: 1, TypicalP: 1}},
		Prompts: []Prompt{{2, hashOf([]int32{1, 2})}},
		Choices: []Choice{{Tokens: 3, Hash: hashOf([]int32{5, 6, 7}), IDs: []int32{5, 6, 7}, Text: sum([]byte("abc")), Finish: "stop"}},
	}
	if change != nil {
		change(&r)
	}
	text, err := json.Marshal(map[string]any{"id": "x", "receipt": r, "choices": []any{map[string]any{"index": 0, "message": map[string]any{"content": "abc"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAReceiptIsReadFromAnAnswerAStreamOrAlone(t *testing.T) {
	answer := kept(t, nil)
	want, err := Read([]byte(answer))
	if err != nil {
		t.Fatal(err)
	}
	alone, err := json.Marshal(want.Receipt)
	if err != nil {
		t.Fatal(err)
	}
	stream := `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"content":"bc"}}]}` + "\n\ndata: " +
		fmt.Sprintf(`{"choices":[],"receipt":%s}`, alone) + "\n\ndata: [DONE]\n\n"
	for name, text := range map[string]string{"an answer": answer, "alone": string(alone), "a stream": stream, "with a mark of bytes": "\ufeff" + answer} {
		got, err := Read([]byte(text))
		if err != nil || fmt.Sprint(got.Receipt) != fmt.Sprint(want.Receipt) || name != "alone" && got.Texts[0] != "abc" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := Read([]byte(strings.Replace(stream, `"bc"`, `"bd"`, 1))); err == nil || !strings.Contains(err.Error(), "text_sha256") {
		t.Errorf("a stream whose text was changed: %v", err)
	}
}

func TestFaultsOfReceiptsNameTheKey(t *testing.T) {
	replaced := func(old, new string) string {
		text := kept(t, nil)
		if !strings.Contains(text, old) {
			t.Fatalf("%q is not in %s", old, text)
		}
		return strings.Replace(text, old, new, 1)
	}
	hash := hashOf([]int32{5, 6, 7})
	for want, text := range map[string]string{
		"it is empty":                       "",
		"it is not valid JSON":              `{"receipt":`,
		"it must be a JSON object":          `[1]`,
		"nested in more than 160 levels":    strings.Repeat("[", 1<<20),
		"it has no receipt":                 `{"choices":[]}`,
		"the stream has no receipt":         "data: {}\n",
		"an event of the stream: it is not": "data: {\n",
		"'receipt'":                         `{"receipt":[]}`,
		"'receipt.version': this program reads version 1, but got 2": replaced(`"version":1`, `"version":2`),
		"'receipt.version': expected an integer, but got a string":   replaced(`"version":1`, `"version":"1"`),
		"'receipt.endpoint'": replaced("/v1/chat/completions", "/v1/embeddings"),
		"'receipt.endpoint': expected /v1/chat/completions or /v1/completions, but got": replaced("/v1/chat/completions", "http://elsewhere/v1/completions"),
		"'receipt.request_sha256': it is not that of receipt.request":                   replaced(`\"messages\":[]`, `\"messages\":[1]`),
		"'receipt.request_sha256': expected 64 hexadecimal":                             replaced(`"request_sha256":"`, `"request_sha256":"x`),
		"'receipt.model'":                           replaced(`"model":{`, `"model":7,"x":{`),
		"'receipt.model.sha256'":                    replaced(sum(nil), "E3B0"),
		"'receipt.model.context': expected an":      replaced(`"context":100`, `"context":1e2`),
		"'receipt.model.context': expected":         replaced(`"context":100`, `"context":-1`),
		"'receipt.model.name': at most 1024":        replaced(`"name":"m"`, `"name":"`+strings.Repeat("m", 2000)+`"`),
		"'receipt.model.colour': it is":             replaced(`"name":"m"`, `"name":"m","colour":"red"`),
		"'receipt.kernels': it is missing":          replaced(`"kernels":"amd64-avx2"`, `"kernels":null`),
		"'receipt.sampling.seed'":                   replaced(`"seed":"7"`, `"seed":"18446744073709551616"`),
		"'receipt.sampling.seed': expected a":       replaced(`"seed":"7"`, `"seed":7`),
		"'receipt.sampling.temperature'":            replaced(`"temperature":1`, `"temperature":1e300`),
		"'receipt.sampling.top_k'":                  replaced(`"top_k":0`, `"top_k":99999999999999999999`),
		"'receipt.sampling.n'":                      replaced(`"n":1`, `"n":100000`),
		"'receipt.choices'":                         replaced(`"choices":[{"index":0,"tokens"`, `"choices":{},"more":[{"index":0,"tokens"`),
		"'receipt.choices[0].tokens'":               replaced(`"tokens":3`, `"tokens":-3`),
		"'receipt.choices[0].token_ids[1]'":         replaced(`[5,6,7]`, `[5,-6,7]`),
		"'receipt.choices[0].token_ids'":            replaced(`[5,6,7]`, `"5"`),
		"tokens_sha256': it is not that of the 3":   replaced(`[5,6,7]`, `[5,6,8]`),
		"tokens_sha256': it is not that of the 2":   replaced(`[5,6,7]`, `[5,6]`),
		"'receipt.choices[0].tokens_sha256'":        replaced(hash, "00"),
		"choices[0].text_sha256': it is not that":   replaced(`"content":"abc"`, `"content":"abd"`),
		"'receipt.prompts': it is missing":          replaced(`"prompts":[`, `"prompts":null,"choices":[`),
		"'receipt.prompts[0].sha256': expected 64":  replaced(hashOf([]int32{1, 2}), "zz"),
		"'receipt.trust'":                           replaced(`"version":1`, `"version":1,"trust":true`),
		"'receipt.choices[0].score'":                replaced(`"tokens":3`, `"tokens":3,"score":1e99`),
		"'receipt.choices[0].step_scores[0]'":       replaced(`"tokens":3`, `"tokens":3,"step_scores":["1"]`),
		"'receipt.search.plan'":                     replaced(`"version":1`, `"version":1,"search":{"plan":"bon8","stop_reasons":[]}`),
		"'receipt.search.verifier.sha256'":          replaced(`"version":1`, `"version":1,"search":{"plan":{},"verifier":{"sha256":"1"},"stop_reasons":[]}`),
		"'receipt.search.stop_reasons'":             replaced(`"version":1`, `"version":1,"search":{"plan":{},"stop_reasons":[1]}`),
		"'receipt.choices': at most 4096 elements":  replaced(`"choices":[{"index":0,"tokens"`, `"choices":[`+strings.Repeat("{},", 5000)+`{"index":0,"tokens"`),
		"An object has more than 128 fields":        `{` + strings.Repeat(`"a":1,`, 200) + `"b":1}`,
		"'receipt.candidates': at most 65536":       replaced(`"version":1`, `"version":1,"candidates":[`+strings.Repeat("0,", 70000)+`0]`),
		"'receipt.candidates[0]': expected an obje": replaced(`"version":1`, `"version":1,"candidates":[7]`),
	} {
		if s, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %+v, %v of %.300s", want, s, err, text)
		}
	}
}

func TestARepeatedRequestPinsWhatWasInForce(t *testing.T) {
	var fields map[string]any
	repeat := func(body, model string, change func(r *Receipt)) {
		t.Helper()
		r := Receipt{Sampling: Sampling{Params: sampling.Params{Seed: 1<<64 - 1}}}
		if change != nil {
			change(&r)
		}
		text, err := r.Repeat([]byte(body), model, nil)
		if err != nil {
			t.Fatal(err)
		}
		fields = nil
		if !strings.Contains(string(text), `"seed":18446744073709551615`) {
			t.Errorf("the seed is not in %s", text)
		}
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
	}
	repeat(`{"model":"a","stream":true,"stream_options":{"include_usage":true},"seed":null,"temperature":0.5,"receipt":"hash"}`, "", nil)
	if fmt.Sprintln(fields["model"], fields["stream"], fields["stream_options"], fields["temperature"], fields["receipt"], fields["test_time_scaling"]) != "a <nil> <nil> 0.5 true none\n" {
		t.Errorf("%v", fields)
	}
	repeat(`{"model":"a+bon8","test_time_scaling":"bon8"}`, "b", func(r *Receipt) { r.Search = &Search{Plan: json.RawMessage(`{"method":"best_of_n"}`)} })
	if fmt.Sprintln(fields["model"], fields["test_time_scaling"]) != "b map[method:best_of_n]\n" {
		t.Errorf("%v", fields)
	}
	repeat(`{"prompt":"a","best_of":4}`, "", nil)
	if _, is := fields["test_time_scaling"]; is {
		t.Errorf("beside best_of there is a search: %v", fields)
	}
	if words := (&Receipt{}).Switches([]byte(`{"model":"think+nothink+sc8"}`)); words != "+nothink" {
		t.Errorf("what switches thinking is %q", words)
	}
}

func TestAComparisonFindsTheFirstTokenThatIsAnother(t *testing.T) {
	choice := func(ids ...int32) Choice {
		return Choice{Tokens: len(ids), IDs: ids, Hash: hashOf(ids), Finish: "stop"}
	}
	scored := func(c Choice, score float32, steps ...float32) Choice {
		c.Score, c.Steps = &score, steps
		return c
	}
	for name, c := range map[string]struct {
		was, now Choice
		want     string // token, was, now and why; empty: the same
	}{
		"the same":       {choice(1, 2, 3), choice(1, 2, 3), ""},
		"in the middle":  {choice(1, 2, 3), choice(1, 7, 3), "1 2 7"},
		"at the end":     {choice(1, 2, 3), choice(1, 2), "2 3 -1"},
		"longer":         {choice(1, 2), choice(1, 2, 3), "2 -1 3"},
		"at once":        {choice(1), choice(), "0 1 -1"},
		"another score":  {scored(choice(1), 0.5), scored(choice(1), 0.50000006), "-1 -1 -1 its score is 0.5 there, 0.50000006 here"},
		"no score":       {scored(choice(1), 0.5), choice(1), "-1 -1 -1 its score is 0.5 there, none here"},
		"another step's": {scored(choice(1), 0.5, 0.1, 0.5), scored(choice(1), 0.5, 0.2, 0.5), "-1 -1 -1 the score of its solution step 0 is 0.1 there, 0.2 here"},
	} {
		v := Compare(&Receipt{Choices: []Choice{c.was}}, &Receipt{Choices: []Choice{c.now}})
		got := ""
		for _, p := range v.Where {
			got = strings.TrimSpace(fmt.Sprint(p.Token, p.Was, p.Now, " ", p.Why))
		}
		if strings.Join(strings.Fields(got), " ") != c.want || v.Same() != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWhatWasNotComputedFromTheSameIsNotCompared(t *testing.T) {
	for want, change := range map[string]func(r *Receipt){
		"model.sha256: a there, b here":                     func(r *Receipt) { r.Model.SHA256 = "b" },
		"model.packing: I2 there, Q2G128 here":              func(r *Receipt) { r.Model.Packing = "Q2G128" },
		"model.kv: f16 there, int8 here":                    func(r *Receipt) { r.Model.KV = "int8" },
		"model.metadata: none there, x here":                func(r *Receipt) { r.Model.Metadata = "x" },
		"kernels: amd64-avx2 there, arm64-neon":             func(r *Receipt) { r.Kernels = "arm64-neon" },
		"sampling.temperature: 0.5 there, 1 here":           func(r *Receipt) { r.Sampling.Temperature = 1 },
		"sampling.seed: 7 there, 8 here":                    func(r *Receipt) { r.Sampling.Seed = 8 },
		"search: true there, false here":                    func(r *Receipt) { r.Search = nil },
		`search.plan: {"n":4} there, {"n":5} here`:          func(r *Receipt) { r.Search = &Search{Plan: json.RawMessage(`{"n":5}`), Verifier: r.Search.Verifier} },
		"search.verifier: true there, false":                func(r *Receipt) { r.Search = &Search{Plan: r.Search.Plan} },
		"search.verifier.sha256: c there, d here":           func(r *Receipt) { r.Search = &Search{Plan: r.Search.Plan, Verifier: &Model{SHA256: "d"}} },
		"prompts[0]: its 2 tokens there are not its 3 here": func(r *Receipt) { r.Prompts = []Prompt{{3, "f"}} },
		"choices: 1 there, 2 here":                          func(r *Receipt) { r.Choices = make([]Choice, 2) },
		"":                                                  func(r *Receipt) { r.Build.Revision, r.Model.Context, r.Model.Name = "x", 9, "alias" },
	} {
		was := Receipt{Model: Model{SHA256: "a", Packing: "I2", KV: "f16"}, Kernels: "amd64-avx2", Sampling: Sampling{Params: sampling.Params{Seed: 7, Temperature: 0.5}}, Choices: make([]Choice, 1), Prompts: []Prompt{{2, "e"}},
			Search: &Search{Plan: json.RawMessage(`{"n":4}`), Verifier: &Model{SHA256: "c"}}}
		now := was
		change(&now)
		v := Compare(&was, &now)
		if got := strings.Join(v.Apart, "; "); !strings.Contains(got, want) || (want == "") != v.Same() || want == "" && len(v.Notes) != 2 {
			t.Errorf("%q (%q), want %q", got, v.Notes, want)
		}
	}
}

// FuzzRead holds that whatever is read can be asked for and compared again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(kept(f, nil)))
	f.Add([]byte(kept(f, func(r *Receipt) {
		score := float32(0.5)
		r.Search = &Search{Plan: json.RawMessage(`{"method":"best_of_n","n":4}`), Verifier: &r.Model, Stopped: []string{"complete"}}
		r.Candidates = []Choice{{Tokens: 1, Hash: hashOf([]int32{1}), IDs: []int32{1}, Score: &score, Steps: []float32{score}}}
	})))
	f.Add([]byte("data: {\"receipt\":{}}\n\ndata: [DONE]"))
	f.Add([]byte(`{"version":1,"request_sha256":"x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Read(text)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("an error without words")
			}
			return
		}
		r := &s.Receipt
		if !slices.Contains(Endpoints, r.Endpoint) || len(r.Choices) == 0 {
			t.Fatalf("read %+v", r)
		}
		if v := Compare(r, r); !v.Same() {
			t.Fatalf("a receipt is not the same as itself: %+v", v)
		}
		if r.Request == "" {
			return
		}
		body, err := r.Body(nil)
		if err == nil {
			_, err = r.Repeat(body, "m", nil)
		}
		if err != nil && !strings.Contains(err.Error(), "the request: ") {
			t.Fatal(err)
		}
	})
}

package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// listedText is a completion, or a chunk of one, with its tokens' ids.
type listedText struct {
	Print   string `json:"system_fingerprint"`
	Choices []struct {
		Index    int
		Tokens   []int32
		Logprobs *struct {
			Token     []*float64 `json:"token_logprobs"`
			Certainty []*float64
		}
		Finish *string `json:"finish_reason"`
	}
}

// listedRun is the tokens of a choice.
type listedRun struct {
	IDs                []int32
	Logprob, Certainty []float64
}

// add takes in a part of the choices.
func (c *listedText) add(t *testing.T, runs map[int]listedRun) {
	t.Helper()
	for _, ch := range c.Choices {
		r := runs[ch.Index]
		r.IDs = append(r.IDs, ch.Tokens...)
		if ch.Logprobs != nil {
			for i := range ch.Logprobs.Token {
				r.Logprob, r.Certainty = append(r.Logprob, *ch.Logprobs.Token[i]), append(r.Certainty, *ch.Logprobs.Certainty[i])
			}
		}
		if len(r.IDs) != len(r.Logprob) || len(ch.Tokens) > 0 && c.Print == "" {
			t.Fatalf("choice %d: %d ids, %d log-probabilities, fingerprint %q", ch.Index, len(r.IDs), len(r.Logprob), c.Print)
		}
		runs[ch.Index] = r
	}
}

func TestCandidatesAreTheChoicesOfTheirNumbersAndGoOnWhereTheyWere(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	ask := func(fields string) map[int]listedRun {
		status, _, answer := f.post("/v1/completions", `{"prompt":[5,6,7],"seed":9,"max_tokens":24,"temperature":0.9,"frequency_penalty":0.7,"logprobs":0,"return_tokens":true`+fields+`}`)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", fields, status, answer)
		}
		runs := map[int]listedRun{}
		var c listedText
		if err := json.Unmarshal(answer, &c); err != nil {
			t.Fatal(err)
		}
		c.add(t, runs)
		return runs
	}
	whole := ask(`,"n":6`)
	numbers := []int{5, 0, 3}
	for i, run := range ask(`,"candidates":[5,0,3]`) {
		if want := whole[numbers[i]]; fmt.Sprint(run) != fmt.Sprint(want) || len(run.IDs) == 0 {
			t.Errorf("candidate %d is %v, the choice %v", numbers[i], run, want)
		}
	}
	begun := make([][]int32, len(numbers))
	for i, n := range numbers {
		begun[i] = whole[n].IDs[:min(4*i, len(whole[n].IDs)-1)]
	}
	fields := `,"candidates":[5,0,3],"begun":` + string(must(json.Marshal(begun)))
	for i, run := range ask(fields) {
		want := whole[numbers[i]]
		n := len(begun[i])
		rest := listedRun{want.IDs[n:], want.Logprob[n:], want.Certainty[n:]}
		got := listedRun{run.IDs[:len(rest.IDs)], run.Logprob[:len(rest.IDs)], run.Certainty[:len(rest.IDs)]} // max_tokens counts from here
		if fmt.Sprint(got) != fmt.Sprint(rest) {
			t.Errorf("candidate %d goes on as %v, the choice as %v", numbers[i], got, rest)
		}
	}
	plain := ask(fields)
	_, _, stream := f.post("/v1/completions", `{"prompt":[5,6,7],"seed":9,"max_tokens":24,"temperature":0.9,"frequency_penalty":0.7,"logprobs":0,"return_tokens":true,"stream":true`+fields+`}`)
	streamed := map[int]listedRun{}
	for _, raw := range chunks[json.RawMessage](t, stream) {
		var c listedText
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		c.add(t, streamed)
	}
	if fmt.Sprint(streamed) != fmt.Sprint(plain) {
		t.Errorf("streamed are %v, whole %v", streamed, plain)
	}
}

func TestDelimitersEndACandidateBehindTheirToken(t *testing.T) {
	f := start(t, says(t, "One.\nTwo.\n"), nil)
	status, _, answer := f.post("/v1/completions", `{"prompt":"<|im_start|>assistant\n","candidates":[0],"delimiters":["\n"],"return_tokens":true,"max_tokens":64,"include_stop_str_in_output":true}`)
	var c struct {
		Choices []struct {
			Text   string
			Tokens []int32
		}
	}
	if err := json.Unmarshal(answer, &c); err != nil || status != 200 || c.Choices[0].Text != "One.\n" || len(c.Choices[0].Tokens) < 2 {
		t.Errorf("%d %s", status, answer)
	}
	if text := f.model.Decode(c.Choices[0].Tokens); text != "One.\n" {
		t.Errorf("the ids are %q", text)
	}
}

func TestBadCandidatesAreRefusedByName(t *testing.T) {
	f := start(t, &toy.Model{Context: 64}, func(o *Options) { o.MaxChoices, o.DefaultScaling = 8, "sc4" })
	for _, c := range []struct{ fields, code, param string }{
		{`"candidates":3`, jsonread.CodeType, "candidates"},
		{`"candidates":[]`, jsonread.CodeValue, "candidates"},
		{`"candidates":[1,2,3,4,5,6,7,8,9]`, jsonread.CodeValue, "candidates"},
		{`"candidates":[0,-1]`, jsonread.CodeValue, "candidates[1]"},
		{`"candidates":[1.5]`, jsonread.CodeValue, "candidates[0]"},
		{`"candidates":[1048577]`, jsonread.CodeValue, "candidates[0]"},
		{`"candidates":["1"]`, jsonread.CodeValue, "candidates[0]"},
		{`"candidates":[0],"n":1`, jsonread.CodeValue, "n"},
		{`"candidates":[0],"echo":true`, jsonread.CodeValue, "echo"},
		{`"candidates":[0],"best_of":2`, jsonread.CodeValue, "best_of"},
		{`"candidates":[0],"test_time_scaling":"sc4"`, jsonread.CodeValue, "candidates"},
		{`"candidates":[0,1],"begun":[[5]]`, jsonread.CodeValue, "begun"},
		{`"candidates":[0],"begun":[7]`, jsonread.CodeType, "begun[0]"},
		{`"candidates":[0],"begun":[[-3]]`, jsonread.CodeValue, "begun[0][0]"},
		{`"candidates":[0],"begun":[[` + listed("5", 65) + `]]`, jsonread.CodeValue, "begun[0]"},
		{`"candidates":[0],"begun":[[` + listed("5", 63) + `]]`, api.CodeContext, "prompt"},
		{`"candidates":[0],"delimiters":[""]`, jsonread.CodeValue, "delimiters[0]"},
		{`"candidates":[0],"delimiters":[` + listed(`"a"`, 9) + `]`, jsonread.CodeValue, "delimiters"},
		{`"begun":[[5]]`, jsonread.CodeValue, "begun"},
		{`"delimiters":["a"]`, jsonread.CodeValue, "delimiters"},
		{`"return_tokens":1`, jsonread.CodeType, "return_tokens"},
	} {
		status, _, answer := f.post("/v1/completions", `{"prompt":[5],"temperature":0.5,"max_tokens":1,`+c.fields+`}`)
		wantError(t, c.fields, status, answer, http.StatusBadRequest, c.code, c.param)
	}
	status, _, answer := f.post("/v1/completions", `{"prompt":[[5],[6]],"candidates":[0]}`)
	wantError(t, "two prompts", status, answer, http.StatusBadRequest, jsonread.CodeValue, "prompt")
	_, h, answer := f.post("/v1/completions", `{"prompt":[5],"temperature":0.5,"max_tokens":1,"candidates":[0]}`)
	if h.Get("X-Lutra-Scaling-Applied") != "" || slices.Contains(answer, 0) {
		t.Errorf("server.default_scaling searches for another server's search: %s", answer)
	}
}

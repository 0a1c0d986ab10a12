package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts/constrain"
)

// infilling returns a server over a model whose vocabulary has tokens to fill in; prompts
// are what it was asked.
func infilling(t *testing.T, text string) (f *fixture, prompts *[][]int32) {
	t.Helper()
	prompts = new([][]int32)
	tok := infillWords(t)
	end, _ := tok.EOS()
	reply := append(tok.Encode(nil, text, tokenizer.Options{}), end)
	f = start(t, &toy.Model{Logits: func(tokens []int32, row []float32) {
		clear(row)
		said := 0
		for i := len(tokens) - 1; i >= 0 && tokens[i] != 1002; i-- {
			said++
		}
		if said == 0 {
			*prompts = append(*prompts, append([]int32(nil), tokens...))
		}
		if said < len(reply) {
			row[reply[said]] = 50
		}
	}}, nil)
	f.model.Tokenizer, f.model.Formats = tok, constrain.NewFormats(tok)
	return f, prompts
}

// infillWords returns a tokenizer with tokens to fill in.
func infillWords(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	file, err := embedded.Open(embedded.Default)
	if err != nil {
		t.Fatal(err)
	}
	md := file.Metadata
	md["tokenizer.ggml.fim_pre_token_id"], md["tokenizer.ggml.fim_suf_token_id"], md["tokenizer.ggml.fim_mid_token_id"] = uint32(1000), uint32(1001), uint32(1002)
	tok, err := tokenizer.New(md)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestTheMiddleOfATextIsFilledIn(t *testing.T) {
	f, prompts := infilling(t, "Twelve apples")
	tok := f.model.Tokenizer
	want := func(parts ...any) (ids []int32) {
		ids = tok.Encode(nil, "", tokenizer.Options{AddSpecial: true})
		for _, p := range parts {
			switch p := p.(type) {
			case int:
				ids = append(ids, int32(p))
			case string:
				ids = tok.Encode(ids, p, tokenizer.Options{})
			}
		}
		return ids
	}
	check := func(what string, ids []int32) {
		t.Helper()
		if n := len(*prompts); n == 0 || string(tok.Decode((*prompts)[n-1], true)) != tok.Decode(ids, true) {
			t.Errorf("%s: the model reads %q, want %q", what, *prompts, tok.Decode(ids, true))
		}
	}
	_, _, answer := f.post("/v1/completions", `{"prompt":"He has ","suffix":" in all.","temperature":0}`)
	if !strings.Contains(string(answer), `"text":"Twelve apples"`) {
		t.Errorf("completions: %s", answer)
	}
	check("completions", want(1000, "He has ", 1001, " in all.", 1002))

	const body = `{"input_prefix":"He has ","input_suffix":" in all.","input_extra":[{"filename":"a.txt","text":"One."}],"temperature":0,"samplers":["top_k"]`
	_, _, answer = f.post("/infill", body+`}`)
	var got struct {
		Content   string
		Stop      bool
		StopType  string `json:"stop_type"`
		Predicted int    `json:"tokens_predicted"`
		Evaluated int    `json:"tokens_evaluated"`
	}
	if err := json.Unmarshal(answer, &got); err != nil || got.Content != "Twelve apples" || !got.Stop || got.StopType != "eos" || got.Predicted == 0 || got.Evaluated == 0 {
		t.Errorf("infill: %s", answer)
	}
	check("infill", want("One.\n", 1000, "He has ", 1001, " in all.", 1002))

	_, _, answer = f.post("/infill", body+`,"stream":true,"stop":["app"]}`)
	text, last := "", got
	for e := range strings.SplitSeq(strings.TrimSpace(string(answer)), "\n\n") {
		if err := json.Unmarshal([]byte(strings.TrimPrefix(e, "data: ")), &last); err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		if !last.Stop {
			text += last.Content
		}
	}
	if text != "Twelve " || last.StopType != "word" {
		t.Errorf("streamed: %s", answer)
	}
	if _, _, answer = f.post("/infill", body+`,"n_predict":0}`); !strings.Contains(string(answer), `"content":"","tokens":[],"id_slot":0,"stop":true`) {
		t.Errorf("computing the prompt alone: %s", answer)
	}
}

func TestOtherModelsRefuseToFillIn(t *testing.T) {
	f := start(t, says(t, "Hi"), nil)
	status, _, answer := f.post("/v1/completions", `{"prompt":"a","suffix":"b"}`)
	wantError(t, "completions", status, answer, 400, jsonread.CodeUnsupported, "suffix")
	status, _, answer = f.post("/infill", `{"input_prefix":"a"}`)
	wantError(t, "infill", status, answer, 400, jsonread.CodeUnsupported, "model")
	status, _, answer = f.post("/infill", `{"input_extra":[7]}`)
	wantError(t, "a file that is none", status, answer, 400, jsonread.CodeType, "input_extra[0]")
}

package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
)

// sillyTavern has the fields that SillyTavern (public/scripts/textgen-settings.js) sends to /completion with its settings as
// they come, and a prompt of ours.
const sillyTavern = `{"prompt":"You: Hello!\nSeraphina:","model":"","max_new_tokens":48,"max_tokens":48,"temperature":0.7,"top_p":0.5,"typical_p":1,
"typical":1,"sampler_seed":-1,"min_p":0,"repetition_penalty":1.2,"frequency_penalty":0,"presence_penalty":0,"top_k":40,"skew":0,"min_tokens":0,
"add_bos_token":true,"smoothing_factor":0,"smoothing_curve":1,"dry_allowed_length":2,"dry_multiplier":0,"dry_base":1.75,
"dry_sequence_breakers":"[\"\\n\",\":\",\"\\\"\",\"*\"]","dry_penalty_last_n":0,"max_tokens_second":0,
"samplers":["top_k","tfs_z","typical_p","top_p","min_p","temperature"],"stopping_strings":["\nYou:"],"stop":["\nYou:"],"truncation_length":8192,
"ban_eos_token":false,"skip_special_tokens":true,"top_a":0,"tfs":1,"mirostat_mode":0,"mirostat_tau":5,"mirostat_eta":0.1,"custom_token_bans":"",
"banned_strings":[],"api_type":"llamacpp","api_server":"http://127.0.0.1:8080","legacy_api":false,"xtc_threshold":0.1,"xtc_probability":0,
"rep_pen":1.2,"rep_pen_range":0,"repetition_penalty_range":0,"seed":-1,"guidance_scale":1,"negative_prompt":"","grammar_string":"",
"repeat_penalty":1.2,"tfs_z":1,"repeat_last_n":0,"n_predict":48,"num_predict":48,"num_ctx":8192,"mirostat":0,"ignore_eos":false,"n_probs":10,
"rep_pen_slope":1,"logit_bias":[],"grammar":"","cache_prompt":true,"stream":%t}`

// llamaVSCode has the fields that llama-vscode (src/llama-server.ts) sends to /infill. It sends infillBeforehand before there
// is anything to fill in.
const (
	llamaVSCode = `{"id_slot":0,"input_prefix":"func add(a, b int) int {\n","input_suffix":"}\n","input_extra":[{"text":"package sum","time":1,"filename":"sum.go"}],
"prompt":"\treturn ","n_predict":128,"n_cmpl":3,"top_k":40,"top_p":0.99,"stream":false,"samplers":["top_k","top_p","infill"],"cache_prompt":true,"n_indent":4,
"t_max_prompt_ms":500,"t_max_predict_ms":2500}`
	infillBeforehand = `{"id_slot":0,"input_prefix":"","input_suffix":"","input_extra":[{"text":"package sum","time":1,"filename":"sum.go"}],"prompt":"",
"n_predict":0,"samplers":[],"cache_prompt":true,"t_max_prompt_ms":500,"t_max_predict_ms":1}`
)

// completionAnswer has the fields that llama.cpp's clients read of an answer or a piece of one.
type completionAnswer struct {
	Index     int
	Content   string
	Tokens    []int32
	Stop      *bool
	StopType  string          `json:"stop_type"`
	StopWord  string          `json:"stopping_word"`
	Predicted int             `json:"tokens_predicted"`
	Evaluated int             `json:"tokens_evaluated"`
	Settings  json.RawMessage `json:"generation_settings"`
	Prompt    string
	Timings   *struct {
		PromptN    int `json:"prompt_n"`
		PredictedN int `json:"predicted_n"`
	}
	Probabilities []struct {
		Token   string
		Logprob float64
		Top     []struct {
			Token   string
			Logprob float64
		} `json:"top_logprobs"`
	} `json:"completion_probabilities"`
}

func TestSillyTavernGetsItsCompletions(t *testing.T) {
	tok := words()
	prompt, reply := len(tok.Encode(nil, "You: Hello!\nSeraphina:", tokenizer.Options{AddSpecial: true})), tok.Encode(nil, " Well met.\nYou: no", tokenizer.Options{})
	f := start(t, &toy.Model{Logits: func(tokens []int32, row []float32) {
		clear(row)
		if said := len(tokens) - prompt; said >= 0 && said < len(reply) {
			row[reply[said]] = 50
		}
	}}, nil)
	for _, stream := range []bool{false, true} {
		status, _, answer := f.post("/completion", fmt.Sprintf(sillyTavern, stream))
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
		pieces := []completionAnswer{}
		if stream {
			pieces = eventsOf[completionAnswer](t, answer)
		} else {
			pieces = append(pieces, strictless[completionAnswer](t, answer))
		}
		text, listed, tokens := "", 0, 0
		for i, p := range pieces {
			text += p.Content
			for _, q := range p.Probabilities {
				if listed++; len(q.Top) != 10 || q.Top[0].Logprob < q.Logprob {
					t.Errorf("stream %t: %+v", stream, q)
				}
			}
			if tokens += len(p.Tokens); p.Stop == nil || *p.Stop != (i == len(pieces)-1) {
				t.Errorf("stream %t: piece %d of %d has stop %v", stream, i, len(pieces), p.Stop)
			}
		}
		last := pieces[len(pieces)-1]
		if text != " Well met." || last.StopType != "word" || last.StopWord != "\nYou:" || last.Timings == nil || last.Evaluated == 0 || listed == 0 {
			t.Errorf("stream %t: %q, %d probabilities, ended by %s %q", stream, text, listed, last.StopType, last.StopWord)
		}
		if (tokens > 0) != stream || stream && tokens != last.Predicted {
			t.Errorf("stream %t: %d tokens of %d", stream, tokens, last.Predicted)
		}
		for _, part := range []string{`"top_p":0.5`, `"n_predict":48`, `"temperature":0.7`, `"n_probs":10`} {
			if !bytes.Contains(last.Settings, []byte(part)) {
				t.Errorf("the settings %s lack %s", last.Settings, part)
			}
		}
	}
	for _, path := range []string{"/props", "/slots", "/v1/models"} {
		if status, _, answer := f.do("GET", path, nil); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	if _, _, answer := f.post("/tokenize", `{"content":"Hello"}`); len(strictless[completionAnswer](t, answer).Tokens) == 0 {
		t.Errorf("/tokenize: %s", answer)
	}
	for _, action := range []string{"save", "restore", "erase"} {
		if status, _, answer := f.post("/slots/0?action="+action, `{"filename":"a.bin"}`); status != http.StatusNotImplemented {
			t.Errorf("slots are said to %s: %d %s", action, status, answer)
		}
	}
}

func TestLlamaVSCodeGetsItsCompletions(t *testing.T) {
	f, prompts := infilling(t, "a + b")
	if status, _, answer := f.post("/infill", infillBeforehand); status != http.StatusOK {
		t.Fatalf("beforehand: %d %s", status, answer)
	}
	status, _, answer := f.post("/infill", llamaVSCode)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	list := strictless[[]completionAnswer](t, answer)
	if len(list) != 3 || list[0].Content != "a + b" || list[2].Index != 2 || list[1].Timings == nil || len(*prompts) == 0 {
		t.Errorf("%d completions: %s", len(list), answer)
	}
	one := strings.Replace(llamaVSCode, `"n_cmpl":3`, `"n_cmpl":1`, 1)
	if _, _, answer := f.post("/infill", one); strictless[completionAnswer](t, answer).Content != "a + b" {
		t.Errorf("one completion: %s", answer)
	}
	// As llama.vim asks for what it reads alone.
	only := strings.Replace(one, `"id_slot":0`, `"response_fields":["content","timings/prompt_n","timings/none","none"]`, 1)
	_, _, answer = f.post("/infill", only)
	if got := strictless[map[string]any](t, answer); len(got) != 2 || got["content"] != "a + b" || got["timings/prompt_n"] == nil {
		t.Errorf("some fields: %s", answer)
	}
	if _, _, answer := f.do("GET", "/health", nil); !bytes.Contains(answer, []byte(`{"status":"ok"}`)) {
		t.Errorf("/health: %s", answer)
	}
	_, _, answer = f.do("GET", "/props?model=toy&autoload=false", nil)
	var props struct {
		Settings struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Slots      int    `json:"total_slots"`
		Template   string `json:"chat_template"`
		Modalities struct{ Vision, Audio *bool }
		Build      string `json:"build_info"`
	}
	if err := json.Unmarshal(answer, &props); err != nil || props.Settings.Context != f.model.Context || props.Slots == 0 || props.Template == "" || props.Modalities.Vision == nil || props.Build == "" {
		t.Errorf("/props: %s, %v", answer, err)
	}
	if status, _, answer := f.do("GET", "/props?model=none", nil); status != http.StatusNotFound {
		t.Errorf("/props of no model: %d %s", status, answer)
	}
	if status, _, answer := f.post("/apply-template", `{"messages":[{"role":"user","content":"Hi"}],"tool_choice":"auto","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]}`); status != http.StatusOK {
		t.Errorf("/apply-template: %d %s", status, answer)
	}
}

// TestLlamaUIGetsWhatItAsksFor sends what llama.ui (src/api/providers) does: the properties, the models, and chats.
func TestLlamaUIGetsWhatItAsksFor(t *testing.T) {
	f := start(t, says(t, "Fine."), nil)
	for _, path := range []string{"/props", "/v1/models"} {
		if status, _, answer := f.do("GET", path, nil, "Content-Type", "application/json"); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	_, _, answer := f.post("/v1/chat/completions", `{"model":"toy","messages":[{"role":"user","content":"Hi"}],"stream":true,"cache_prompt":true,"timings_per_token":true}`)
	if !bytes.Contains(answer, []byte(`"finish_reason":"stop"`)) || !bytes.Contains(answer, []byte(`"timings"`)) || !bytes.HasSuffix(bytes.TrimSpace(answer), []byte("[DONE]")) {
		t.Errorf("%s", answer)
	}
}

func TestPromptsOfCompletionsAreTextsTokensOrBoth(t *testing.T) {
	var read []string
	end, _ := words().EOS()
	tok := words()
	m := &toy.Model{Logits: func(tokens []int32, row []float32) {
		clear(row)
		row[end] = 50
		read = append(read, string(tok.Decode(tokens, true)))
	}}
	f := start(t, m, nil)
	for _, c := range []struct {
		prompt string
		want   []string
	}{
		{`"one two"`, []string{"one two"}},
		{`[5,6,7]`, []string{tok.Decode([]int32{5, 6, 7}, true)}},
		{`["one ",5,"two"]`, []string{"one " + tok.Decode([]int32{5}, true) + "two"}},
		{`["one","two"]`, []string{"one", "two"}},
		{`["one",[5,6],["a",7]]`, []string{"one", tok.Decode([]int32{5, 6}, true), "a" + tok.Decode([]int32{7}, true)}},
	} {
		read = nil
		status, _, answer := f.post("/completion", `{"prompt":`+c.prompt+`,"n_predict":1,"temperature":0}`)
		if status != http.StatusOK {
			t.Errorf("%s: %d %s", c.prompt, status, answer)
			continue
		}
		if list := answer[0] == '['; list != (len(c.want) > 1) {
			t.Errorf("%s: %s", c.prompt, answer)
		}
		for _, want := range c.want {
			found := false
			for _, r := range read {
				found = found || strings.HasSuffix(r, want)
			}
			if !found {
				t.Errorf("%s: the model read %q, want %q", c.prompt, read, want)
			}
		}
	}
}

func TestWhatLlamaServerWouldDoAndThisOneDoesNotIsRefusedByName(t *testing.T) {
	f := start(t, says(t, "Fine."), nil)
	for _, c := range []struct{ field, param string }{
		{`"mirostat":2`, "mirostat"}, {`"dynatemp_range":0.5`, "dynatemp_range"}, {`"post_sampling_probs":true`, "post_sampling_probs"},
		{`"return_progress":true`, "return_progress"}, {`"image_data":[{"data":"","id":1}]`, "image_data"}, {`"t_max_predict_ms":5`, "t_max_predict_ms"},
		{`"n_indent":4`, "n_indent"}, {`"min_keep":2`, "min_keep"}, {`"n_probs":21`, "n_probs"}, {`"n_cmpl":100000`, "n"},
		{`"samplers":[1]`, "samplers"}, {`"samplers":["top_k","mirostat"]`, "samplers"}, {`"samplers":"kz"`, "samplers"}, {`"response_fields":[1]`, "response_fields"}, {`"grammar":"root ::= root"`, "grammar"},
		{`"stop":7`, "stop"}, {`"n_predict":-2`, "n_predict"}, {`"dry_sequence_breakers":"[1]"`, "dry_sequence_breakers"},
	} {
		status, _, answer := f.post("/completion", `{"prompt":"a",`+c.field+`}`)
		var fault struct{ Error struct{ Param *string } }
		if err := json.Unmarshal(answer, &fault); err != nil || status != http.StatusBadRequest || fault.Error.Param == nil || *fault.Error.Param != c.param {
			t.Errorf("%s: %d %s, want a fault of %s", c.field, status, answer, c.param)
		}
	}
	for _, prompt := range []string{`[]`, `7`, `{"prompt_string":"a"}`, `[[]]`, `[1.5]`, `[-1]`, `["a",99999999]`, `[{"prompt_string":"a"}]`} {
		if status, _, answer := f.post("/completion", `{"prompt":`+prompt+`}`); status != http.StatusBadRequest || !bytes.Contains(answer, []byte(`"param":"prompt`)) {
			t.Errorf("%s: %d %s", prompt, status, answer)
		}
	}
	for field, want := range map[string]string{
		`"samplers":["top_k"]`:       `"temperature":1,`,
		`"samplers":"kt"`:            `"top_p":1,`,
		`"samplers":["nucleus"]`:     `"top_p":0.95,`,
		`"samplers":["temperature"]`: `"temperature":0.8,`,
		`"repeat_penalty":1.5`:       `"repeat_penalty":1.5,`,
		`"seed":7`:                   `"seed":7,`,
		`"ignore_eos":false`:         `"n_predict":4,`,
	} {
		if _, _, answer := f.post("/completion", `{"prompt":"a","n_predict":4,`+field+`}`); !bytes.Contains(answer, []byte(want)) {
			t.Errorf("%s: %s, want %s", field, answer, want)
		}
	}
}

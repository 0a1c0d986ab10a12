package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// wantError holds an answer against the envelope.
func wantError(t *testing.T, what string, status int, answer []byte, wantStatus int, code, param string) {
	t.Helper()
	e := strict[api.Envelope](t, answer).Error
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	if status != wantStatus || text(e.Code) != code || text(e.Param) != param {
		t.Errorf("%s: %d %q about %q (%s), want %d %q about %q", what, status, text(e.Code), text(e.Param), e.Message, wantStatus, code, param)
	}
	if e.Message == "" || e.Type == "" {
		t.Errorf("%s: error without message or type: %s", what, answer)
	}
}

func TestEveryBadChatRequestIsRefusedWithItsReason(t *testing.T) {
	f := start(t, &toy.Model{Context: 64}, func(o *Options) { o.MaxBody = 1 << 16; o.MaxChoices = 8 })
	with := func(fields string) string {
		return `{"model":"toy","messages":[{"role":"user","content":"Hi"}],` + fields + `}`
	}
	message := func(m string) string { return `{"model":"toy","messages":[` + m + `]}` }
	for _, c := range []struct {
		body        string
		status      int
		code, param string
	}{
		{``, 400, jsonread.CodeJSON, ""},
		{`{`, 400, jsonread.CodeJSON, ""},
		{`{"model":"toy",}`, 400, jsonread.CodeJSON, ""},
		{`{} {}`, 400, jsonread.CodeJSON, ""},
		{`null`, 400, jsonread.CodeType, ""},
		{`[1]`, 400, jsonread.CodeType, ""},
		{`"text"`, 400, jsonread.CodeType, ""},
		{strings.Repeat("[", 20000), 400, jsonread.CodeJSON, ""},
		{`{"messages":` + strings.Repeat(`[`, 20000) + strings.Repeat(`]`, 20000) + `}`, 400, jsonread.CodeJSON, ""},
		{`{"messages":"` + strings.Repeat("a", 1<<16) + `"}`, 413, "request_too_large", ""},
		{`{}`, 400, jsonread.CodeMissing, "messages"},
		{`{"messages":null}`, 400, jsonread.CodeMissing, "messages"},
		{`{"messages":[]}`, 400, jsonread.CodeMissing, "messages"},
		{`{"messages":{}}`, 400, jsonread.CodeType, "messages"},
		{`{"messages":["Hi"]}`, 400, jsonread.CodeType, "messages[0]"},
		{`{"model":7,"messages":[]}`, 400, jsonread.CodeType, "model"},
		{`{"model":"nobody","messages":[]}`, 404, "model_not_found", "model"},
		{message(`{"content":"Hi"}`), 400, jsonread.CodeMissing, "messages[0].role"},
		{message(`{"role":"king","content":"Hi"}`), 400, jsonread.CodeValue, "messages[0].role"},
		{message(`{"role":1,"content":"Hi"}`), 400, jsonread.CodeType, "messages[0].role"},
		{message(`{"role":"user"}`), 400, jsonread.CodeMissing, "messages[0].content"},
		{message(`{"role":"user","content":null}`), 400, jsonread.CodeMissing, "messages[0].content"},
		{message(`{"role":"user","content":{}}`), 400, jsonread.CodeType, "messages[0].content"},
		{message(`{"role":"user","content":"a"},{"role":"user","content":["a"]}`), 400, jsonread.CodeType, "messages[1].content[0]"},
		{message(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}`), 400, jsonread.CodeUnsupported, "messages[0].content[0].type"},
		{message(`{"role":"assistant","content":null,"tool_calls":[{}]}`), 400, jsonread.CodeMissing, "messages[0].tool_calls[0].function"},
		{message(`{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":7}}]}`), 400, jsonread.CodeType, "messages[0].tool_calls[0].function.arguments"},
		{message(`{"role":"assistant","tool_calls":[{"type":"custom","function":{"name":"f","arguments":""}}]}`), 400, jsonread.CodeUnsupported, "messages[0].tool_calls[0].type"},
		{message(`{"role":"assistant","tool_calls":[{"function":{"arguments":""}}]}`), 400, jsonread.CodeMissing, "messages[0].tool_calls[0].function.name"},
		{message(`{"role":"assistant","tool_calls":[` + strings.Repeat(`1,`, 128) + `1]}`), 400, jsonread.CodeValue, "messages[0].tool_calls"},
		{with(`"add_generation_prompt":true,"continue_final_message":true`), 400, jsonread.CodeValue, "continue_final_message"},
		{message(`{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}`)[:len(`{"model":"toy","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}]`)] + `,"continue_final_message":true}`, 400, jsonread.CodeValue, "continue_final_message"},
		{with(`"continue_final_message":1`), 400, jsonread.CodeType, "continue_final_message"},
		{with(`"truncation":"never"`), 400, jsonread.CodeValue, "truncation"},
		{with(`"truncation":true`), 400, jsonread.CodeType, "truncation"},
		{with(`"tool_choice":"none","tools":[{"type":"function"}]`), 400, jsonread.CodeMissing, "tools[0].function"},
		{message(`{"role":"user","content":"` + strings.Repeat("long ", 100) + `"}`), 400, api.CodeContext, "messages"},
		{with(`"temperature":-0.1`), 400, jsonread.CodeValue, "temperature"},
		{with(`"temperature":2.1`), 400, jsonread.CodeValue, "temperature"},
		{with(`"temperature":1e999`), 400, jsonread.CodeValue, "temperature"},
		{with(`"temperature":"hot"`), 400, jsonread.CodeType, "temperature"},
		{with(`"temperature":[0]`), 400, jsonread.CodeType, "temperature"},
		{with(`"top_p":1.1`), 400, jsonread.CodeValue, "top_p"},
		{with(`"top_k":-2`), 400, jsonread.CodeValue, "top_k"},
		{with(`"top_k":1.5`), 400, jsonread.CodeType, "top_k"},
		{with(`"min_p":2`), 400, jsonread.CodeValue, "min_p"},
		{with(`"repetition_penalty":0`), 400, jsonread.CodeValue, "repetition_penalty"},
		{with(`"presence_penalty":3`), 400, jsonread.CodeValue, "presence_penalty"},
		{with(`"frequency_penalty":-3`), 400, jsonread.CodeValue, "frequency_penalty"},
		{with(`"n":0`), 400, jsonread.CodeValue, "n"},
		{with(`"n":9`), 400, jsonread.CodeValue, "n"},
		{with(`"n":99999999999999999999`), 400, jsonread.CodeValue, "n"},
		{with(`"n":"1"`), 400, jsonread.CodeType, "n"},
		{with(`"max_tokens":0`), 400, jsonread.CodeValue, "max_tokens"},
		{with(`"max_completion_tokens":-1`), 400, jsonread.CodeValue, "max_completion_tokens"},
		{with(`"seed":1.5`), 400, jsonread.CodeType, "seed"},
		{with(`"seed":"x"`), 400, jsonread.CodeType, "seed"},
		{with(`"stop":7`), 400, jsonread.CodeType, "stop"},
		{with(`"stop":[7]`), 400, jsonread.CodeType, "stop"},
		{with(`"stop":[""]`), 400, jsonread.CodeValue, "stop"},
		{with(`"stop":["` + strings.Repeat(`","`, 17) + `a"]`), 400, jsonread.CodeValue, "stop"},
		{with(`"stop":"` + strings.Repeat("a", 1025) + `"`), 400, jsonread.CodeValue, "stop"},
		{with(`"stop_token_ids":["a"]`), 400, jsonread.CodeType, "stop_token_ids"},
		{with(`"logit_bias":7`), 400, jsonread.CodeType, "logit_bias"},
		{with(`"logit_bias":[1,2]`), 400, jsonread.CodeType, "logit_bias"},
		{with(`"logit_bias":[[1]]`), 400, jsonread.CodeValue, "logit_bias"},
		{with(`"logit_bias":[[1024,1]]`), 400, jsonread.CodeValue, "logit_bias"},
		{with(`"logit_bias":[[1,true]]`), 400, jsonread.CodeValue, "logit_bias"},
		{with(`"logit_bias":[["a",101]]`), 400, jsonread.CodeValue, "logit_bias"},
		{with(`"logit_bias":{"a":false}`), 400, jsonread.CodeValue, "logit_bias"},
		{with(`"logit_bias":[` + strings.Repeat("[1,1],", 1024) + `[1,1]]`), 400, jsonread.CodeValue, "logit_bias"},
		{with(`"min_tokens":-1`), 400, jsonread.CodeValue, "min_tokens"},
		{with(`"min_tokens":9,"max_tokens":8`), 400, jsonread.CodeValue, "min_tokens"},
		{with(`"bad_words":"a"`), 400, jsonread.CodeType, "bad_words"},
		{with(`"bad_words":["a",""]`), 400, jsonread.CodeValue, "bad_words[1]"},
		{with(`"bad_words":["  "]`), 400, jsonread.CodeValue, "bad_words[0]"},
		{with(`"bad_words":["` + strings.Repeat("a", 257) + `"]`), 400, jsonread.CodeValue, "bad_words[0]"},
		{with(`"bad_words":[` + strings.Repeat(`"a",`, 256) + `"a"]`), 400, jsonread.CodeValue, "bad_words"},
		{with(`"allowed_token_ids":[]`), 400, jsonread.CodeValue, "allowed_token_ids"},
		{with(`"allowed_token_ids":[1,1024]`), 400, jsonread.CodeValue, "allowed_token_ids[1]"},
		{with(`"allowed_token_ids":[5],"logit_bias":[[5,false]]`), 400, jsonread.CodeValue, ""},
		{with(`"include_stop_str_in_output":1`), 400, jsonread.CodeType, "include_stop_str_in_output"},
		{with(`"skip_special_tokens":1`), 400, jsonread.CodeType, "skip_special_tokens"},
		{with(`"n_predict":-2`), 400, jsonread.CodeValue, "n_predict"},
		{with(`"n_predict":0`), 400, jsonread.CodeValue, "n_predict"},
		{with(`"repeat_penalty":0`), 400, jsonread.CodeValue, "repeat_penalty"},
		{with(`"repeat_penalty":1,"repetition_penalty":1`), 400, jsonread.CodeValue, "repeat_penalty"},
		{with(`"repeat_last_n":-2`), 400, jsonread.CodeValue, "repeat_last_n"},
		{with(`"logit_bias":{"a":1}`), 400, jsonread.CodeValue, "logit_bias"},
		{with(`"logit_bias":{"1024":1}`), 400, jsonread.CodeValue, "logit_bias"},
		{with(`"logit_bias":{"1":101}`), 400, jsonread.CodeValue, "logit_bias"},
		{with(`"logit_bias":{"1":"x"}`), 400, jsonread.CodeValue, "logit_bias"},
		{with(`"logprobs":5`), 400, jsonread.CodeType, "logprobs"},
		{with(`"top_logprobs":5`), 400, jsonread.CodeValue, "top_logprobs"},
		{with(`"logprobs":true,"top_logprobs":21`), 400, jsonread.CodeValue, "top_logprobs"},
		{with(`"stream":"yes"`), 400, jsonread.CodeType, "stream"},
		{with(`"stream_options":{"include_usage":true}`), 400, jsonread.CodeValue, "stream_options"},
		{with(`"stream":true,"stream_options":{"include_usage":1}`), 400, jsonread.CodeType, "stream_options.include_usage"},
		{with(`"stream":true,"stream_options":[]`), 400, jsonread.CodeType, "stream_options"},
		{with(`"response_format":"text"`), 400, jsonread.CodeType, "response_format"},
		{with(`"functions":[{}]`), 400, jsonread.CodeUnsupported, "functions"},
		{with(`"modalities":["text","audio"]`), 400, jsonread.CodeUnsupported, "modalities"},
		{with(`"reasoning_effort":"much"`), 400, jsonread.CodeValue, "reasoning_effort"},
		{with(`"reasoning":{"effort":1}`), 400, jsonread.CodeType, "reasoning.effort"},
		{with(`"reasoning":{"max_tokens":"x"}`), 400, jsonread.CodeType, "reasoning.max_tokens"},
		{with(`"thinking_token_budget":-2`), 400, jsonread.CodeValue, "thinking_token_budget"},
		{with(`"enable_thinking":"yes"`), 400, jsonread.CodeType, "enable_thinking"},
		{with(`"metadata":{"a":1}`), 400, jsonread.CodeType, "metadata"},
		{with(`"user":1}`), 400, jsonread.CodeJSON, ""},
		{with(`"user":1`), 400, jsonread.CodeType, "user"},
		{with(`"chat_template_kwargs":1`), 400, jsonread.CodeType, "chat_template_kwargs"},
	} {
		status, _, answer := f.post("/v1/chat/completions", c.body)
		what := c.body
		if len(what) > 150 {
			what = fmt.Sprintf("%s... (%d bytes)", what[:150], len(what))
		}
		wantError(t, what, status, answer, c.status, c.code, c.param)
	}
}

func TestEveryBadCompletionRequestIsRefusedWithItsReason(t *testing.T) {
	f := start(t, &toy.Model{Context: 64}, func(o *Options) { o.MaxChoices = 8 })
	for _, c := range []struct {
		body        string
		code, param string
	}{
		{`{}`, jsonread.CodeMissing, "prompt"},
		{`{"prompt":7}`, jsonread.CodeType, "prompt"},
		{`{"prompt":[]}`, jsonread.CodeValue, "prompt"},
		{`{"prompt":[[]]}`, jsonread.CodeValue, "prompt[0]"},
		{`{"prompt":["a",1]}`, jsonread.CodeType, "prompt"},
		{`{"prompt":[1.5]}`, jsonread.CodeType, "prompt"},
		{`{"prompt":[5000]}`, jsonread.CodeValue, "prompt[0]"},
		{`{"prompt":[-1]}`, jsonread.CodeValue, "prompt[0]"},
		{`{"prompt":""}`, jsonread.CodeValue, "prompt"},
		{`{"prompt":["1","2","3","4","5","6","7","8","9"]}`, jsonread.CodeValue, "prompt"},
		{`{"prompt":["1","2","3"],"n":3}`, jsonread.CodeValue, "n"},
		{`{"prompt":"a","suffix":"b"}`, jsonread.CodeUnsupported, "suffix"},
		{`{"prompt":"a","n":3,"best_of":2}`, jsonread.CodeValue, "best_of"},
		{`{"prompt":"a","best_of":9}`, jsonread.CodeValue, "best_of"},
		{`{"prompt":"a","best_of":2,"test_time_scaling":"sc4"}`, jsonread.CodeValue, "best_of"},
		{`{"prompt":"a","best_of":2,"echo":true}`, jsonread.CodeValue, "best_of"},
		{`{"prompt":"a","logprobs":true}`, jsonread.CodeType, "logprobs"},
		{`{"prompt":"a","logprobs":21}`, jsonread.CodeValue, "logprobs"},
		{`{"prompt":"a","echo":1}`, jsonread.CodeType, "echo"},
		{`{"prompt":"a","max_tokens":-1}`, jsonread.CodeValue, "max_tokens"},
		{`{"prompt":"` + strings.Repeat("long ", 100) + `"}`, api.CodeContext, "prompt"},
	} {
		status, _, answer := f.post("/v1/completions", c.body)
		wantError(t, c.body, status, answer, http.StatusBadRequest, c.code, c.param)
	}
}

func TestTheContextErrorNamesItsNumbers(t *testing.T) {
	f := start(t, &toy.Model{Context: 64}, nil)
	_, _, answer := f.post("/v1/completions", `{"prompt":[`+strings.Repeat("5,", 99)+`5]}`)
	if e := strict[api.Envelope](t, answer).Error; !strings.Contains(e.Message, "64 tokens") || !strings.Contains(e.Message, "100 tokens") {
		t.Errorf("message %q, want both numbers", e.Message)
	}
}

func TestRoutesMethodsAndMediaTypesHaveTheEnvelopeToo(t *testing.T) {
	f := start(t, &toy.Model{}, func(o *Options) { o.CORSOrigins = []string{"https://elsewhere.example"} })
	for _, c := range []struct {
		method, path, media string
		status              int
		code                string
	}{
		{"GET", "/nowhere", "", 404, "not_found"},
		{"POST", "/v1/embeddings", "application/json", 404, "model_not_found"},
		{"GET", "/v1/chat/completions", "", 405, "method_not_allowed"},
		{"DELETE", "/v1/models", "", 405, "method_not_allowed"},
		{"POST", "/v1/completions", "text/plain", 415, "unsupported_media_type"},
		{"POST", "/v1/completions", ";;", 415, "unsupported_media_type"},
		{"GET", "/v1/models/nobody", "", 404, "model_not_found"},
		{"GET", "/debug/state", "", 404, "not_found"},
	} {
		headers := []string{}
		if c.media != "" {
			headers = []string{"Content-Type", c.media, "Origin", "https://elsewhere.example"}
		}
		status, h, answer := f.do(c.method, c.path, strings.NewReader("{}"), headers...)
		param := ""
		if c.code == "model_not_found" {
			param = "model"
		}
		wantError(t, c.method+" "+c.path, status, answer, c.status, c.code, param)
		if h.Get("X-Request-Id") == "" || h.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: headers %v, want an id and JSON", c.method, c.path, h)
		}
		if c.status == 405 && h.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow header", c.method, c.path)
		}
	}
}

func TestProgramsNeedNotNameTheMediaType(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	for _, media := range []string{"application/x-www-form-urlencoded", "text/plain", ""} {
		status, _, answer := f.do("POST", "/v1/completions", strings.NewReader(`{"prompt":"a","max_tokens":1}`), "Content-Type", media)
		if status != 200 {
			t.Errorf("Content-Type %q: status %d, %s", media, status, answer)
		}
	}
}

func TestUnknownFieldsAreIgnoredOrWithStrictRefused(t *testing.T) {
	body := `{"messages":[{"role":"user","content":"Hi","mood":"good"}],"max_tokens":1,"frobnicate":true}`
	lax := start(t, &toy.Model{}, nil)
	if status, _, answer := lax.post("/v1/chat/completions", body); status != http.StatusOK {
		t.Errorf("unknown fields: %d %s, want 200", status, answer)
	}
	exact := start(t, &toy.Model{}, func(o *Options) { o.Strict = true })
	status, _, answer := exact.post("/v1/chat/completions", body)
	wantError(t, "strict", status, answer, http.StatusBadRequest, jsonread.CodeUnknown, "frobnicate")
	body = strings.Replace(body, `,"frobnicate":true`, "", 1)
	status, _, answer = exact.post("/v1/chat/completions", body)
	wantError(t, "strict", status, answer, http.StatusBadRequest, jsonread.CodeUnknown, "messages[0].mood")
}

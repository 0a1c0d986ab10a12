package server

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/toy"
)

// The answers of all APIs are held to their bytes, so that work inside of the server shows
// what it changes outside. With -update the hashes in bytesFile become today's. With
// LUTRA_BYTES, a folder, all answers are written there, for diff. Answers of an embedded model,
// whose numbers depend on the machine, are written too.
var updateBytes = flag.Bool("update", false, "rewrite "+bytesFile)

const bytesFile = "testdata/bytes.txt"

// exchange is a request; an empty method is POST.
type exchange struct{ method, path, body string }

// album gathers answers under names.
type album struct {
	names   []string
	answers map[string]*strings.Builder
}

// play adds the answers of f to requests, under a name.
func (a *album) play(f *fixture, name string, list ...exchange) {
	f.t.Helper()
	b := a.answers[name]
	if b == nil {
		b = &strings.Builder{}
		a.answers[name] = b
		a.names = append(a.names, name)
	}
	for _, e := range list {
		headers := []string{"X-Request-Id", "the-id"}
		if e.body != "" {
			headers = append(headers, "Content-Type", "application/json")
		}
		if name == "anthropic's lists" {
			headers = append(headers, "Anthropic-Version", "2023-06-01")
		}
		method := cmp.Or(e.method, http.MethodPost)
		status, h, answer := f.do(method, e.path, strings.NewReader(e.body), headers...)
		b.WriteString(normal(method+" "+e.path+" "+e.body) + "\n" + strconv.Itoa(status))
		for _, key := range slices.Sorted(func(yield func(string) bool) {
			for key := range h {
				if key != "Date" && key != "Content-Length" && !yield(key) {
					return
				}
			}
		}) {
			fmt.Fprintf(b, " %s: %s;", key, strings.Join(h[key], ", "))
		}
		b.WriteString("\n" + normal(string(answer)) + "\n\n")
	}
}

// What differs from one answer to an equal one.
var passing = []struct {
	sign    string // a text without it does not match, which is known sooner
	pattern *regexp.Regexp
	with    string
}{
	{`-`, regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{11,12}(\.\.\.)?`), "ID"},
	{`msg_`, regexp.MustCompile(`msg_[0-9a-f]{32}`), "msg_ID"},
	{`call_`, regexp.MustCompile(`call_[A-Z2-7]{24}`), "call_ID"},
	{`":`, regexp.MustCompile(`"(created|created_at|completed_at|cancelled_tokens|cached_tokens|tokens_cached|cache_read_input_tokens|total_duration|load_duration|prompt_eval_duration|eval_duration)":[0-9]+`), `"$1":0`},
	{`":"`, regexp.MustCompile(`"(created_at|modified_at|expires_at|system_fingerprint|kernels|build|lutra_version|fingerprint)":"[^"]*"`), `"$1":""`},
	{`_ms`, regexp.MustCompile(`"(prompt_ms|prompt_per_token_ms|predicted_ms|predicted_per_token_ms|predicted_per_second|prompt_per_second|prompt_n|cache_n)":[-+.e0-9]+`), `"$1":0`},
	{`"seed"`, regexp.MustCompile(`"seed":[0-9]{6,}`), `"seed":0`}, // a random one
	{`"live"`, regexp.MustCompile(`"live":[0-9]+,"finished":[0-9]+,"tokens":[0-9]+`), `"live":0`},
}

var (
	fractions = regexp.MustCompile(`-?[0-9]+\.[0-9]{4,}(e-?[0-9]+)?`)
	ofChoice  = regexp.MustCompile(`"index":([0-9]+)`)
)

// normal returns an answer without what differs from one to an equal one: ids, times, the last
// digits of numbers, and in which order a stream's choices take turns.
func normal(answer string) string {
	var b strings.Builder
	for line := range strings.Lines(answer) { // package regexp is much faster on short texts
		for _, p := range passing {
			if strings.Contains(line, p.sign) {
				line = p.pattern.ReplaceAllString(line, p.with)
			}
		}
		if strings.Contains(line, ".") {
			line = fractions.ReplaceAllStringFunc(line, func(s string) string {
				v, _ := strconv.ParseFloat(s, 64)
				return strconv.FormatFloat(v, 'g', 3, 64)
			})
		}
		b.WriteString(line)
	}
	answer = b.String()
	if !strings.HasPrefix(answer, "data: ") {
		return answer
	}
	events := strings.Split(answer, "\n\n")
	choice := func(event string) int {
		if m := ofChoice.FindStringSubmatch(event); m != nil && (strings.Contains(event, `"choices":[{`) || strings.HasPrefix(event, `data: {"index":`)) {
			n, _ := strconv.Atoi(m[1])
			return n
		}
		return len(answer)
	}
	slices.SortStableFunc(events, func(a, b string) int { return choice(a) - choice(b) })
	return strings.Join(events, "\n\n")
}

// streamed returns a body as it is, streamed, and streamed with its usage.
func streamed(path, body string) []exchange {
	list := []exchange{{"", path, body}}
	for _, more := range []string{`,"stream":true`, `,"stream":true,"stream_options":{"include_usage":true}`} {
		list = append(list, exchange{"", path, strings.TrimSuffix(body, "}") + more + "}"})
	}
	if strings.HasPrefix(path, "/api/") {
		list = append(list, exchange{"", path, strings.TrimSuffix(body, "}") + `,"stream":false}`})
	}
	return list
}

// generating are the endpoints that generate, each with the beginning of a request.
var generating = []struct{ path, body, most string }{
	{"/v1/chat/completions", `{"model":"toy","seed":1,"messages":[{"role":"user","content":"Hi"}]`, "max_tokens"},
	{"/v1/completions", `{"model":"toy","seed":1,"prompt":"Once upon"`, "max_tokens"},
	{"/infill", `{"seed":1,"input_prefix":"a","input_suffix":"b"`, "n_predict"},
	{"/v1/messages", `{"model":"toy","temperature":0,"messages":[{"role":"user","content":"Hi"}],"max_tokens":9`, ""},
	{"/v1/responses", `{"model":"toy","temperature":0,"input":"Hi"`, "max_output_tokens"},
	{"/api/chat", `{"model":"toy:latest","messages":[{"role":"user","content":"Hi"}]`, ""},
	{"/api/generate", `{"model":"toy","prompt":"Hi"`, ""},
	{"/completion", `{"seed":1,"prompt":"Once upon"`, "n_predict"},
}

const (
	chatTool      = `{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}`
	flatTool      = `{"type":"function","name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}`
	claudeTool    = `{"name":"get_weather","input_schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}`
	citySchema    = `{"type":"object","properties":{"city":{"enum":["Rome","Bonn"]}},"required":["city"],"additionalProperties":false}`
	ollamaOptions = `,"options":{"seed":3,"num_predict":9}`
)

// features are fields that a generating endpoint is asked with; of those that no path has,
// all are asked. A call that is forced has no end of its own.
var features = map[string][]string{
	"/v1/chat/completions": {
		"", `,"n":2`, `,"logprobs":true`, `,"logprobs":true,"top_logprobs":2,"n":2`, `,"stop":["e"," a"]`, `,"temperature":0`, `,"temperature":0.5,"top_p":0.5,"top_k":5`,
		`,"tools":[` + chatTool + `]`, `,"tools":[` + chatTool + `],"tool_choice":"required","max_tokens":99`, `,"tools":[` + chatTool + `],"tool_choice":"none"`, `,"tools":[` + chatTool + `],"parallel_tool_calls":false,"logprobs":true`,
		`,"tools":[` + chatTool + `],"tool_choice":{"type":"function","function":{"name":"get_weather"}},"max_tokens":99`,
		`,"response_format":{"type":"json_object"}`, `,"response_format":{"type":"json_schema","json_schema":{"name":"c","schema":` + citySchema + `}}`, `,"guided_choice":["yes","no"]`, `,"guided_regex":"[a-c]+"`, `,"return_token_ids":true`, `,"cache_salt":"a"`, `,"repetition_detection":{"max_pattern_size":4,"min_pattern_size":1,"min_count":9}`,
		`,"grammar":"root ::= \"a\" | \"b\""`, `,"reasoning_format":"none"`, `,"include_reasoning":false`, `,"receipt":true`, `,"add_generation_prompt":false`, `,"echo":true`,
		`,"test_time_scaling":"sc4"`, `,"test_time_scaling":"bon4","n":2`, `,"test_time_scaling":"beam4x2"`, `,"test_time_scaling":"dvts4x2"`, `,"test_time_scaling":"auto4"`,
		`,"test_time_scaling":"asc4;adaptive.first=2"`, `,"test_time_scaling":"deepconf4;include=candidates"`, `,"test_time_scaling":{"method":"particle_filtering","n":4,"verifier":"logprob","particles":{"iterations":2}}`, `,"test_time_scaling":"beam4x2;verifier=logprob"`,
		`,"test_time_scaling":{"method":"best_of_n","n":3,"include":["candidates","steps","tree"]}`, `,"test_time_scaling":"sc4;stream_mode=candidates"`, `,"test_time_scaling":"sc4;stream_mode=reasoning"`, `,"test_time_scaling":"beam4x2;stream_mode=reasoning"`,
		`,"test_time_scaling":"sc1"`, `,"test_time_scaling":"none"`, `,"metadata":{"test_time_scaling":"sc2"}`, `,"min_tokens":4`, `,"bad_words":["the"]`, `,"logit_bias":{"5":10}`, `,"thinking_token_budget":2`,
	},
	"/v1/completions": {
		"", `,"n":2`, `,"logprobs":2`, `,"logprobs":0,"echo":true`, `,"echo":true`, `,"echo":true,"max_tokens":0,"logprobs":1`, `,"best_of":3,"n":2`, `,"return_tokens":true`, `,"logprobs":1,"return_tokens":true`, `,"stop":"e"`,
		`,"guided_json":` + citySchema, `,"test_time_scaling":"sc3"`, `,"suffix":"x"`, `,"add_special_tokens":false`, `,"candidates":[{"candidate":0,"tokens":[5,6]},{"candidate":3,"tokens":[]}]`,
	},
	"/infill":       {"", `,"prompt":"c"`, `,"input_extra":[{"filename":"f.go","text":"package f"}]`, `,"stop":["e"]`, `,"n_predict":0`},
	"/v1/messages":  {"", `,"system":"Be brief."`, `,"stop_sequences":["e"]`, `,"tools":[` + claudeTool + `]`, `,"tools":[` + claudeTool + `],"tool_choice":{"type":"any"}`, `,"thinking":{"type":"enabled","budget_tokens":5}`, `,"output_format":{"type":"json_schema","schema":` + citySchema + `}`, `,"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}`},
	"/v1/responses": {"", `,"store":false`, `,"instructions":"Be brief."`, `,"tools":[` + flatTool + `]`, `,"tools":[` + flatTool + `],"tool_choice":"required","max_output_tokens":99`, `,"tools":[{"type":"custom","name":"get_weather"}]`, `,"include":["reasoning.encrypted_content"]`, `,"include":["message.output_text.logprobs"],"top_logprobs":1`, `,"text":{"format":{"type":"json_schema","name":"c","schema":` + citySchema + `}}`, `,"reasoning":{"effort":"low"}`, `,"metadata":{"a":"b"}`},
	"/api/chat":     {ollamaOptions, ollamaOptions + `,"format":"json"`, ollamaOptions + `,"tools":[` + chatTool + `]`, ollamaOptions + `,"think":false`, ollamaOptions + `,"logprobs":true,"top_logprobs":1`},
	"/completion":   {"", `,"n_cmpl":2`, `,"n_probs":2`, `,"return_tokens":true`, `,"stop":["e"]`, `,"samplers":["top_k"]`, `,"response_fields":["content"]`, `,"json_schema":` + citySchema, `,"cache_salt":"a"`},
	"/api/generate": {ollamaOptions, ollamaOptions + `,"raw":true`, ollamaOptions + `,"suffix":"x"`, ollamaOptions + `,"format":` + citySchema, ollamaOptions + `,"system":"Be brief.","think":true`},
}

// wrong returns fields with what no request may have, and with what some may.
func wrong(path, begin string) (list []exchange) {
	names := strings.Fields(`model messages prompt input stream stream_options n seed temperature top_p top_k min_p max_tokens max_completion_tokens max_output_tokens n_predict num_predict stop stop_sequences
		logprobs top_logprobs logit_bias presence_penalty frequency_penalty repetition_penalty tools tool_choice parallel_tool_calls functions response_format guided_json guided_regex guided_choice grammar json_schema
		structured_outputs text format options think thinking reasoning reasoning_effort reasoning_format include_reasoning metadata user store previous_response_id include truncation instructions system suffix echo best_of
		receipt test_time_scaling min_tokens bad_words allowed_token_ids add_generation_prompt continue_final_message chat_template_kwargs candidates return_tokens input_extra input_prefix context_management output_config
		output_format template raw context images keep_alive modalities audio background container thread service_tier frobnicate`)
	values := []string{`7`, `"x"`, `["x",1]`, `{"type":"x"}`, `true`, `null`}
	if !slices.ContainsFunc(generating, func(e struct{ path, body, most string }) bool { return e.path == path }) {
		values = values[:2]
	}
	for _, name := range names {
		if strings.Contains(begin, `"`+name+`":`) {
			begin := regexp.MustCompile(`,?"`+name+`":("[^"]*"|\[[^\]]*\]|[0-9]+)`).ReplaceAllString(begin, "")
			begin = strings.Replace(begin, "{,", "{", 1)
			list = append(list, exchange{"", path, strings.TrimSuffix(begin, "{") + "}"})
		}
		for _, v := range values {
			if name == "stream" && v == "true" {
				continue
			}
			list = append(list, exchange{"", path, begin + `,"` + name + `":` + v + `}`})
		}
	}
	for _, body := range []string{``, `{`, `[]`, `"x"`, `{}`, `{"model":"nobody"}`, `{"model":"toy+sc4+sc4"}`, `{"model":3}`, begin + `,}`} {
		list = append(list, exchange{"", path, body})
	}
	return list
}

// few bounds the tokens of a request that does not do so itself.
func few(path, most string, fields string) string {
	if most == "" || strings.Contains(fields, `"`+most+`"`) || path == "/v1/responses" && strings.Contains(fields, "tools") {
		return fields
	}
	return fields + `,"` + most + `":9`
}

func TestEveryAnswerHasTheBytesThatItHad(t *testing.T) {
	sweep.NoRace(t)
	a, hear := &album{answers: map[string]*strings.Builder{}}, &heard{}
	thought := "{# <think></think> <tool_call> #}" + template.ChatML
	worlds := []struct{ name, template, text string }{
		{"babble", "", ""},
		{"speech", "", "Grüße, 2 otters: 🦦🦦.\nAnswer: 4"},
		{"thought", thought, "<think>\nHmm, the\n\n</think>\n\nIt is 4.\nAnswer: 4"},
		{"call", thought, "I look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Bonn\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>"},
	}
	if *updateBytes && sweep.Quick() {
		t.Fatal("-update wants LUTRA_TESTS=all")
	}
	for _, w := range worlds[:sweep.Cases(2, len(worlds))] {
		m := &toy.Model{}
		if w.text != "" {
			m = says(t, w.text)
		}
		f := start(t, m, nil)
		hear.listen(f)
		if w.template != "" {
			f.withTemplate(w.template)
		}
		for _, e := range generating {
			for _, fields := range features[e.path] {
				if w.text == "" {
					fields = few(e.path, e.most, fields)
				} else if strings.Contains(fields, "bad_words") || e.most == "n_predict" {
					continue
				}
				a.play(f, w.name+" "+e.path, streamed(e.path, e.body+fields+"}")...)
			}
		}
		if w.name == "speech" { // which no seed changes
			for _, e := range generating {
				a.play(f, "wrong "+e.path, wrong(e.path, few(e.path, e.most, e.body)+map[bool]string{true: ollamaOptions}[strings.HasPrefix(e.path, "/api/")])...)
			}
			a.others(f)
		}
		a.stored(f, w.name)
	}
	fill, _ := infilling(t, "func main() {}")
	hear.listen(fill)
	for _, fields := range features["/infill"] {
		a.play(fill, "infill", streamed("/infill", generating[2].body+fields+"}")...)
	}
	a.play(fill, "infill", streamed("/v1/completions", `{"prompt":"a","suffix":"b","seed":1}`)...)
	a.play(fill, "infill", streamed("/api/generate", `{"model":"toy","prompt":"a","suffix":"b"}`)...)
	r := reading(t)
	hear.listen(r)
	a.read(r)
	if os.Getenv("LUTRA_BYTES") != "" {
		a.embedded(t, real(t, nil))
	}
	a.compare(t)
	hear.compare(t)
}

// others plays what does not generate.
func (a *album) others(f *fixture) {
	for _, path := range []string{"/tokenize", "/detokenize", "/apply-template", "/v1/messages/count_tokens", "/v1/responses/input_tokens", "/v1/responses/compact", "/api/show", "/v1/chat/completions/render", "/v1/completions/render"} {
		begin := map[string]string{"/tokenize": `{"prompt":"Hi you"`, "/detokenize": `{"tokens":[5,6,7]`, "/api/show": `{"model":"toy"`, "/v1/completions/render": `{"prompt":"Hi","seed":1`,
			"/v1/responses/input_tokens": `{"input":"Hi"`, "/v1/responses/compact": `{"model":"toy","input":"Hi"`}[path]
		if begin == "" {
			begin = `{"messages":[{"role":"user","content":"Hi"}]`
			if strings.HasSuffix(path, "render") {
				begin += `,"seed":1,"temperature":0.5`
			}
		}
		a.play(f, "other "+path, exchange{"", path, begin + "}"})
		if path != "/v1/responses/compact" {
			a.play(f, "other "+path, wrong(path, begin)...)
		}
	}
	a.play(f, "tokens", exchange{"", "/tokenize", `{"content":"Hi €","with_pieces":true}`}, exchange{"", "/tokenize", `{"prompt":"Hi €","return_token_strs":true}`}, exchange{"", "/tokenize", `{"messages":[{"role":"user","content":"Hi"}]}`},
		exchange{"GET", "/tokenizer_info", ""}, exchange{"GET", "/tokenizer_info?model=x", ""})
	for _, name := range []string{"lists", "anthropic's lists"} {
		a.play(f, name, exchange{"GET", "/v1/models", ""}, exchange{"GET", "/v1/models/toy", ""}, exchange{"GET", "/v1/models/gpt-4o", ""}, exchange{"GET", "/v1/models/nobody", ""}, exchange{"GET", "/nowhere", ""}, exchange{"", "/v1/models", "{}"})
	}
	a.play(f, "routes", exchange{"GET", "/api/tags", ""}, exchange{"GET", "/api/ps", ""}, exchange{"GET", "/api/version", ""}, exchange{"", "/api/pull", `{"name":"x"}`}, exchange{"DELETE", "/api/delete", ""}, exchange{"GET", "/api/none", ""},
		exchange{"GET", "/v1/messages", ""}, exchange{"GET", "/healthz", ""}, exchange{"GET", "/readyz", ""}, exchange{"GET", "/api/hello", ""}, exchange{"GET", "/v1/chat/completions", ""}, exchange{"PUT", "/api/chat", "{}"})
	a.play(f, "llama.cpp's", exchange{"", "/slots/0?action=save", `{"filename":"x"}`}, exchange{"", "/models/load", `{"model":"nobody"}`}, exchange{"", "/models/unload", `{"model":"nobody"}`}, exchange{"", "/lora-adapters", `[{"id":0,"scale":1}]`},
		exchange{"GET", "/slots?model=nobody", ""}, exchange{"GET", "/props?model=nobody", ""}, exchange{"GET", "/health", ""})
	a.play(f, "jobs", exchange{"", "/v1/batches", `{"input_file_id":"x","endpoint":"/v1/completions","completion_window":"24h"}`}, exchange{"", "/v1/messages/batches", `{"requests":[]}`})
	a.play(f, "prompts", streamed("/v1/completions", `{"seed":1,"n":2,"max_tokens":5,"prompt":["a b","c d"]}`)...)
	a.play(f, "prompts", exchange{"", "/v1/completions", `{"seed":1,"max_tokens":5,"prompt":["a b","c d"],"test_time_scaling":"sc2"}`}, exchange{"", "/v1/completions", `{"prompt":[[5,6],[7]],"seed":2,"echo":true,"max_tokens":2}`}, exchange{"", "/v1/completions/render", `{"prompt":["a","b"],"seed":2}`})
	long := strings.Repeat("word ", 4000)
	for _, e := range generating {
		a.play(f, "long", exchange{"", e.path, strings.Replace(strings.Replace(e.body, "Hi", long, 1), "Once", long, 1) + "}"})
	}
	for _, e := range generating {
		a.play(f, "judged", exchange{"", e.path, e.body + `,"test_time_scaling":"bon4;verifier=nobody"}`}, exchange{"", e.path, e.body + `,"test_time_scaling":{"method":"beam_search","n":99999}}`})
	}
}

// stored plays what is asked of responses that are kept.
func (a *album) stored(f *fixture, name string) {
	ids := regexp.MustCompile(`"id":"(resp_[^"]*)"`)
	for _, more := range []string{``, `,"stream":true`, `,"stream":true,"include":["message.output_text.logprobs"]`} {
		_, _, answer := f.post("/v1/responses", `{"model":"toy","temperature":0,"input":"Hi","max_output_tokens":40,"tools":[`+flatTool+`]`+more+`}`)
		id := ids.FindStringSubmatch(string(answer))[1]
		path := "/v1/responses/" + id
		a.play(f, "stored by "+name, exchange{"GET", path, ""}, exchange{"GET", path + "?stream=true", ""}, exchange{"GET", path + "?stream=true&starting_after=4", ""}, exchange{"GET", path + "/input_items", ""}, exchange{"GET", path + "/input_items?order=up", ""},
			exchange{"", path + "/cancel", ""}, exchange{"", "/v1/responses", `{"temperature":0,"input":"And?","max_output_tokens":9,"previous_response_id":"` + id + `"}`}, exchange{"DELETE", path, ""}, exchange{"GET", path, ""}, exchange{"DELETE", path, ""})
	}
	a.play(f, "stored by "+name, exchange{"GET", "/v1/responses/x?stream=maybe", ""}, exchange{"GET", "/v1/responses/x?starting_after=2", ""}, exchange{"GET", "/v1/responses/x/input_items?limit=x", ""})
}

// read plays what models are asked that write nothing.
func (a *album) read(f *fixture) {
	for _, e := range []exchange{
		{"", "/v1/embeddings", `{"input":["a b","c"]`}, {"", "/api/embed", `{"model":"vectors","input":"a b"`}, {"", "/api/embeddings", `{"model":"vectors","prompt":"a b"`},
		{"", "/v1/rerank", `{"query":"a","documents":["b","c d e"],"return_documents":true`}, {"", "/v1/score", `{"text_1":"a","text_2":["b","c d"]`}, {"", "/v1/rewards", `{"prompt":"a","responses":["b"]`},
	} {
		a.play(f, "reading "+e.path, exchange{"", e.path, e.body + "}"}, exchange{"", e.path, e.body + `,"encoding_format":"base64","dimensions":2,"top_n":1}`})
		for _, name := range []string{"input", "prompt", "query", "documents", "text_1", "text_2", "top_n", "dimensions", "encoding_format", "model", "responses", "aggregate", "user", "truncate", "options"} {
			begin := regexp.MustCompile(`"`+name+`":("[^"]*"|\[[^\]]*\]),?`).ReplaceAllString(e.body, "")
			begin = strings.TrimSuffix(begin, ",")
			for _, v := range []string{`7`, `"x"`, `""`, `[]`, `[7]`, `[""]`, `{}`, `"toy"`, `"ranker:latest"`} {
				a.play(f, "reading "+e.path, exchange{"", e.path, strings.Replace(begin+`,"`+name+`":`+v+`}`, "{,", "{", 1)})
			}
		}
	}
	a.play(f, "reading lists", exchange{"GET", "/v1/models", ""}, exchange{"GET", "/api/tags", ""}, exchange{"", "/api/show", `{"name":"vectors"}`}, exchange{"", "/v1/completions", `{"model":"ranker","prompt":"a"}`})
}

// embedded plays searches with a verifier, receipts and rewards.
func (a *album) embedded(t *testing.T, f *fixture) {
	p := problems(t, 1)[0]
	said := string(must(json.Marshal(p.Question)))
	for _, fields := range []string{``, `,"receipt":true`, `,"receipt":"hash","n":2`, `,"test_time_scaling":"bon4"`, `,"test_time_scaling":"beam4x2"`, `,"test_time_scaling":"dvts4x2","receipt":true`, `,"test_time_scaling":"auto8"`,
		`,"test_time_scaling":{"method":"beam_search","n":4,"include":["candidates","steps","tree"]}`, `,"test_time_scaling":"bon4;stream_mode=reasoning"`, `,"test_time_scaling":"beam4x2;stream_mode=reasoning"`} {
		a.play(f, "embedded", streamed("/v1/chat/completions", `{"model":"lutra-tiny-s","seed":7,"max_tokens":200,"messages":[{"role":"user","content":`+said+`}]`+fields+`}`)...)
	}
	for _, path := range []string{"/v1/messages", "/v1/responses", "/api/chat"} {
		a.play(f, "embedded", streamed(path, `{"model":"lutra-tiny-s","seed":7,"max_tokens":40,"temperature":0,"test_time_scaling":{"method":"best_of_n","n":2,"temperature":0.5},"options":{"seed":1},"input":`+said+`,"messages":[{"role":"user","content":`+said+`}]}`)...)
	}
	a.play(f, "embedded", exchange{"", "/v1/rewards", rewardBody(p, `,"model":"lutra-tiny-prm"`, "1 + 1 = 2\nAnswer: 2")}, exchange{"", "/v1/rewards", rewardBody(p, `,"aggregate":"x"`, "2")})
}

// compare holds the answers against the hashes in bytesFile.
func (a *album) compare(t *testing.T) {
	folder := os.Getenv("LUTRA_BYTES")
	var now strings.Builder
	for _, name := range a.names {
		answers := a.answers[name].String()
		if folder != "" {
			if err := os.WriteFile(filepath.Join(folder, strings.ReplaceAll(name, "/", "_")), []byte(answers), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if name != "embedded" {
			fmt.Fprintf(&now, "%x %s\n", sha256.Sum256([]byte(answers)), name)
		}
	}
	if *updateBytes {
		if err := os.WriteFile(bytesFile, []byte(now.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(bytesFile)
	if err != nil {
		t.Fatal(err)
	}
	old := slices.Collect(strings.Lines(string(want)))
	for line := range strings.Lines(now.String()) {
		if !slices.Contains(old, line) {
			t.Errorf("the answers have changed: %s (compare those of before and after with LUTRA_BYTES)", line)
		}
	}
	if n := strings.Count(now.String(), "\n"); n != len(old) && !sweep.Quick() {
		t.Errorf("%d lists of answers, want %d", n, len(old))
	}
}

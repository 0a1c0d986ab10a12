package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/toy"
)

// readsTools is a template that shows the model its tools as JSON.
const readsTools = `{% if tools %}{{ '<|im_start|>system\n' }}{% for t in tools %}{{ t | tojson }}{{ '\n' }}{% endfor %}{{ '<|im_end|>\n' }}{% endif %}` + template.ChatML

func TestAToolReadsTheSameThroughEveryAPI(t *testing.T) {
	const schema = `{"type":"object","required":["city"],"properties":{"city":{"type":"string","description":"Where <it> is"},"a":{"type":"integer"}}}`
	const nothing = `{"type":"object","properties":{}}`
	chat := func(rest string) string { return `{"type":"function","function":{` + rest + `}}` }
	flat := func(rest string) string { return `{"type":"function",` + rest + `}` }
	type request struct{ path, tool string }
	for name, same := range map[string][]request{
		"a description": {
			{"/v1/chat/completions", chat(`"name":"f","description":"Weather & \"more\".","parameters":` + schema)},
			{"/v1/chat/completions", `{"function":{"strict":false,"parameters":` + schema + `,"description":"Weather & \"more\".","name":"f"},"type":"function"}`},
			{"/v1/responses", flat(`"name":"f","description":"Weather & \"more\".","parameters":` + schema + `,"strict":true`)},
			{"/v1/responses", `{"strict":null,"parameters":` + schema + `,"description":"Weather & \"more\".","name":"f","type":"function"}`},
			{"/v1/messages", `{"name":"f","description":"Weather & \"more\".","input_schema":` + schema + `}`},
			{"/v1/messages", `{"type":"custom","name":"f","description":"Weather & \"more\".","input_schema":` + schema + `,"strict":true}`},
			{"/api/chat", chat(`"name":"f","description":"Weather & \"more\".","parameters":` + schema)},
		},
		"no description": {
			{"/v1/chat/completions", chat(`"name":"f","parameters":` + nothing)},
			{"/v1/chat/completions", chat(`"name":"f","description":"","parameters":` + nothing + `,"strict":true`)},
			{"/v1/chat/completions", chat(`"name":"f","description":null,"parameters":` + nothing + `,"strict":null`)},
			{"/v1/responses", flat(`"name":"f","description":"","parameters":` + nothing)},
			{"/v1/responses", flat(`"name":"f","description":null,"parameters":` + nothing + `,"strict":false`)},
			{"/v1/messages", `{"name":"f","description":"","input_schema":` + nothing + `}`},
			{"/v1/messages", `{"name":"f","input_schema":` + nothing + `}`},
			{"/api/chat", chat(`"name":"f","description":"","parameters":` + nothing)},
		},
		"no parameters": {
			{"/v1/chat/completions", chat(`"name":"f"`)},
			{"/v1/chat/completions", chat(`"name":"f","parameters":null`)},
			{"/v1/responses", flat(`"name":"f","parameters":null,"strict":true`)},
			{"/v1/responses", flat(`"name":"f"`)},
			{"/api/chat", chat(`"name":"f"`)},
		},
	} {
		for _, source := range []string{readsTools, template.ChatML} {
			var mu sync.Mutex
			var read string // by the model, at its first token
			tok := words()
			end, _ := tok.EOS()
			f := start(t, &toy.Model{Logits: func(tokens []int32, row []float32) {
				mu.Lock()
				defer mu.Unlock()
				if clear(row); read == "" {
					read = tok.Decode(tokens, true)
				}
				row[end] = 50
			}}, nil)
			f.withTemplate(source)
			want := ""
			for _, r := range same {
				mu.Lock()
				read = ""
				mu.Unlock()
				input := `"messages":[{"role":"user","content":"Hi"}]`
				if r.path == "/v1/responses" {
					input = `"input":"Hi"`
				}
				var got struct {
					Usage struct {
						Prompt int `json:"prompt_tokens"`
						Input  int `json:"input_tokens"`
						Read   int `json:"cache_read_input_tokens"`
					}
					Ollama int `json:"prompt_eval_count"`
				}
				answer := f.sent(r.path, fmt.Sprintf(`{"model":"toy",%s,"tools":[%s],"max_tokens":1,"stream":false}`, input, r.tool))
				if err := json.Unmarshal(answer, &got); err != nil {
					t.Fatal(err)
				}
				n := got.Usage.Prompt + got.Usage.Input + got.Usage.Read + got.Ollama
				mu.Lock()
				reads := fmt.Sprintf("%d tokens: %s", n, read)
				mu.Unlock()
				if want == "" {
					want = reads
				}
				if reads != want || !strings.Contains(reads, `"name":`) {
					t.Errorf("%s, %s %s: the model reads\n%s\nnot\n%s", name, r.path, r.tool, reads, want)
				}
			}
		}
	}
}

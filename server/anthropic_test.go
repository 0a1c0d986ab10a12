package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// claudeMessage is a message of Anthropic's API, no more and no less.
type claudeMessage struct {
	ID, Type, Role, Model string
	Content               []claudeBlock
	StopReason            *string `json:"stop_reason"`
	StopSequence          *string `json:"stop_sequence"`
	Usage                 claudeUsage
}

type claudeBlock struct {
	Type      string
	Text      string
	Thinking  string
	Signature string
	ID, Name  string
	Input     json.RawMessage
}

type claudeUsage struct {
	Input         int `json:"input_tokens"`
	CacheCreation int `json:"cache_creation_input_tokens"`
	CacheRead     int `json:"cache_read_input_tokens"`
	Output        int `json:"output_tokens"`
}

// claudeBody returns a request with these further fields.
func claudeBody(fields string) string {
	return `{"model":"toy","max_tokens":200,"messages":[{"role":"user","content":"Hi"}]` + fields + `}`
}

// said returns a message's content in short.
func (m *claudeMessage) said() string {
	var b strings.Builder
	for _, c := range m.Content {
		switch c.Type {
		case "text":
			fmt.Fprintf(&b, "text %q ", c.Text)
		case "thinking":
			fmt.Fprintf(&b, "thinking %q ", c.Thinking)
		case "tool_use":
			var input bytes.Buffer
			_ = json.Compact(&input, c.Input)
			fmt.Fprintf(&b, "%s %s ", c.Name, input.Bytes())
		}
	}
	return b.String() + *m.StopReason
}

// claudeStream puts a stream's events together, checking their order.
func claudeStream(t *testing.T, stream []byte) *claudeMessage {
	t.Helper()
	var m *claudeMessage
	var input string
	open := false
	for e := range strings.SplitSeq(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
		head, data, _ := strings.Cut(e, "\ndata: ")
		var ev struct {
			Type    string
			Message *claudeMessage
			Index   int
			Block   *claudeBlock `json:"content_block"`
			Delta   struct {
				Type, Text, Thinking string
				JSON                 string  `json:"partial_json"`
				StopReason           *string `json:"stop_reason"`
				StopSequence         *string `json:"stop_sequence"`
			}
			Usage *claudeUsage
		}
		if err := json.Unmarshal([]byte(data), &ev); err != nil || head != "event: "+ev.Type {
			t.Fatalf("event %q: %v", e, err)
		}
		if ev.Type != "message_start" && m == nil {
			t.Fatalf("%s comes before the message", ev.Type)
		}
		switch ev.Type {
		case "message_start":
			m = ev.Message
		case "content_block_start":
			if open || ev.Index != len(m.Content) {
				t.Fatalf("block %d begins, an earlier one is open: %t", ev.Index, open)
			}
			open, input = true, ""
			m.Content = append(m.Content, *ev.Block)
		case "content_block_delta":
			b := &m.Content[ev.Index]
			if !open || ev.Index != len(m.Content)-1 {
				t.Fatalf("block %d goes on", ev.Index)
			}
			b.Text, b.Thinking, input = b.Text+ev.Delta.Text, b.Thinking+ev.Delta.Thinking, input+ev.Delta.JSON
		case "content_block_stop":
			if open = false; input != "" {
				m.Content[ev.Index].Input = json.RawMessage(input)
			}
		case "message_delta":
			m.StopReason, m.StopSequence, m.Usage = ev.Delta.StopReason, ev.Delta.StopSequence, *ev.Usage
		case "message_stop":
			if open {
				t.Fatal("a block is open at the end")
			}
		default:
			t.Fatalf("event %s", ev.Type)
		}
	}
	return m
}

func TestAnthropicsClientsGetMessagesWholeAndStreamed(t *testing.T) {
	const tools = `,"tools":[{"name":"get_weather","description":"Of a city.","input_schema":{"type":"object","properties":{"city":{"type":"string"}}}}]`
	for _, c := range []struct{ name, says, fields, want string }{
		{"text", "Twelve apples.", "", `text "Twelve apples." end_turn`},
		{"a stop sequence", "Twelve apples.", `,"stop_sequences":["app"]`, `text "Twelve " stop_sequence`},
		{"thinking", thoughtful, "", `thinking "What is 3*4?" text "Answer: 12" end_turn`},
		{"a call", "I look. " + toolcall.Hermes.Write("get_weather", inBerlin), tools, `text "I look." get_weather {"city":"Berlin"} tool_use`},
		{"two calls", toolcall.Hermes.Write("get_weather", inBerlin) + toolcall.Hermes.Write("get_weather", "{}"), tools, `get_weather {"city":"Berlin"} get_weather {} tool_use`},
		{"one call", toolcall.Hermes.Write("get_weather", inBerlin) + toolcall.Hermes.Write("get_weather", "{}"), tools + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, `get_weather {"city":"Berlin"} tool_use`},
		{"the call that must be", toolcall.Hermes.Begin("get_weather") + inBerlin + "}\n</tool_call>", tools + `,"tool_choice":{"type":"any"}`, `get_weather {"city":"Berlin"} tool_use`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := start(t, says(t, c.says), nil)
			f.withTemplate(template.ChatML)
			_, _, answer := f.post("/v1/messages", claudeBody(c.fields))
			whole := strict[claudeMessage](t, answer)
			if got := whole.said(); got != c.want || whole.Type != "message" || whole.Role != "assistant" || whole.Model != "toy" {
				t.Errorf("%s, want %s", answer, c.want)
			}
			_, _, answer = f.post("/v1/messages", claudeBody(c.fields+`,"stream":true`))
			streamed := claudeStream(t, answer)
			if got := streamed.said(); got != c.want {
				t.Errorf("streamed: %s, want %s", got, c.want)
			}
			if in := whole.Usage.Input + whole.Usage.CacheRead; in != streamed.Usage.Input+streamed.Usage.CacheRead || in == 0 || whole.Usage.Output != streamed.Usage.Output || whole.Usage.Output == 0 {
				t.Errorf("usage %+v, streamed %+v", whole.Usage, streamed.Usage)
			}
			if wantSeq := strings.Contains(c.want, "stop_sequence"); wantSeq != (whole.StopSequence != nil) || wantSeq && *streamed.StopSequence != "app" {
				t.Errorf("stop sequences %v, %v", whole.StopSequence, streamed.StopSequence)
			}
		})
	}
}

func TestAnthropicsMessagesReachTheTemplate(t *testing.T) {
	f := start(t, says(t, "Hi"), nil)
	f.withTemplate(`{% for m in messages %}[{{ m.role }}]{{ m.reasoning_content or '' }}{{ m.content or '' }}{% for c in m.tool_calls or [] %}<{{ c.function.name }} {{ c.function.arguments | tojson }}>{% endfor %}{% endfor %}{% if enable_thinking is defined %}{{ enable_thinking }}{% endif %}`)
	const history = `{"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"Weather?"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"x"},{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"f","input":{"x":1}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"Rain"}]},{"type":"text","text":"And?"}]}],"thinking":{"type":"disabled"}}`
	_, _, answer := f.post("/v1/messages/count_tokens", history)
	want := len(f.model.Tokenizer.Encode(nil, `[system]Be brief.[user]Weather?[assistant]Hm.I look.<f {"x": 1}>[tool]Rain[user]And?False`, tokenizer.Options{ParseSpecial: true}))
	if got := string(answer); got != fmt.Sprintf("{\"input_tokens\":%d}\n", want) {
		t.Errorf("count_tokens: %s, want %d", got, want)
	}
}

// The runner of tools of Anthropic's client asks for a thread by itself, and asks again
// without one where an error has these details alone.
func TestAnthropicsRunnerOfToolsIsToldToGoOnWithoutAThread(t *testing.T) {
	f := start(t, says(t, "Hi"), nil)
	status, _, answer := f.post("/v1/messages", claudeBody(`,"thread":{"type":"create"}`))
	if want := `"details":{"error_code":"thread_unsupported_request","unsupported":["thread"]}`; status != 400 || !strings.Contains(string(answer), want) {
		t.Errorf("a thread: %d %s, want %s", status, answer, want)
	}
	if _, _, answer := f.post("/v1/messages", claudeBody(`,"container":"c"`)); strings.Contains(string(answer), "details") {
		t.Errorf("a container: %s", answer)
	}
}

func TestAnthropicsClientsGetTheirOwnErrors(t *testing.T) {
	f := start(t, says(t, "Hi"), func(o *Options) { o.APIKeys = []string{"a-secret-of-some-length"} })
	for _, c := range []struct{ body, key, kind, param string }{
		{claudeBody(""), "wrong", "authentication_error", ""},
		{claudeBody(`,"tools":[{"name":"f"}]`), "a-secret-of-some-length", "invalid_request_error", "tools[0].input_schema"},
		{`{"messages":[{"role":"user","content":"Hi"}]}`, "a-secret-of-some-length", "invalid_request_error", "max_tokens"},
		{`{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]}`, "a-secret-of-some-length", "invalid_request_error", "messages[0].content[0].type"},
		{`{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}`, "a-secret-of-some-length", "invalid_request_error", "messages"},
		{claudeBody(`,"mcp_servers":[{}]`), "a-secret-of-some-length", "invalid_request_error", "mcp_servers"},
		{claudeBody(`,"tool_choice":{"type":"any"}`), "a-secret-of-some-length", "invalid_request_error", "tool_choice"},
		{strings.Replace(claudeBody(""), "toy", "other", 1), "a-secret-of-some-length", "not_found_error", "model"},
	} {
		_, header, answer := f.do("POST", "/v1/messages", strings.NewReader(c.body), "X-Api-Key", c.key)
		got := strict[struct {
			Type  string
			Error struct{ Type, Message, Param string }
			ID    string `json:"request_id"`
		}](t, answer)
		if id := header.Get("Request-Id"); id == "" || got.ID != id {
			t.Errorf("%s: request id %q in the header, %q in the error", c.body, id, got.ID)
		}
		if got.Type != "error" || got.Error.Type != c.kind || got.Error.Param != c.param || got.Error.Message == "" {
			t.Errorf("%s: %s, want %s about %q", c.body, answer, c.kind, c.param)
		}
	}
}

func TestClaudeCodeIsToldInItsWordsThatAPromptIsTooLong(t *testing.T) {
	f := start(t, &toy.Model{Context: 64}, nil)
	status, _, answer := f.post("/v1/messages", `{"model":"toy","max_tokens":4,"messages":[{"role":"user","content":"`+strings.Repeat("long ", 100)+`"}]}`)
	var got struct {
		Error struct{ Type, Message string }
	}
	_ = json.Unmarshal(answer, &got)
	if said := regexp.MustCompile(`^prompt is too long: (\d+) tokens > 64 maximum$`).FindStringSubmatch(got.Error.Message); status != 400 || got.Error.Type != "invalid_request_error" || said == nil || len(said[1]) < 2 {
		t.Errorf("%d %s", status, answer)
	}
}

func TestACallThatTheBoundOfTokensCutsKeepsWhatItHasOfItsArguments(t *testing.T) {
	sweep.Full(t)
	f := start(t, says(t, toolcall.Hermes.Write("note", `{"path": "a.go", "text": "Twelve apples and twelve pears"}`)), nil)
	f.withTemplate(template.ChatML)
	for path, body := range map[string]string{
		"/v1/messages": claudeBody(`,"tools":[{"name":"note","input_schema":{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}}}}]`),
		"/api/chat":    `{"model":"toy","stream":false,"messages":[{"role":"user","content":"Hi"}],"options":{"num_predict":200},"tools":[{"type":"function","function":{"name":"note","parameters":{}}}]}`,
	} {
		cut := ""
		for bound := 10; bound < 60 && cut == ""; bound++ {
			_, _, answer := f.post(path, strings.ReplaceAll(body, "200", strconv.Itoa(bound)))
			if m := regexp.MustCompile(`"path": ?"a.go", ?"text": ?"(Twelve [^"]*)"`).FindSubmatch(answer); m != nil {
				cut = string(m[1])
			}
		}
		if cut == "" || strings.HasSuffix(cut, "pears") {
			t.Errorf("%s: a cut call has %q", path, cut)
		}
	}
}

package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// applied returns what the model would read.
func (f *fixture) applied(body string) (prompt string, dropped int) {
	f.t.Helper()
	status, _, answer := f.post("/apply-template", body)
	var got struct {
		Prompt     string
		Truncation struct {
			Dropped int `json:"dropped_messages"`
		}
	}
	if err := json.Unmarshal(answer, &got); err != nil || status != http.StatusOK {
		f.t.Fatalf("apply-template of %s: %d %s", body, status, answer)
	}
	return got.Prompt, got.Truncation.Dropped
}

// withTemplate makes f's model read conversations as this template writes them.
func (f *fixture) withTemplate(source string) {
	f.t.Helper()
	tmpl, err := template.Parse(source)
	if err != nil {
		f.t.Fatal(err)
	}
	f.model.Template = tmpl
}

const (
	asks     = `{"role":"user","content":"Hi"}`
	answers  = `{"role":"assistant","content":"Well, "}`
	noHeader = `,"add_generation_prompt":false`
	goOn     = `,"continue_final_message":true`
	newTurn  = `,"add_generation_prompt":true`
)

func TestTheLastMessageIsContinuedAsClientsOfOtherServersExpect(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	f.withTemplate(template.ChatML)
	const (
		asked  = "<|im_start|>user\nHi<|im_end|>\n"
		said   = asked + "<|im_start|>assistant\nWell, "
		header = "<|im_start|>assistant\n"
	)
	for _, c := range []struct{ messages, fields, want string }{
		{asks, "", asked + header},
		{asks, newTurn, asked + header},
		{asks, noHeader, asked},
		{asks, noHeader + goOn, strings.TrimSuffix(asked, "<|im_end|>\n")},
		{asks + "," + answers, "", said},              // llama.cpp
		{asks + "," + answers, noHeader + goOn, said}, // vLLM
		{asks + "," + answers, goOn, said},
		{asks + "," + answers, `,"continue_final_message":false`, said + "<|im_end|>\n" + header},
		{asks + "," + answers, newTurn, said + "<|im_end|>\n" + header}, // vLLM's default
		{asks + "," + answers, noHeader, said + "<|im_end|>\n"},
		{asks + `,{"role":"assistant","content":""}`, "", asked + header},
		{asks + `,{"role":"assistant"}`, "", asked + header},
		{asks + `,{"role":"assistant","content":[{"type":"text","text":"Well, "}]}`, "", said},
	} {
		if got, _ := f.applied(`{"messages":[` + c.messages + `]` + c.fields + `}`); got != c.want {
			t.Errorf("%s%s: %q, want %q", c.messages, c.fields, got, c.want)
		}
	}
	f.withTemplate(`{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}[end]{% endfor %}`)
	if got, _ := f.applied(`{"messages":[` + asks + "," + answers + `]}`); got != "[user]Hi[end][assistant]Well," {
		t.Errorf("where messages are trimmed: %q", got)
	}
	f.withTemplate(`{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}`)
	status, _, answer := f.post("/apply-template", `{"messages":[`+asks+","+answers+`]}`)
	wantError(t, "a template that hides the message", status, answer, 400, jsonread.CodeValue, "messages")
}

// halves divides what a model says where a token ends, near its middle.
func halves(t *testing.T, text string) (begun, rest string) {
	t.Helper()
	tok := words()
	ids := tok.Encode(nil, text, tokenizer.Options{})
	for n := len(ids) / 2; n > 0; n-- {
		begun = tok.Decode(ids[:n], false)
		if slices.Equal(tok.Encode(nil, begun, tokenizer.Options{}), ids[:n]) {
			return begun, strings.TrimPrefix(text, begun)
		}
	}
	t.Fatalf("%q cannot be divided", text)
	return "", ""
}

func TestAnAnswerHoldsTheContinuationAlone(t *testing.T) {
	const text = "Twelve apples. Answer: 12"
	begun, rest := halves(t, text)
	f := start(t, says(t, text), nil)
	body := func(fields string) string {
		return fmt.Sprintf(`{"messages":[%s,{"role":"assistant","content":%q}]%s}`, asks, begun, fields)
	}
	for _, c := range []struct{ fields, want string }{
		{"", rest},
		{noHeader + goOn, rest},
		{`,"echo":true`, text},
		{`,"n":2,"echo":true`, text},
		{`,"test_time_scaling":"sc4"`, rest},
		{`,"test_time_scaling":"bon2;stream_mode=final"`, rest},
		{`,"test_time_scaling":"beam4x2;verifier=logprob","echo":true`, text},
		{`,"reasoning_format":"none"`, rest},
	} {
		n := 1
		if strings.Contains(c.fields, `"n":2`) {
			n = 2
		}
		_, _, answer := f.post("/v1/chat/completions", body(c.fields))
		for _, ch := range readSearched(t, answer).Choices {
			if ch.Message.Content != c.want {
				t.Errorf("%s: %q, want %q", c.fields, ch.Message.Content, c.want)
			}
		}
		_, _, stream := f.post("/v1/chat/completions", body(c.fields+`,"stream":true`))
		texts := make([]string, n)
		for _, chunk := range parts[searched](t, stream) {
			for _, ch := range chunk.Choices {
				if ch.Delta.Content != nil {
					texts[ch.Index] += *ch.Delta.Content
				}
			}
		}
		if slices.ContainsFunc(texts, func(s string) bool { return s != c.want }) {
			t.Errorf("%s streams %q, want %q", c.fields, texts, c.want)
		}
	}
}

func TestAnAnswerBegunByTheClientIsReadAsAWhole(t *testing.T) {
	const text = "Answer: 12"
	begun, _ := halves(t, text)
	f := start(t, says(t, text), nil)
	body := fmt.Sprintf(`{"messages":[%s,{"role":"assistant","content":%q}],"test_time_scaling":"sc4"}`, asks, begun)
	_, _, answer := f.post("/v1/chat/completions", body)
	if c := readSearched(t, answer).Choices[0].Search; c.Answer == nil || *c.Answer != "12" {
		t.Errorf("the candidate is %+v, want the answer 12", c)
	}
}

const thinker = `{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
<think>{% endif %}`

func TestThinkingAndAnswersAreContinued(t *testing.T) {
	f := start(t, &toy.Model{Logits: nil}, nil)
	for _, c := range []struct {
		last               string // message
		fields             string
		says               string
		reasoning, content string
	}{
		{asks, "", "3*4=12</think> Answer: 12", "3*4=12", "Answer: 12"},
		{`{"role":"assistant","content":"","reasoning_content":"3*4"}`, "", " =12</think> Answer: 12", " =12", "Answer: 12"},
		{`{"role":"assistant","content":"Ans"}`, "", " wer: 12", "", " wer: 12"},
		{`{"role":"assistant","content":"Ans"}`, "", "<think>12", "", "<think>12"},
		{`{"role":"assistant","content":"Ans","reasoning_content":"3*4"}`, "", "wer: 12", "", "wer: 12"},
		{`{"role":"assistant","content":"<think>3*4"}`, "", " =12</think>Answer: 12", " =12", "Answer: 12"},
		{`{"role":"assistant","content":"<think>3*4"}`, `,"echo":true`, " =12</think>Answer: 12", "3*4 =12", "Answer: 12"},
		{`{"role":"assistant","content":"<think>3*4</think>Ans"}`, "", " wer: 12", "", " wer: 12"},
	} {
		f.withTemplate(thinker)
		body := `{"messages":[` + asks + "," + c.last + `]` + c.fields + `,"temperature":0,"seed":1`
		prompt, _ := f.applied(body + "}")
		m := followsWith(t, prompt, c.says)
		g := start(t, m, nil)
		g.withTemplate(thinker)
		for _, stream := range []bool{false, true} {
			_, _, answer := g.post("/v1/chat/completions", fmt.Sprintf("%s,\"stream\":%v}", body, stream))
			var got struct{ reasoning, content string }
			type part struct {
				Choices []struct {
					Message, Delta struct {
						Content   string
						Reasoning string `json:"reasoning_content"`
					}
				}
			}
			for _, p := range parts[part](t, answer) {
				ch := p.Choices[0]
				got.content += ch.Message.Content + ch.Delta.Content
				got.reasoning += ch.Message.Reasoning + ch.Delta.Reasoning
			}
			if got.reasoning != c.reasoning || got.content != c.content {
				t.Errorf("%s, stream %v: %+v, want %q and %q", c.last, stream, got, c.reasoning, c.content)
			}
		}
	}
}

// followsWith makes a toy model that follows a prompt with text and ends its turn.
func followsWith(t *testing.T, prompt, text string) *toy.Model {
	tok := words()
	n := len(tok.Encode(nil, prompt, tokenizer.Options{ParseSpecial: true}))
	end, _ := tok.EOS()
	reply := append(tok.Encode(nil, text, tokenizer.Options{}), end)
	return &toy.Model{Logits: func(tokens []int32, row []float32) {
		clear(row)
		if i := len(tokens) - n; i >= 0 && i < len(reply) {
			row[reply[i]] = 50
		}
	}}
}

func TestLegalMessagesDoNotFailInTheTemplate(t *testing.T) {
	const call = `"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]`
	const result = `{"role":"tool","tool_call_id":"a","content":"7"}`
	for _, tmpl := range []struct{ name, source string }{
		{"ours", template.ChatML},
		{"plain", template.Plain},
		{"one that adds contents", `{% for m in messages %}{{ m.role + ':' + m.content + ';' }}{% endfor %}`},
		{"one that knows null", `{% for m in messages %}{{ m.role }}:{% if m.role == 'assistant' and m.content is none %}{% for c in m.tool_calls %}{{ c.function.name }}{% endfor %}{% else %}{{ m.content }}{% endif %};{% endfor %}`},
	} {
		f := start(t, &toy.Model{}, nil)
		f.withTemplate(tmpl.source)
		for _, messages := range []string{
			asks + `,{"role":"assistant","content":null},` + asks,
			asks + `,{"role":"assistant"},` + asks,
			asks + `,{"role":"assistant","content":[]},` + asks,
			asks + `,{"role":"assistant","content":[{"type":"refusal","refusal":"No."}],"refusal":"No.","annotations":[],"audio":null,"function_call":null,"tool_calls":[]},` + asks,
			asks + `,{"role":"assistant","content":null,` + call + `},` + result,
			asks + `,{"role":"assistant",` + call + `},` + result + `,{"role":"assistant","content":"7."},` + asks,
			asks + `,{"role":"assistant","content":"Well.",` + call + `},` + result,
			`{"role":"developer","content":[]},{"role":"user","name":"Ann","content":[{"type":"text","text":"Hi"},{"type":"text","text":"!"}]}`,
			`{"role":"user","content":""}`,
		} {
			status, _, answer := f.post("/v1/chat/completions", `{"messages":[`+messages+`],"max_tokens":1}`)
			if status != http.StatusOK {
				t.Errorf("%s, %s: %d %s", tmpl.name, messages, status, answer)
			}
			if prompt, _ := f.applied(`{"messages":[` + messages + `]}`); strings.Contains(prompt, "None") || strings.Contains(prompt, "null") {
				t.Errorf("%s, %s: the model reads %q", tmpl.name, messages, prompt)
			}
		}
		prompt, _ := f.applied(`{"messages":[` + asks + `,{"role":"assistant","content":null,` + call + `},` + result + `]}`)
		if strings.Contains(tmpl.name, "null") && !strings.Contains(prompt, "assistant:f;") {
			t.Errorf("%s shows %q, want the call", tmpl.name, prompt)
		}
	}
}

func TestToolsReachTheTemplateWhereNoneMayBeCalled(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	f.withTemplate(`{% for t in tools or [] %}{{ t.function.name }}({{ t.function.parameters | tojson }}) {% endfor %}{% for m in messages %}{{ m.content }}{% endfor %}`)
	const tools = `,"tools":[{"type":"function","function":{"name":"add","parameters":{"b":1,"a":2}}}]`
	const want = `add({"b": 1, "a": 2}) Hi`
	if got, _ := f.applied(`{"messages":[` + asks + `]` + tools + `}`); got != want {
		t.Errorf("apply-template: %q, want %q", got, want)
	}
	_, _, answer := f.post("/tokenize", `{"messages":[`+asks+`]`+tools+`}`)
	var count struct{ Count int }
	if err := json.Unmarshal(answer, &count); err != nil || count.Count != len(f.model.Tokenizer.Encode(nil, want, tokenizer.Options{})) {
		t.Errorf("tokenize: %s, want the tokens of %q", answer, want)
	}
	_, _, answer = f.post("/v1/chat/completions", chatBody(tools+`,"tool_choice":"none","max_tokens":1`))
	if got := wholeChat(t, answer, 1).Usage.Prompt; got != count.Count {
		t.Errorf("a chat reads %d tokens, want %d", got, count.Count)
	}
}

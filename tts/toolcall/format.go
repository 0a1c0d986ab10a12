package toolcall

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
)

// Format is how a family of models writes calls.
type Format struct {
	Name string
	// Marks are tokens that vocabularies may hide though they belong to a call.
	Marks []string

	opens []string // texts that begin a call, or a list of them
	bare  bool     // a message that begins with an object may be a call
	// unmarked says that nothing but a tool's name tells a call from text.
	unmarked bool
	first    state                               // of a message
	enter    func(p *Parser, mark string) state  // after an opening; nil: it is none
	begin    string                              // what a call begins with, %s is the name; the arguments follow
	end      string                              // what follows the arguments
	newID    func(index int, name string) string // of a call; nil: any

	// What follows is for grammars, in the language of pattern.
	frames  []frame
	bars    []string  // what text that is no call does not hold
	thought [2]string // what a thought before the answer begins and ends with; empty: models differ
}

// Tool is a function that a model may call.
type Tool struct {
	Name   string
	Schema json.RawMessage // of its arguments
	Strict bool            // they must meet it
	// Text tells whether an argument is text: formats without quotes do not say.
	Text func(argument string) bool
}

// The formats. Examples of each are in the package's tests.
var (
	// Hermes is also that of Qwen2.5 and Qwen3, and of models that were taught none.
	Hermes = &Format{
		Name: "hermes", Marks: []string{"<tool_call>", "</tool_call>"}, opens: []string{"<tool_call>"},
		enter: func(*Parser, string) state { return inObject },
		begin: "<tool_call>\n{\"name\": %q, \"arguments\": ", end: "}\n</tool_call>",
		frames: []frame{{open: "<tool_call>", calls: []string{`\n\{"name": "%n", "arguments": %a\}\n</tool_call>`}, more: "\n<tool_call>"}},
		bars:   []string{"<tool_call>"},
	}
	// Llama is that of Llama 3: an object is the whole message.
	Llama = &Format{
		Name: "llama3", Marks: []string{"<|python_tag|>"}, opens: []string{"<|python_tag|>"}, bare: true, unmarked: true,
		enter: func(*Parser, string) state { return inObject },
		begin: "{\"name\": %q, \"parameters\": ", end: "}",
		frames: []frame{{open: "^", calls: []string{llamaCall}, more: "; "}, {open: "<|python_tag|>", calls: []string{llamaCall}, more: "; "}},
		bars:   []string{"^" + llamaBegin, "<|python_tag|>" + llamaBegin},
	}
	// Mistral has a list of objects, or since 2025 a name and its arguments.
	Mistral = &Format{
		Name: "mistral", Marks: []string{"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"}, opens: []string{"[TOOL_CALLS]"},
		enter: func(*Parser, string) state { return inMistral },
		begin: "[TOOL_CALLS][{\"name\": %q, \"arguments\": ", end: "}]",
		newID: func(int, string) string { return rand.Text()[:9] }, // its templates want nine letters or digits
		frames: []frame{
			{open: `[TOOL_CALLS] ?\[`, calls: []string{`\{"name": "%n", "arguments": %a(, "id": "[a-zA-Z0-9]{9}")?\}`}, more: ", ", end: `\]`},
			{open: "[TOOL_CALLS]", calls: []string{"%n[ARGS]%a", "%n[CALL_ID][a-zA-Z0-9]{9}[ARGS]%a"}, more: "[TOOL_CALLS]"},
		},
		bars: []string{"[TOOL_CALLS]"},
	}
	// QwenCoder has an element for each argument.
	QwenCoder = &Format{
		Name: "qwen3-coder", Marks: []string{"<tool_call>", "</tool_call>"}, opens: []string{"<tool_call>", functionMark},
		enter: func(p *Parser, mark string) state {
			if mark == functionMark {
				return inName
			}
			return inElement
		},
		begin: "<tool_call>\n<function=%s>\n", end: "</function>\n</tool_call>",
		frames: []frame{{open: `<tool_call>\n<function=`, calls: []string{`%n>\n%e</function>\n</tool_call>`}, more: `\n<tool_call>\n<function=`}},
		bars:   []string{"<tool_call>", functionMark},
	}
	// DeepSeek is that of R1, V3 and V3.1.
	DeepSeek = &Format{
		Name:  "deepseek",
		Marks: []string{"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"},
		opens: []string{"<｜tool▁call▁begin｜>"}, enter: func(*Parser, string) state { return inHeader },
		begin: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>%s\n```json\n",
		end:   "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
		frames: []frame{{
			preamble: "<｜tool▁calls▁begin｜>", open: "<｜tool▁call▁begin｜>", more: `\n?<｜tool▁call▁begin｜>`, end: "<｜tool▁calls▁end｜>",
			calls: []string{"function<｜tool▁sep｜>%n\n```json\n%a\n```<｜tool▁call▁end｜>", "%n<｜tool▁sep｜>%a<｜tool▁call▁end｜>"},
		}},
		bars: []string{"<｜tool▁call▁begin｜>"},
	}
	// Kimi numbers its calls.
	Kimi = &Format{
		Name:  "kimi",
		Marks: []string{"<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>", "<|tool_calls_section_end|>"},
		opens: []string{"<|tool_call_begin|>"}, enter: func(*Parser, string) state { return inHeader },
		begin: "<|tool_calls_section_begin|><|tool_call_begin|>functions.%s:0<|tool_call_argument_begin|>",
		end:   "<|tool_call_end|><|tool_calls_section_end|>",
		newID: func(index int, name string) string { return fmt.Sprintf("functions.%s:%d", name, index) },
		frames: []frame{{
			preamble: "<|tool_calls_section_begin|>", open: "<|tool_call_begin|>", more: "<|tool_call_begin|>", end: "<|tool_calls_section_end|>",
			calls: []string{`functions\.%n:\d{1,4}<|tool_call_argument_begin|>%a<|tool_call_end|>`},
		}},
		bars: []string{"<|tool_call_begin|>"},
	}
	// Functionary 3.1 has an element around the arguments.
	Functionary31 = &Format{
		Name: "functionary-3.1", Marks: []string{"<|python_tag|>"}, opens: []string{functionMark},
		enter: func(*Parser, string) state { return inHeader },
		begin: "<function=%s>", end: functionEnd,
		frames: []frame{{open: functionMark, calls: []string{"%n>%a</function>"}, more: `\n?<function=`}},
		bars:   []string{functionMark},
	}
	// Functionary 3.2 divides a message into parts for all, which are text, and calls.
	Functionary32 = &Format{
		Name: "functionary-3.2", opens: []string{">>>"}, first: inRecipient, unmarked: true,
		enter:  func(*Parser, string) state { return inRecipient },
		begin:  "%s\n",
		frames: []frame{{open: "^", calls: []string{`%n\n%a`}, more: ">>>"}, {open: ">>>", calls: []string{`%n\n%a`}, more: ">>>"}},
		bars:   []string{"^" + recipientLine, ">>>" + recipientLine},
	}
	// Gemma is that of Gemma 4.
	Gemma = &Format{
		Name: "gemma4", Marks: []string{gemmaMark, gemmaEnd, gemmaString, "<|channel>", "<channel|>"}, opens: []string{gemmaMark},
		enter: func(*Parser, string) state { return inGemma },
		begin: gemmaMark + gemmaCall + "%s", end: gemmaEnd,
		frames: []frame{{open: gemmaMark, calls: []string{"call:%n%m" + gemmaEnd}, more: gemmaMark}},
		bars:   []string{gemmaMark},
	}
	// Harmony is that of gpt-oss: a message goes out on channels. It ends with its call.
	Harmony = &Format{
		Name:  "harmony",
		Marks: []string{channelMark, messageMark, "<|constrain|>", "<|start|>", "<|end|>", "<|call|>", "<|return|>"},
		opens: []string{channelMark, "<|start|>", "<|end|>", "<|call|>", "<|return|>"}, first: inAnswer,
		enter: func(p *Parser, mark string) state {
			switch mark {
			case channelMark:
				return inChannel
			case "<|start|>":
				return inRole
			}
			return nil // it ends what was before
		},
		begin: "<|channel|>commentary to=functions.%s <|constrain|>json<|message|>", end: "<|call|>",
		frames: []frame{
			{open: "<|channel|>(commentary|analysis) to=functions\\.", calls: harmonyCalls(""), end: "<|call|>", endOptional: true},
			{open: "<|start|>assistant to=functions\\.", calls: harmonyCalls("<|channel|>(commentary|analysis)"), end: "<|call|>", endOptional: true},
			{open: "^ to=functions\\.", calls: harmonyCalls("<|channel|>(commentary|analysis)"), end: "<|call|>", endOptional: true},
		},
		thought: [2]string{"<|channel|>analysis<|message|>", "<|end|><|start|>assistant"},
		bars:    []string{"<|channel|>%hto=", "<|start|>%hto=", "^[ \t\r\n]*to="},
	}
)

const (
	llamaBegin    = `[ \t\r\n;,]*\{[ \t\r\n]*("type"[ \t\r\n]*:[ \t\r\n]*"[^"\\]*"[ \t\r\n]*,[ \t\r\n]*)*"(name|function)"[ \t\r\n]*:[ \t\r\n]*"%n"`
	llamaCall     = `\{("type": "function", )?"name": "%n", "parameters": %a\}`
	recipientLine = `[ \t\r]*%n[ \t\r]*\n[ \t\r\n]*\{`
)

// harmonyCalls returns the ways to write a call after its name, whose channel stands
// there if it is given.
func harmonyCalls(channel string) []string {
	return []string{"%n" + channel + "( json)?<|message|>%a", "%n" + channel + " ?<|constrain|>json<|message|>%a"}
}

// known tells formats from what stands in templates: the first that fits.
var known = []struct {
	marks  []string // all of them
	format *Format
}{
	{[]string{"<|channel|>", "<|message|>"}, Harmony},
	{[]string{gemmaMark, gemmaEnd}, Gemma},
	{[]string{"<|tool_call_argument_begin|>"}, Kimi},
	{[]string{"<｜tool▁call▁begin｜>"}, DeepSeek},
	{[]string{"[TOOL_CALLS]"}, Mistral},
	{[]string{"<tool_call>", "<function="}, QwenCoder},
	{[]string{"<tool_call>"}, Hermes},
	{[]string{">>>all"}, Functionary32},
	{[]string{"<function="}, Functionary31},
	{[]string{`"parameters": `, "ipython"}, Llama},
	{[]string{"<|python_tag|>"}, Llama},
}

// Of returns the format of a model with this chat template: Hermes where it shows none.
func Of(template string) *Format {
next:
	for _, k := range known {
		for _, m := range k.marks {
			if !strings.Contains(template, m) {
				continue next
			}
		}
		return k.format
	}
	return Hermes
}

// Begin returns what a call of a tool begins with, up to its arguments.
func (f *Format) Begin(name string) string { return fmt.Sprintf(f.begin, name) }

// Write returns a whole call. arguments are a JSON object.
func (f *Format) Write(name, arguments string) string {
	if f.marked() {
		arguments = writeMarked(arguments)
	}
	return f.Begin(name) + arguments + f.end
}

// id returns that of a new call.
func (f *Format) id(index int, name string) string {
	if f.newID != nil {
		return f.newID(index, name)
	}
	return "call_" + rand.Text()[:24]
}

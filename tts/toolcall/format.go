package toolcall

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"

	"github.com/lutra-lm/lutra/models/template"
)

// Format describes the calls of a model. Most are derived from a chat template's rendering of probes.
type Format struct {
	Name string
	// Marks are tokens that vocabularies may hide though they belong to a call.
	Marks []string
	// Inner are tokens that are within marks.
	Inner []string

	form     form
	nameMark string   // what stands before a name, behind what begins the call
	opens    []string // texts that begin a call, or a list of them
	closing  string   // words behind a list of calls that words begin
	bare     string   // what a message begins with that may be a call; empty: none
	// unmarked says that nothing but a tool's name tells a call from text.
	unmarked bool
	lead     *lead                               // nil: there is none
	first    state                               // of a message
	enter    func(p *Parser, mark string) state  // after an opening; nil: it is none
	newID    func(index int, name string) string // of a call; nil: any

	// What follows is for grammars, in the language of pattern.
	frames  []frame
	bars    []string  // what text that is no call does not hold
	answer  string    // what an answer without calls begins with that is held to a format, as a pattern
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

// The formats that no probe shows.
var (
	// Hermes is for models that were taught none, too.
	Hermes = newFormat("hermes", form{
		begin: "<tool_call>\n{\"name\": \"", middle: `", "arguments": `, end: "}\n</tool_call>", between: "\n",
		objects: objectForm{whole: true, name: "name", arguments: "arguments"},
	})
	// Llama is the format of Llama 3: an object is the whole message. A probe shows neither the mark that may
	// stand before it nor the text between two.
	Llama = &Format{
		Name: "llama3", Marks: []string{"<|python_tag|>"}, opens: []string{"<|python_tag|>"}, bare: "{", unmarked: true,
		form:   form{begin: `{"name": "`, middle: `", "parameters": `, end: "}", objects: objectForm{whole: true, name: "name", arguments: "parameters"}},
		enter:  func(*Parser, string) state { return inObject },
		frames: []frame{{open: "^", calls: []string{llamaCall}, more: "; "}, {open: "<|python_tag|>", calls: []string{llamaCall}, more: "; "}},
		bars:   []string{"^" + llamaBegin, "<|python_tag|>" + llamaBegin},
	}
	// Harmony is the format of gpt-oss: a message goes out on channels, of which a probe shows one. It ends
	// with its call.
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
		form: form{begin: "<|channel|>commentary to=functions.", middle: " <|constrain|>json<|message|>", end: "<|call|>"},
		frames: []frame{
			{open: "<|channel|>(commentary|analysis) to=functions\\.", calls: harmonyCalls(""), end: "<|call|>", endOptional: true},
			{open: "<|start|>assistant to=functions\\.", calls: harmonyCalls("<|channel|>(commentary|analysis)"), end: "<|call|>", endOptional: true},
			{open: "^ to=functions\\.", calls: harmonyCalls("<|channel|>(commentary|analysis)"), end: "<|call|>", endOptional: true},
		},
		thought: [2]string{"<|channel|>analysis<|message|>", "<|end|><|start|>assistant"},
		answer:  "<|channel|>final<|message|>",
		bars:    []string{"<|channel|>%hto=", "<|start|>%hto=", "^[ \t\r\n]*to="},
	}
)

const (
	llamaBegin = `[ \t\r\n;,]*\{[ \t\r\n]*("type"[ \t\r\n]*:[ \t\r\n]*"[^"\\]*"[ \t\r\n]*,[ \t\r\n]*)*"(name|function)"[ \t\r\n]*:[ \t\r\n]*"%n"`
	llamaCall  = `\{("type": "function", )?"name": "%n", "parameters": %a\}`
)

// harmonyCalls returns the ways to write a call after its name, whose channel stands
// there if it is given.
func harmonyCalls(channel string) []string {
	return []string{"%n" + channel + "( json)?<|message|>%a", "%n" + channel + " ?<|constrain|>json<|message|>%a"}
}

// listed are formats of templates that do not show all of a call, by texts that stand in them: the first of
// which all do.
var listed = []struct {
	marks  []string
	format *Format
	always bool // whatever a probe shows
}{
	{[]string{"<|channel|>", "<|message|>"}, Harmony, true},
	{[]string{"<|python_tag|>"}, Llama, false},
	{[]string{`"parameters": `, "ipython"}, Llama, false},
	// Granite 3, Phi-4-mini and LFM2 leave it to the model's answer, or to the system message.
	{[]string{"<|tool_call|>", "<|/tool_call|>"}, listIn("<|tool_call|>", "<|/tool_call|>"), false},
	{[]string{"<|tool_call|>"}, listIn("<|tool_call|>", ""), false},
	{[]string{"<|/tool|>"}, listIn("<|tool_call|>", "<|/tool_call|>"), false},
	{[]string{"<|tool_list_start|>"}, lfm, false},
	{[]string{"List of tools: "}, lfm, false},
}

// listIn is a list of objects between two marks.
func listIn(open, end string) *Format {
	return newFormat("list in "+open+end, form{
		open: open + "[", begin: `{"name": "`, middle: `", "arguments": `, end: "}", between: ", ", close: "]" + end,
		objects: objectForm{whole: true, name: "name", arguments: "arguments"},
	})
}

// lfm is the format of LFM2.
var lfm = newFormat("lfm2", form{open: "<|tool_call_start|>[", middle: "(", end: ")", between: ", ", close: "]<|tool_call_end|>", arguments: pythonKind})

// Of returns the format of a model with a chat template. It is derived from rendered probes if they show all of
// a call; else it is a listed one, else Hermes. For a template that shows calls, the error says what a probe
// did not show; the format holds all the same.
func Of(t *template.Template) (*Format, error) {
	if t == nil {
		return Hermes, nil
	}
	fallback, always := ofMarks(t.Source())
	if always {
		return fallback, nil
	}
	f, err := derive(t)
	switch {
	case err == nil && f.unmarked && f.bare == "{":
		return Llama, nil
	case err == nil:
		return f, nil
	case fallback != nil:
		return fallback, nil
	case errors.Is(err, errNoCalls):
		return Hermes, nil
	}
	return Hermes, err
}

// ofMarks returns the format that is listed for a template.
func ofMarks(source string) (f *Format, always bool) {
next:
	for _, l := range listed {
		for _, m := range l.marks {
			if !strings.Contains(source, m) {
				continue next
			}
		}
		return l.format, l.always
	}
	return nil, false
}

// Begin returns what a call of a tool begins with, up to its arguments.
func (f *Format) Begin(name string) string { return f.begin(name, f.id(0, name)) }

func (f *Format) begin(name, id string) string {
	return f.written(f.form.open+f.form.begin, id, name) + name + f.written(f.form.middle, id, name)
}

// Write returns a whole call. arguments are a JSON object.
func (f *Format) Write(name, arguments string) string {
	switch f.form.arguments {
	case elementKind:
		arguments = f.form.elements.write(arguments)
	case markedKind:
		arguments = writeMarked(f.form.quote, arguments)
	case pythonKind:
		arguments = writePython(arguments)
	}
	id := f.id(0, name)
	return f.begin(name, id) + arguments + f.written(f.form.end, id, name) + f.form.close
}

// id returns the id of a new call.
func (f *Format) id(index int, name string) string {
	if f.newID != nil {
		return f.newID(index, name)
	}
	return "call_" + rand.Text()[:24]
}

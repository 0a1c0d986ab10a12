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

	opens   []string                            // texts that begin a call, or a list of them
	bare    bool                                // a message that begins with an object may be a call
	first   state                               // of a message
	enter   func(p *Parser, mark string) state  // behind an opening; nil: it is none
	begin   string                              // what a call begins with, %s is the name; the arguments follow
	any     string                              // what a call of any tool begins with, up to the name
	end     string                              // what follows the arguments
	objects *objectForm                         // of formats whose calls are objects with a name and arguments
	newID   func(index int, name string) string // of a call; nil: any
}

// objectForm is how calls that are objects stand in a message.
type objectForm struct {
	open string // what comes before a forced one
	mark string // behind which one comes that nobody forced; empty: nothing tells
	key  string // of the arguments
	list bool   // behind the mark is a list of them
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
		begin: "<tool_call>\n{\"name\": %q, \"arguments\": ", any: "<tool_call>\n{\"name\": \"", end: "}\n</tool_call>",
		objects: &objectForm{"<tool_call>\n", "<tool_call>", "arguments", false},
	}
	// Llama is that of Llama 3: an object is the whole message.
	Llama = &Format{
		Name: "llama3", Marks: []string{"<|python_tag|>"}, opens: []string{"<|python_tag|>"}, bare: true,
		enter: func(*Parser, string) state { return inObject },
		begin: "{\"name\": %q, \"parameters\": ", any: "{\"name\": \"", end: "}",
		objects: &objectForm{"", "", "parameters", false},
	}
	// Mistral has a list of objects, or since 2025 a name and its arguments.
	Mistral = &Format{
		Name: "mistral", Marks: []string{"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"}, opens: []string{"[TOOL_CALLS]"},
		enter: func(*Parser, string) state { return inMistral },
		begin: "[TOOL_CALLS][{\"name\": %q, \"arguments\": ", any: "[TOOL_CALLS][{\"name\": \"", end: "}]",
		objects: &objectForm{"[TOOL_CALLS][", "[TOOL_CALLS]", "arguments", true},
		newID:   func(int, string) string { return rand.Text()[:9] }, // its templates want nine letters or digits
	}
	// QwenCoder has an element for each argument.
	QwenCoder = &Format{
		Name: "qwen3-coder", Marks: []string{"<tool_call>", "</tool_call>"}, opens: []string{"<tool_call>", "<function="},
		enter: func(p *Parser, mark string) state {
			if mark == "<function=" {
				return inName
			}
			return inElement
		},
		begin: "<tool_call>\n<function=%s>\n", any: "<tool_call>\n<function=", end: "</function>\n</tool_call>",
	}
	// DeepSeek is that of R1, V3 and V3.1.
	DeepSeek = &Format{
		Name:  "deepseek",
		Marks: []string{"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"},
		opens: []string{"<｜tool▁call▁begin｜>"}, enter: func(*Parser, string) state { return inHeader },
		begin: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>%s\n```json\n",
		any:   "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>", end: "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
	}
	// Kimi numbers its calls.
	Kimi = &Format{
		Name:  "kimi",
		Marks: []string{"<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>", "<|tool_calls_section_end|>"},
		opens: []string{"<|tool_call_begin|>"}, enter: func(*Parser, string) state { return inHeader },
		begin: "<|tool_calls_section_begin|><|tool_call_begin|>functions.%s:0<|tool_call_argument_begin|>",
		any:   "<|tool_calls_section_begin|><|tool_call_begin|>functions.", end: "<|tool_call_end|><|tool_calls_section_end|>",
		newID: func(index int, name string) string { return fmt.Sprintf("functions.%s:%d", name, index) },
	}
	// Functionary 3.1 has an element around the arguments.
	Functionary31 = &Format{
		Name: "functionary-3.1", Marks: []string{"<|python_tag|>"}, opens: []string{"<function="},
		enter: func(*Parser, string) state { return inHeader },
		begin: "<function=%s>", any: "<function=", end: "</function>",
	}
	// Functionary 3.2 divides a message into parts for all, which are text, and calls.
	Functionary32 = &Format{
		Name: "functionary-3.2", opens: []string{">>>"}, first: inRecipient,
		enter: func(*Parser, string) state { return inRecipient },
		begin: "%s\n", any: "",
	}
	// Harmony is that of gpt-oss: a message goes out on channels.
	Harmony = &Format{
		Name:  "harmony",
		Marks: []string{"<|channel|>", "<|message|>", "<|constrain|>", "<|start|>", "<|end|>", "<|call|>", "<|return|>"},
		opens: []string{"<|channel|>", "<|start|>", "<|end|>", "<|call|>", "<|return|>"},
		enter: func(p *Parser, mark string) state {
			switch mark {
			case "<|channel|>":
				return inChannel
			case "<|start|>":
				return inRole
			}
			return nil // it ends what was before
		},
		begin: "<|channel|>commentary to=functions.%s <|constrain|>json<|message|>", any: "<|channel|>commentary to=functions.", end: "<|call|>",
	}
)

// known tells formats from what stands in templates: the first that fits.
var known = []struct {
	marks  []string // all of them
	format *Format
}{
	{[]string{"<|channel|>", "<|message|>"}, Harmony},
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

// Of is the format of a model with this chat template: Hermes where it shows none.
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

// Begin is what a call of a tool begins with, up to its arguments; of any tool
// without a name, up to the name.
func (f *Format) Begin(name string) string {
	if name == "" {
		return f.any
	}
	return fmt.Sprintf(f.begin, name)
}

// Write is a whole call. arguments are a JSON object.
func (f *Format) Write(name, arguments string) string {
	return f.Begin(name) + arguments + f.end
}

// id is that of a new call.
func (f *Format) id(index int, name string) string {
	if f.newID != nil {
		return f.newID(index, name)
	}
	return "call_" + rand.Text()[:24]
}

// anyObject is a schema that all arguments meet.
const anyObject = `{"type":"object"}`

// Arguments is the schema of a tool's arguments, or that of any object.
func (t *Tool) Arguments() string {
	if len(t.Schema) == 0 {
		return anyObject
	}
	return string(t.Schema)
}

// Forced is how an answer is made a call of a tool, or with an empty name of any of
// them: what it begins with, and a JSON schema of what follows up to the call's end;
// an empty schema: the format has none.
func (f *Format) Forced(tools []Tool, name string) (begin, schema string) {
	switch {
	case name != "" && f != QwenCoder:
		for i := range tools {
			if tools[i].Name == name {
				return f.Begin(name), tools[i].Arguments()
			}
		}
	case f.objects != nil:
		return f.objects.open, f.callSchema(tools)
	}
	return f.Begin(name), ""
}

// Held is the text behind which calls stand that nobody forced, and a JSON schema of
// them; an empty schema: the format has none.
func (f *Format) Held(tools []Tool) (mark, schema string) {
	if f.objects == nil || f.objects.mark == "" {
		return "", ""
	}
	schema = f.callSchema(tools)
	if f.objects.list {
		schema = `{"type":"array","minItems":1,"items":` + schema + `}`
	}
	return f.objects.mark, schema
}

// callSchema is the schema of a call that is an object.
func (f *Format) callSchema(tools []Tool) string {
	var any []string
	for i := range tools {
		name, _ := json.Marshal(tools[i].Name)
		any = append(any, fmt.Sprintf(`{"type":"object","properties":{"name":{"const":%s},%q:%s},"required":["name",%q],"additionalProperties":false}`,
			name, f.objects.key, embedded(tools[i].Arguments(), i), f.objects.key))
	}
	return `{"anyOf":[` + strings.Join(any, ",") + `]}`
}

// embedded is a schema as part of another, with an identifier of its own: what it
// refers to stands within it.
func embedded(schema string, n int) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(schema), &members) != nil || members["$id"] != nil {
		return schema
	}
	members["$id"] = json.RawMessage(fmt.Sprintf(`"https://tools.invalid/%d"`, n))
	out, err := json.Marshal(members)
	if err != nil {
		return schema
	}
	return string(out)
}

package toolcall

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/template"
)

// Models whose template does not know tools are told in words which there are and
// how to call them; their calls, and what came of them, become text.

// Explain returns messages in which a model is told of tools that it calls in this format, as far as its
// template does not do so. inUser puts it into what the user says: some templates
// refuse system messages.
func (f *Format) Explain(t *template.Template, tools []any, messages []template.Message, inUser bool) ([]template.Message, error) {
	if !t.ReadsCalls() {
		var err error
		if messages, err = spellCalls(f, messages); err != nil {
			return nil, err
		}
	}
	if len(tools) == 0 || t.ReadsTools() {
		return messages, nil
	}
	var b strings.Builder
	b.WriteString("You can call functions. Each line describes one:\n")
	for _, tool := range tools {
		line, err := json.Marshal(tool)
		if err != nil {
			return nil, err
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteString("To call one, write its name and its arguments like this, and nothing else:\n")
	b.WriteString(f.Write("NAME", `{"ARGUMENT": "VALUE"}`))
	role := "system"
	if inUser {
		role = "user"
	}
	at := slices.IndexFunc(messages, func(x template.Message) bool { return x.Role == role })
	if at < 0 {
		return slices.Insert(slices.Clone(messages), 0, template.Message{Role: role, Content: b.String()}), nil
	}
	messages = slices.Clone(messages)
	text, _ := messages[at].Content.(string)
	messages[at].Content = strings.TrimSpace(b.String() + "\n\n" + text)
	return messages, nil
}

// spellCalls writes calls in a format, and what came of them as text. Results, and what the user says
// after them, are one message: many templates want users and assistants in turns.
func spellCalls(f *Format, messages []template.Message) ([]template.Message, error) {
	out := make([]template.Message, 0, len(messages))
	results := false // the last of out has some
	for _, x := range messages {
		text, _ := x.Content.(string)
		result := x.Role == "tool"
		switch {
		case result:
			x = template.Message{Role: "user", Content: "<tool_response>\n" + text + "\n</tool_response>"}
		case x.ToolCalls != nil:
			calls, err := readCalls(x.ToolCalls)
			if err != nil {
				return nil, err
			}
			for _, c := range calls {
				text = strings.TrimSpace(text + "\n" + f.Write(c.Function.Name, c.arguments()))
			}
			x.Content, x.ToolCalls = text, nil
		}
		if results && x.Role == "user" {
			last := &out[len(out)-1]
			before, _ := last.Content.(string)
			text, _ := x.Content.(string)
			last.Content, results = before+"\n"+text, result
			continue
		}
		out, results = append(out, x), result
	}
	return out, nil
}

// writtenCall is a call as messages hold it.
type writtenCall struct {
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// arguments returns the call's as an object: messages may hold it in a string.
func (c *writtenCall) arguments() string {
	var s string
	if json.Unmarshal(c.Function.Arguments, &s) == nil {
		return s
	}
	return string(c.Function.Arguments)
}

func readCalls(v any) (calls []writtenCall, err error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(raw, &calls)
	return calls, err
}

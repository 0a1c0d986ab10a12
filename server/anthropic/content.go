package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// billingHeader begins the line that Claude Code puts before everything else. It differs
// from conversation to conversation and from version to version, so what follows it would
// never be found in the prefix cache; it means nothing to a model.
const billingHeader = "x-anthropic-billing-header:"

// withoutBilling returns a text without that line.
func withoutBilling(text string) string {
	if strings.HasPrefix(text, billingHeader) {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

// readSystem reads the system prompt.
func readSystem(f *jsonread.Fields) string {
	var texts []string
	readTexts(f, "system", func(kind string, o *jsonread.Fields) {
		texts = append(texts, withoutBilling(readText(o, kind)))
	})
	return paragraphs(texts)
}

// readTexts reads a string, or a list of content blocks, a string as one block of text.
func readTexts(f *jsonread.Fields, field string, read func(kind string, o *jsonread.Fields)) {
	raw, ok := f.Take(field)
	if !ok {
		return
	}
	if _, ok := jsonread.Text(raw); !ok {
		readBlocks(f, field, raw, read)
		return
	}
	o, _ := jsonread.Parse([]byte("{}"))
	o.Put("text", raw)
	read("text", o)
}

// readText reads a block of text.
func readText(f *jsonread.Fields, kind string) (text string) {
	if kind != "text" {
		f.Fail(jsonread.CodeUnsupported, "type", "this server reads text here, but got '%s'.", jsonread.Brief(kind))
	}
	f.Text("text", &text)
	return text
}

// readBlocks reads a list of content blocks.
func readBlocks(f *jsonread.Fields, field string, raw json.RawMessage, read func(kind string, o *jsonread.Fields)) {
	if jsonread.Kind(raw) != "a list" {
		f.WrongType(field, "a string or a list of content blocks", raw)
		return
	}
	for _, o := range f.EachOf(field, raw, maxBlocks) {
		var kind string
		o.String("type", &kind)
		o.Ignore("cache_control", "citations")
		read(kind, o)
	}
}

// conversation is made of messages: several of a role in a row are one, as in Anthropic's API, and each
// result of a tool is one of its own.
type conversation struct {
	turns       []turn
	tools       []*tool // that the client has declared, or defined in a message
	laterSystem bool    // the template shows system messages among the others
	bytes       int     // of calls and of tools that messages define
}

// turn becomes a message of the template's. Its parts are put together once.
type turn struct {
	role, callID    string
	texts, thoughts []string
	calls           []any
}

// messages returns the messages for the template.
func (c *conversation) messages() []template.Message {
	list := make([]template.Message, len(c.turns))
	for i := range c.turns {
		t := &c.turns[i]
		m := template.Message{Role: t.role, ToolCallID: t.callID, Content: paragraphs(t.texts), ReasoningContent: paragraphs(t.thoughts)}
		if t.calls != nil {
			if m.ToolCalls = t.calls; m.Content == "" {
				m.Content = nil
			}
		}
		list[i] = m
	}
	return list
}

// paragraphs joins texts that were apart, but for those that are empty.
func paragraphs(texts []string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n\n")
}

// last returns the turn at the end, if it is of the role, or a new one.
func (c *conversation) last(role string) *turn {
	if n := len(c.turns); n == 0 || c.turns[n-1].role != role {
		c.turns = append(c.turns, turn{role: role})
	}
	return &c.turns[len(c.turns)-1]
}

// say adds a text of a role.
func (c *conversation) say(role, text string) {
	t := c.last(role)
	t.texts = append(t.texts, text)
}

// message adds what a message makes.
func (c *conversation) message(f *jsonread.Fields) {
	var role string
	switch f.String("role", &role); {
	case !f.Has("content"):
		f.Fail(jsonread.CodeMissing, "content", "a message needs a content.")
	case role == fields.RoleUser:
		c.user(f)
	case role == fields.RoleAssistant:
		c.assistant(f)
	case role == fields.RoleSystem:
		c.system(f)
	default:
		f.Fail(jsonread.CodeValue, "role", "expected user, assistant or system, but got '%s'.", jsonread.Brief(role))
	}
}

// user adds the results of tools, and after them what the user says besides.
func (c *conversation) user(f *jsonread.Fields) {
	var text strings.Builder
	results := 0
	readTexts(f, "content", func(kind string, o *jsonread.Fields) {
		if kind == "tool_result" {
			c.turns = append(c.turns, c.result(o))
			results++
			return
		}
		if kind != "text" {
			o.Fail(jsonread.CodeUnsupported, "type", "this server does not read '%s' of role user.", jsonread.Brief(kind))
		}
		text.WriteString(readText(o, "text"))
	})
	if text.Len() > 0 || results == 0 {
		c.say(fields.RoleUser, text.String())
	}
}

// system adds a system message among the others, as the user's where the template does
// not show one there. It may tell of tools that come or go.
func (c *conversation) system(f *jsonread.Fields) {
	var texts []string
	readTexts(f, "content", func(kind string, b *jsonread.Fields) {
		switch kind {
		case "tool_addition":
			if t := c.change(b); t != nil {
				t.callable = true
				texts = append(texts, "From here on these can be called too:\n"+functions([]*tool{t}))
			}
		case "tool_removal":
			if t := c.change(b); t != nil {
				t.callable = false
				texts = append(texts, "From here on "+t.name+" cannot be called any more.")
			}
		default:
			texts = append(texts, readText(b, kind))
		}
	})
	switch text := paragraphs(texts); {
	case c.laterSystem || len(c.turns) == 0:
		c.say(fields.RoleSystem, text)
	default:
		c.say(fields.RoleUser, "<system>\n"+text+"\n</system>")
	}
}

// change reads which tool comes or goes.
func (c *conversation) change(f *jsonread.Fields) *tool {
	o, ok := f.Object("tool")
	if !ok {
		f.Fail(jsonread.CodeMissing, "tool", "it is required.")
		return nil
	}
	defer f.Adopt(o)
	var kind string
	switch o.String("type", &kind); kind {
	case "tool_reference":
		return c.named(o, "name")
	case "tool_definition":
		d, ok := o.Object("definition")
		if !ok {
			o.Fail(jsonread.CodeMissing, "definition", "it is required.")
			return nil
		}
		t := readTool(d)
		if o.Adopt(d); t == nil {
			return nil
		}
		if len(c.tools) >= 2*maxTools || slices.ContainsFunc(c.tools, func(other *tool) bool { return other.name == t.name }) {
			o.Fail(jsonread.CodeValue, "definition", "there is a tool of this name already, or there are more than %d.", 2*maxTools)
			return nil
		}
		t.deferred, t.shown = true, false // it is no part of the prompt's beginning
		c.tools, c.bytes = append(c.tools, t), c.bytes+len(t.definition)
		return t
	}
	o.Fail(jsonread.CodeUnsupported, "type", "expected tool_reference or tool_definition, but got '%s'.", jsonread.Brief(kind))
	return nil
}

// named finds the tool that a field names.
func (c *conversation) named(f *jsonread.Fields, field string) *tool {
	var name string
	f.String(field, &name)
	i := slices.IndexFunc(c.tools, func(t *tool) bool { return t.name == name })
	if i < 0 {
		f.Fail(jsonread.CodeValue, field, "there is no tool of the name '%s'.", jsonread.Brief(name))
		return nil
	}
	return c.tools[i]
}

// result reads what came of a call. Tools that it refers to can be called from there on.
func (c *conversation) result(f *jsonread.Fields) turn {
	t := turn{role: fields.RoleTool}
	f.String("tool_use_id", &t.callID)
	if t.callID == "" {
		f.Fail(jsonread.CodeMissing, "tool_use_id", "it is required.")
	}
	var texts []string
	var found []*tool
	readTexts(f, "content", func(kind string, o *jsonread.Fields) {
		if kind != "tool_reference" {
			texts = append(texts, readText(o, kind))
		} else if t := c.named(o, "tool_name"); t != nil {
			t.callable = true
			found = append(found, t)
		}
	})
	if found != nil {
		texts = append(texts, functions(found))
	}
	text, failed := paragraphs(texts), false
	if f.Bool("is_error", &failed); failed {
		text = "Error: " + text
	}
	t.texts = []string{text}
	return t
}

// assistant adds what the model said, thought and called.
func (c *conversation) assistant(f *jsonread.Fields) {
	var text, thought strings.Builder
	var calls []any
	readTexts(f, "content", func(kind string, b *jsonread.Fields) {
		s := ""
		switch kind {
		case "text":
			b.Text("text", &s)
			text.WriteString(s)
		case "tool_use":
			raw := readCall(b)
			calls = append(calls, raw)
			c.bytes += len(raw)
		case "thinking":
			b.Text("thinking", &s)
			thought.WriteString(s)
			b.Ignore("signature")
		case "redacted_thinking": // nobody here can read it
			b.Ignore("data")
		default:
			b.Fail(jsonread.CodeUnsupported, "type", "this server does not read '%s' of role assistant.", jsonread.Brief(kind))
		}
	})
	t := c.last(fields.RoleAssistant)
	t.texts, t.thoughts, t.calls = append(t.texts, text.String()), append(t.thoughts, thought.String()), append(t.calls, calls...)
}

// readCall reads a call as the template has them.
func readCall(f *jsonread.Fields) json.RawMessage {
	var id, name string
	f.String("id", &id)
	f.String("name", &name)
	input, _ := f.Take("input")
	f.Ignore("caller", "toolset_name")
	switch {
	case id == "":
		f.Fail(jsonread.CodeMissing, "id", "it is required.")
	case name == "":
		f.Fail(jsonread.CodeMissing, "name", "it is required.")
	case jsonread.Kind(input) != "an object":
		f.Fail(jsonread.CodeType, "input", "expected an object.")
	}
	if f.Err != nil {
		return nil
	}
	return fields.Written(id, name, string(input))
}

// callsOf returns the calls of a message.
func callsOf(m *template.Message) []fields.Call {
	list, _ := m.ToolCalls.([]any)
	calls := make([]fields.Call, len(list))
	for i, raw := range list {
		_ = json.Unmarshal(raw.(json.RawMessage), &calls[i]) // as it was written here
	}
	return calls
}

// checkResults checks that results follow their calls.
func checkResults(f *jsonread.Fields, messages []template.Message) {
	var ids map[string]bool // of the calls of the last assistant
	for i := range messages {
		m := &messages[i]
		switch m.Role {
		case fields.RoleAssistant:
			ids = map[string]bool{}
			for _, c := range callsOf(m) {
				ids[c.ID] = true
			}
		case fields.RoleTool:
			if !ids[m.ToolCallID] {
				f.Fail(jsonread.CodeValue, "messages", "the result of '%s' follows no tool_use of this id.", jsonread.Brief(m.ToolCallID))
			}
		}
	}
}

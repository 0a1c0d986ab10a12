package responses

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/report"
)

// item is a part of a conversation. What a request brings and what the model adds have
// one form, in which it is stored, listed and referred to. Complete ones do not change.
type item struct {
	ID        string  `json:"id"`
	Type      string  `json:"type"`
	Status    string  `json:"status,omitempty"`
	Role      string  `json:"role,omitempty"`              // of messages
	Content   []part  `json:"content,omitzero"`            // of messages and thoughts
	Summary   []part  `json:"summary,omitzero"`            // of thoughts
	Encrypted string  `json:"encrypted_content,omitempty"` // of thoughts and compactions, for the client to send back
	CallID    string  `json:"call_id,omitempty"`           // of calls and their outputs
	Name      string  `json:"name,omitempty"`              // of calls
	Namespace string  `json:"namespace,omitempty"`         // of calls of functions that are in one
	Arguments *string `json:"arguments,omitempty"`         // of calls of functions
	Input     *string `json:"input,omitempty"`             // of calls of custom tools
	Output    *string `json:"output,omitempty"`            // of outputs
}

// part is a text within an item.
type part struct {
	Type        string                `json:"type"`
	Text        *string               `json:"text,omitempty"`
	Refusal     *string               `json:"refusal,omitempty"` // in place of a text
	Annotations []any                 `json:"annotations,omitzero"`
	Logprobs    []report.TokenLogprob `json:"logprobs,omitzero"`
}

// The types of items and of their parts.
const (
	itemMessage      = "message"
	itemReasoning    = "reasoning"
	itemCall         = "function_call"
	itemOutput       = "function_call_output"
	itemCustom       = "custom_tool_call"
	itemCustomOutput = "custom_tool_call_output"
	itemCompaction   = "compaction"
	itemReference    = "item_reference"

	partInput     = "input_text"
	partText      = "output_text"
	partRefusal   = "refusal"
	partReasoning = "reasoning_text"
	partSummary   = "summary_text"
)

// The states of items and responses.
const (
	inProgress = "in_progress"
	completed  = "completed"
	cutOff     = "incomplete"
	failed     = "failed"
	cancelled  = "cancelled"
)

// idPrefixes begin the ids of items.
var idPrefixes = map[string]string{
	itemMessage: "msg_", itemReasoning: "rs_", itemCall: "fc_", itemOutput: "fco_", itemCustom: "ctc_", itemCustomOutput: "ctco_", itemCompaction: "cmp_",
}

func newID(kind string) string { return idPrefixes[kind] + uuid.NewString() }

// newItem begins an item of the output.
func newItem(kind string) *item {
	i := &item{ID: newID(kind), Type: kind, Status: inProgress}
	switch kind {
	case itemMessage:
		i.Role, i.Content = fields.RoleAssistant, []part{}
	case itemReasoning:
		i.Summary, i.Content = []part{}, []part{}
	case itemCall:
		i.Arguments = new("")
	case itemCustom:
		i.Input = new("")
	}
	return i
}

// newPart begins an item's text.
func newPart(kind string) part {
	if kind == itemReasoning {
		return part{Type: partReasoning, Text: new("")}
	}
	return part{Type: partText, Text: new(""), Annotations: []any{}, Logprobs: []report.TokenLogprob{}}
}

// text returns the text of a part, whatever its type.
func (p *part) text() string {
	switch {
	case p.Text != nil:
		return *p.Text
	case p.Refusal != nil:
		return *p.Refusal
	}
	return ""
}

// text returns all that parts say.
func text(parts []part) string {
	if len(parts) == 1 {
		return parts[0].text()
	}
	var b strings.Builder
	for i := range parts {
		b.WriteString(parts[i].text())
	}
	return b.String()
}

// writes returns where an item of the output has its text.
func (i *item) writes() **string {
	switch i.Type {
	case itemCall:
		return &i.Arguments
	case itemCustom:
		return &i.Input
	}
	return &i.Content[0].Text
}

// write gives an item of the output its text.
func (i *item) write(text string) { *i.writes() = &text }

// written returns the text of an item of the output.
func (i *item) written() string { return **i.writes() }

// size returns about how many bytes an item holds.
func (i *item) size() int {
	n := 384 + len(i.ID) + len(i.Encrypted) + len(i.CallID) + len(i.Name)
	for _, s := range []*string{i.Arguments, i.Input, i.Output} {
		if s != nil {
			n += len(*s)
		}
	}
	for _, list := range [][]part{i.Content, i.Summary} {
		for k := range list {
			p := &list[k]
			n += 128 + len(p.text())
			for t := range p.Logprobs {
				n += 128 + 96*len(p.Logprobs[t].Top)
			}
		}
	}
	return n
}

// conversation makes messages for templates of items: thoughts and calls become part of the assistant's message
// that they stand next to.
type conversation struct {
	messages []template.Message
	bytes    int             // of calls
	ids      map[string]bool // of the calls that results at the end are of
}

// add adds an item.
func (c *conversation) add(i *item) {
	switch i.Type {
	case itemMessage:
		said := text(i.Content)
		if i.Role == fields.RoleAssistant {
			m := c.assistant()
			before, _ := m.Content.(string)
			m.Content = before + said
			return
		}
		role := i.Role
		if role == fields.RoleDeveloper {
			role = fields.RoleSystem
		}
		c.say(role, said)
	case itemReasoning:
		thought := text(i.Content)
		if thought == "" {
			thought, _ = readOpaque(i.Encrypted)
		}
		if thought == "" {
			thought = text(i.Summary)
		}
		c.assistant().ReasoningContent += thought
	case itemCall:
		c.call(i.CallID, joined(i.Namespace, i.Name), *i.Arguments)
	case itemCustom:
		c.call(i.CallID, i.Name, customArguments(*i.Input))
	case itemOutput, itemCustomOutput:
		c.messages = append(c.messages, template.Message{Role: fields.RoleTool, ToolCallID: i.CallID, Content: *i.Output})
	case itemCompaction: // as it came about
		summary, _ := readOpaque(i.Encrypted)
		c.say(fields.RoleUser, compactRequest)
		c.assistant().Content = summary
	}
}

// say adds a message.
func (c *conversation) say(role, text string) {
	c.ids = nil
	c.messages = append(c.messages, template.Message{Role: role, Content: text})
}

// assistant returns the message of the assistant at the end, a new one if there is none.
func (c *conversation) assistant() *template.Message {
	if n := len(c.messages); n == 0 || c.messages[n-1].Role != fields.RoleAssistant {
		c.ids = nil
		c.messages = append(c.messages, template.Message{Role: fields.RoleAssistant})
	}
	return &c.messages[len(c.messages)-1]
}

// call adds a call to the assistant's message.
func (c *conversation) call(id, name, arguments string) {
	raw := fields.Written(id, name, arguments)
	c.bytes += len(raw)
	m := c.assistant()
	calls, _ := m.ToolCalls.([]any)
	m.ToolCalls = append(calls, raw)
	if c.ids == nil {
		c.ids = map[string]bool{}
	}
	c.ids[id] = true
}

// customArguments returns the arguments of the function that models see in place of a custom
// tool.
func customArguments(input string) string {
	var b bytes.Buffer
	_ = jsonwrite.Encode(&b, map[string]string{inputArgument: input}) // strings
	return strings.TrimSuffix(b.String(), "\n")
}

// customInput finds the input of a custom tool in arguments as they come. Escapes that
// are not all there are held back.
type customInput struct {
	begun bool
	ended bool
	held  string
}

// push takes more of the arguments and returns what the input gains.
func (c *customInput) push(arguments string) string {
	c.held += arguments
	if !c.begun {
		_, value, ok := strings.Cut(c.held, ":")
		value = strings.TrimLeft(value, " \t\r\n")
		if !ok || value == "" {
			return ""
		}
		if c.begun = true; value[0] != '"' {
			c.ended = true
		}
		c.held = value[1:]
	}
	if c.ended {
		c.held = ""
		return ""
	}
	n := 0
	for n < len(c.held) && c.held[n] != '"' {
		size := 1
		if c.held[n] == '\\' {
			if size = escapeLen(c.held[n:]); size == 0 {
				break
			}
		}
		n += size
	}
	raw := c.held[:n]
	c.held = c.held[n:]
	c.ended = c.held != "" && c.held[0] == '"'
	var text string
	if json.Unmarshal([]byte(`"`+raw+`"`), &text) != nil {
		return ""
	}
	return text
}

// escapeLen returns the length of the escape that s begins with, with the other half of a
// character that two make; 0: it is not all there.
func escapeLen(s string) int {
	const unit = len(`\u0000`)
	switch {
	case len(s) < 2:
		return 0
	case s[1] != 'u':
		return 2
	case len(s) < unit:
		return 0
	case !strings.ContainsRune("dD", rune(s[2])) || !strings.ContainsRune("89abAB", rune(s[3])): // whole
		return unit
	}
	switch rest := s[unit:]; {
	case rest == "" || rest == `\`:
		return 0
	case !strings.HasPrefix(rest, `\u`): // the other half is missing
		return unit
	case len(rest) < unit:
		return 0
	}
	return 2 * unit
}

// compactRequest asks the model for what is to stand in the place of a conversation.
const compactRequest = "Summarize our conversation so far for yourself: you will go on with the summary in its place. Keep what was asked and decided, facts, names, numbers, results of tools and what remains to be done. Write the summary and nothing else."

// opaquePrefix marks texts that this server has handed out for clients to keep.
const opaquePrefix = "lutra1."

// opaque returns a text as clients keep it without reading it: the thought of a reasoning
// item, or the summary of a compaction, which they send back. Any server of this
// version reads it. It is no secret: the client gets the same text in the open.
func opaque(text string) string {
	return opaquePrefix + base64.RawURLEncoding.EncodeToString([]byte(text))
}

// readOpaque returns the text that opaque was given; ok is false for texts of other servers.
func readOpaque(kept string) (text string, ok bool) {
	encoded, ok := strings.CutPrefix(kept, opaquePrefix)
	if !ok {
		return "", false
	}
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	return strings.ToValidUTF8(string(raw), "\ufffd"), err == nil
}

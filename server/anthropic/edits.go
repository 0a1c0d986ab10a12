package anthropic

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

// edits are the requests of context_management: they leave old results of tools and old thoughts out of the
// prompt, while the client keeps them.
type edits struct{ list []edit }

// edit changes messages.
type edit struct {
	kind string
	// clear changes a copy, and says how much of what it has cleared: tool uses, or turns with
	// thoughts.
	clear func(messages []template.Message) ([]template.Message, int)
	// wanted reports whether the edit is to be made at all; nil: it is.
	wanted func(messages []template.Message, tokens func() (int, error)) (bool, error)
	least  int // tokens that must be saved; else nothing is cleared
}

// The kinds of edits.
const (
	clearToolUses = "clear_tool_uses_20250919"
	clearThinking = "clear_thinking_20251015"
)

// maxEdits bounds the edits of a request: each may cost a tokenisation of the prompt.
const maxEdits = 4

// readEdits reads context_management; nil: it is absent.
func readEdits(f *jsonread.Fields) *edits {
	o, ok := f.Object("context_management")
	if !ok {
		return nil
	}
	e := &edits{}
	for _, sub := range o.Each("edits", maxEdits) {
		var kind string
		switch sub.String("type", &kind); kind {
		case clearToolUses:
			e.list = append(e.list, readToolUses(sub))
		case clearThinking:
			e.list = append(e.list, readOldThinking(sub))
		default:
			sub.Fail(jsonread.CodeUnsupported, "type", "expected %s or %s, but got '%s'.", clearToolUses, clearThinking, jsonread.Brief(kind))
		}
	}
	f.Adopt(o)
	return e
}

// readAmount reads an object with a value and one of these types.
func readAmount(f *jsonread.Fields, field string, value *int, least int, types ...string) (kind string, given bool) {
	o, ok := f.Object(field)
	if !ok {
		return "", false
	}
	if o.String("type", &kind); !slices.Contains(types, kind) {
		o.Fail(jsonread.CodeValue, "type", "expected one of %v, but got '%s'.", types, jsonread.Brief(kind))
	}
	if kind != keepAll && !o.Int("value", value, least, math.MaxInt32) {
		o.Fail(jsonread.CodeMissing, "value", "it is required.")
	}
	f.Adopt(o)
	return kind, true
}

// What amounts count.
const (
	inputTokens   = "input_tokens"
	toolUses      = "tool_uses"
	thinkingTurns = "thinking_turns"
	keepAll       = "all"
)

// readNames reads a list of tools' names.
func readNames(f *jsonread.Fields, field string, raw json.RawMessage) []string {
	items, _ := f.Items(field, raw, maxTools)
	names := make([]string, len(items))
	for i, raw := range items {
		s, ok := jsonread.Text(raw)
		if !ok || len(s) > jsonread.MaxString {
			f.WrongType(fmt.Sprintf("%s[%d]", field, i), "a tool's name", raw)
		}
		names[i] = s
	}
	return names
}

// toolEdit clears the results of all tool uses but the latest.
type toolEdit struct {
	trigger       string // inputTokens or toolUses
	above         int    // of these
	keep          int    // tool uses
	atLeast       int    // tokens
	excluded      []string
	inputs        bool // of all tools are cleared too
	inputsOfTools []string
}

// readToolUses reads one, with Anthropic's defaults.
func readToolUses(f *jsonread.Fields) edit {
	e := &toolEdit{trigger: inputTokens, above: 100_000, keep: 3}
	if kind, given := readAmount(f, "trigger", &e.above, 0, inputTokens, toolUses); given {
		e.trigger = kind
	}
	readAmount(f, "keep", &e.keep, 0, toolUses)
	readAmount(f, "clear_at_least", &e.atLeast, 0, inputTokens)
	if raw, ok := f.Take("exclude_tools"); ok {
		e.excluded = readNames(f, "exclude_tools", raw)
	}
	if raw, ok := f.Take("clear_tool_inputs"); ok && jsonread.Kind(raw) == "a list" {
		e.inputsOfTools = readNames(f, "clear_tool_inputs", raw)
	} else if ok && json.Unmarshal(raw, &e.inputs) != nil {
		f.WrongType("clear_tool_inputs", "true, false or a list of tools' names", raw)
	}
	return edit{clearToolUses, e.clear, e.wanted, e.atLeast}
}

// cleared stands in place of a result.
const cleared = "[This result was cleared to save context.]"

func (e *toolEdit) wanted(messages []template.Message, tokens func() (int, error)) (bool, error) {
	n := 0
	if e.trigger == inputTokens {
		var err error
		if n, err = tokens(); err != nil {
			return false, err
		}
		return n > e.above, nil
	}
	for i := range messages {
		calls, _ := messages[i].ToolCalls.([]any)
		n += len(calls)
	}
	return n > e.above, nil
}

func (e *toolEdit) clear(messages []template.Message) (out []template.Message, n int) {
	all := 0
	for i := range messages {
		calls, _ := messages[i].ToolCalls.([]any)
		all += len(calls)
	}
	out = slices.Clone(messages)
	old := map[string]bool{} // uses in the message before, by id: their results go
	for i := range out {
		m := &out[i]
		switch {
		case m.Role == fields.RoleTool && old[m.ToolCallID] && m.Content != cleared:
			m.Content = cleared
			n++
		case m.Role == fields.RoleAssistant:
			old = map[string]bool{}
			calls := callsOf(m)
			changed := false
			for k := range calls {
				name := calls[k].Function.Name
				if all--; all < e.keep || slices.Contains(e.excluded, name) {
					continue
				}
				old[calls[k].ID] = true
				if e.inputs || slices.Contains(e.inputsOfTools, name) {
					calls[k].Function.Arguments, changed = "{}", true
				}
			}
			if changed {
				list := make([]any, len(calls))
				for k := range calls {
					raw, _ := json.Marshal(calls[k]) // strings
					list[k] = json.RawMessage(raw)
				}
				m.ToolCalls = list
			}
		}
	}
	return out, n
}

// thinkingEdit clears the thoughts of all turns but the latest with any.
type thinkingEdit struct{ keep int }

// readOldThinking reads one, with Anthropic's default.
func readOldThinking(f *jsonread.Fields) edit {
	e := &thinkingEdit{keep: 1}
	if word, ok := jsonread.Text(f.Raw("keep")); ok {
		if f.Ignore("keep"); word != keepAll {
			f.Fail(jsonread.CodeValue, "keep", "expected all or an object, but got '%s'.", jsonread.Brief(word))
		}
		e.keep = math.MaxInt
	} else if kind, _ := readAmount(f, "keep", &e.keep, 1, thinkingTurns, keepAll); kind == keepAll {
		e.keep = math.MaxInt
	}
	return edit{clearThinking, e.clear, nil, 0}
}

// clear counts turns from the end. One begins where the user speaks, but not by results of
// tools or after them.
func (e *thinkingEdit) clear(messages []template.Message) (out []template.Message, n int) {
	out = slices.Clone(messages)
	turns, thought := 0, false // with thoughts; the one at hand has some
	for i := len(out) - 1; i >= 0; i-- {
		m := &out[i]
		switch {
		case m.Role == fields.RoleUser && (i == 0 || out[i-1].Role != fields.RoleTool):
			thought = false
		case m.ReasoningContent != "":
			if !thought {
				turns++
			}
			thought = true
			if turns > e.keep {
				m.ReasoningContent = ""
				n = turns - e.keep
			}
		}
	}
	return out, n
}

// made reports an edit; one of the two numbers is 0.
type made struct {
	Type   string `json:"type"`
	Uses   int    `json:"cleared_tool_uses,omitempty"`
	Turns  int    `json:"cleared_thinking_turns,omitempty"`
	Tokens int    `json:"cleared_input_tokens"`
}

// applied are the edits that have changed a prompt.
type applied struct {
	List     []any
	Original int // tokens before them; 0: they were not counted
}

// apply edits a prompt, whose tokens count counts: as often as it takes to say how many
// each edit has saved.
func (e *edits) apply(p *tts.Prompt, count func(*tts.Prompt) (int, error)) (*applied, error) {
	if e == nil {
		return nil, nil
	}
	a := &applied{List: []any{}}
	now := 0 // tokens of p; 0: not counted yet
	tokens := func() (n int, err error) {
		if now == 0 {
			if now, err = count(p); a.Original == 0 {
				a.Original = now
			}
		}
		return now, err
	}
	for _, edit := range e.list {
		messages, n := edit.clear(p.Messages)
		if n == 0 {
			continue
		}
		if edit.wanted != nil {
			if ok, err := edit.wanted(p.Messages, tokens); err != nil {
				return nil, err
			} else if !ok {
				continue
			}
		}
		before, err := tokens()
		if err != nil {
			return nil, err
		}
		edited := *p
		edited.Messages = messages
		after, err := count(&edited)
		if err != nil {
			return nil, err
		}
		if before-after < edit.least {
			continue
		}
		p.Messages, now = messages, after
		done := made{Type: edit.kind, Tokens: max(0, before-after)}
		if edit.kind == clearToolUses {
			done.Uses = n
		} else {
			done.Turns = n
		}
		a.List = append(a.List, done)
	}
	return a, nil
}

// count is the answer of /v1/messages/count_tokens.
type count struct {
	Input   int       `json:"input_tokens"`
	Context *original `json:"context_management,omitempty"`
}

// original counts a prompt before edits.
type original struct {
	Input int `json:"original_input_tokens"`
}

// newCount says that a prompt, to which edits were applied, has n tokens.
func newCount(n int, applied *applied) count {
	c := count{Input: n}
	if applied != nil {
		c.Context = &original{n}
		if len(applied.List) > 0 {
			c.Context.Input = applied.Original
		}
	}
	return c
}

package fields

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

// The roles of messages.
const (
	RoleSystem    = "system"
	RoleDeveloper = "developer" // its new name
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Conversation reads messages and what else shapes the rendered prompt, and the most
// tokens of a thought; 0: any number.
func (f Reader) Conversation() (p tts.Prompt, maxThinking int) {
	var calls map[string]bool // ids of those that results may follow
	for i, o := range f.Each("messages", MaxMessages) {
		m := readMessage(o)
		p.Messages = append(p.Messages, m)
		switch {
		case o.Err != nil:
		case m.Role == RoleTool:
			readAnsweredCall(f.Fields, i, &m, calls)
		default:
			calls = callIDs(&m)
		}
	}
	if len(p.Messages) == 0 {
		f.Fail(jsonread.CodeMissing, "messages", "a list of at least one message is required.")
	}
	if f.Err != nil {
		return p, 0
	}
	if n := callBytes(p.Messages); n > MaxFunctions {
		f.Fail(jsonread.CodeValue, "messages", "their tool calls have %d bytes, at most %d are allowed.", n, MaxFunctions)
	}
	p.Ending = readEnding(f.Fields, p.Messages)
	p.Truncate = readTruncation(f.Fields)
	p.Extra, maxThinking = readTemplateVariables(f.Fields)
	return p, maxThinking
}

// Efforts are the values of reasoning_effort.
var Efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// readTemplateVariables reads the template's variables: named ones, and whether and how
// much a thinking model thinks. As in vLLM, an effort enables thinking, or with none
// disables it, and so does a bound of 0 tokens; named variables take precedence.
func readTemplateVariables(f *jsonread.Fields) (vars map[string]any, maxThinking int) {
	vars = map[string]any{}
	effort := ""
	most := -1
	f.In("reasoning", func(o *jsonread.Fields) {
		o.String("effort", &effort)
		o.Int("max_tokens", &most, -1, math.MaxInt32)
	})
	for _, name := range thinkingBounds {
		f.Int(name, &most, -1, math.MaxInt32)
	}
	if f.String("reasoning_effort", &effort); effort != "" {
		if !slices.Contains(Efforts, effort) {
			f.Fail(jsonread.CodeValue, "reasoning_effort", "expected one of %s, but got '%s'.", strings.Join(Efforts, ", "), jsonread.Brief(effort))
		}
		vars["reasoning_effort"], vars["enable_thinking"] = effort, effort != "none"
	}
	if f.Has("enable_thinking") {
		var on bool
		f.Bool("enable_thinking", &on)
		vars["enable_thinking"] = on
	}
	if most == 0 {
		vars["enable_thinking"] = false
	}
	maps.Copy(vars, readTemplateKwargs(f))
	if most < 0 {
		return vars, 0
	}
	return vars, max(most, 1)
}

// thinkingBounds are vLLM's and llama.cpp's names for the most tokens of a thought.
var thinkingBounds = []string{"thinking_token_budget", "reasoning_budget", "reasoning_budget_tokens", "thinking_budget_tokens"}

// readTemplateKwargs reads the variables that a request names.
func readTemplateKwargs(f *jsonread.Fields) (named map[string]any) {
	const name = "chat_template_kwargs"
	raw, ok := f.Take(name)
	switch {
	case !ok:
	case len(raw) > MaxKwargs:
		f.Fail(jsonread.CodeValue, name, "at most %d bytes are allowed, but got %d.", MaxKwargs, len(raw))
	case json.Unmarshal(raw, &named) != nil:
		f.WrongType(name, "an object", raw)
	}
	return named
}

// readEnding reads how the conversation ends. By default the model continues an
// assistant's message and answers all others.
func readEnding(f *jsonread.Fields, messages []template.Message) tts.Ending {
	headerGiven, openGiven := f.Has("add_generation_prompt"), f.Has("continue_final_message")
	var header, open bool
	f.Bool("add_generation_prompt", &header)
	f.Bool("continue_final_message", &open)
	if f.Err != nil {
		return tts.AddGenerationPrompt
	}
	last := messages[len(messages)-1]
	switch {
	case open && header:
		f.Fail(jsonread.CodeValue, "continue_final_message", "it cannot be true when 'add_generation_prompt' is.")
	case open && last.ToolCalls != nil:
		f.Fail(jsonread.CodeValue, "continue_final_message", "the last message calls tools, so there is no text to continue.")
	case open, !headerGiven && !openGiven && last.Role == RoleAssistant && last.ToolCalls == nil:
		return tts.ContinueFinalMessage
	case headerGiven && !header:
		return tts.NoGenerationPrompt
	}
	return tts.AddGenerationPrompt
}

// readTruncation reads whether the oldest exchanges may be left out.
func readTruncation(f *jsonread.Fields) bool {
	const auto, disabled = "auto", "disabled"
	mode := disabled
	f.OneOf("truncation", jsonread.CodeValue, &mode, auto, disabled)
	return mode == auto
}

// readMessage reads one message of a conversation.
func readMessage(f *jsonread.Fields) template.Message {
	var m template.Message
	f.String("role", &m.Role)
	switch m.Role {
	case RoleDeveloper:
		m.Role = RoleSystem // templates do not know the new name
	case RoleSystem, RoleUser, RoleAssistant, RoleTool:
	case "":
		f.Fail(jsonread.CodeMissing, "role", "every message needs a role.")
	case "function":
		f.Fail(jsonread.CodeUnsupported, "role", "this server does not support it; send a message of role tool with its 'tool_call_id'.")
	default:
		f.Fail(jsonread.CodeValue, "role", "expected one of system, developer, user, assistant and tool, but got '%s'.", jsonread.Brief(m.Role))
	}
	if text, given := readContent(f); given {
		m.Content = text
	} else if m.Role != RoleAssistant {
		f.Fail(jsonread.CodeMissing, "content", "a message of role %s needs a content.", m.Role)
	}
	f.String("name", &m.Name)
	f.Text("reasoning_content", &m.ReasoningContent)
	f.String("tool_call_id", &m.ToolCallID)
	if calls := readFunctions(f, "tool_calls", "arguments"); calls != nil {
		if m.ToolCalls = calls; m.Role != RoleAssistant {
			f.Fail(jsonread.CodeValue, "tool_calls", "messages of role assistant alone call tools.")
		}
	}
	Reader{f}.Refuse("function_call", "audio")
	f.Ignore("refusal", "annotations")
	return m
}

// readContent reads a message's content: a string, or a list of text parts.
func readContent(f *jsonread.Fields) (content string, given bool) {
	raw, ok := f.Take("content")
	if !ok {
		return "", false
	}
	if s, ok := jsonread.Text(raw); ok {
		return s, true
	}
	if jsonread.Kind(raw) != "a list" {
		f.WrongType("content", "a string or a list of content parts", raw)
		return "", true
	}
	var b strings.Builder
	for _, part := range f.EachOf("content", raw, MaxParts) {
		var kind, text string
		part.String("type", &kind)
		switch kind {
		case "text", "refusal": // an assistant's, in place of a text
			part.Text(kind, &text)
		default:
			part.Fail(jsonread.CodeUnsupported, "type", "this server reads parts of type text only, but got '%s'.", jsonread.Brief(kind))
		}
		b.WriteString(text)
	}
	return b.String(), true
}

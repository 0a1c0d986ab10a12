package tts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// renderPrompt prepares messages, all of them.
func renderPrompt(ctx context.Context, m *Model, p *Prompt, limit int) (*Prepared, error) {
	rendered, err := m.Render(ctx, p)
	if err != nil {
		return nil, err
	}
	ids, err := encodeText(ctx, m, rendered, tokenizer.Options{ParseSpecial: true}, limit) // the template writes the BOS itself
	if err != nil {
		if long, ok := err.(*ContextError); ok {
			long.Part = PartMessages
		}
		return nil, err
	}
	if len(p.Before) > 0 {
		if bos, ok := m.Tokenizer.BOS(); ok && len(ids) > 0 && ids[0] == bos {
			ids = ids[1:] // it is where the tokens begin
		}
		ids = slices.Concat(p.Before, ids)
	}
	out := &Prepared{Tokens: ids, Text: rendered, Messages: p.Messages}
	if p.Ending != ContinueFinalMessage {
		out.Thinking = EndsInThought(m, ids)
		return out, nil
	}
	last := &p.Messages[len(p.Messages)-1]
	out.Prefix, _ = last.Content.(string)
	switch {
	case out.Prefix != "":
		out.ContinuesText = true
		marks := m.ThoughtMarks()
		out.Thinking = strings.LastIndex(out.Prefix, marks.Begin) > strings.LastIndex(out.Prefix, marks.End)
	case last.ReasoningContent != "":
		out.ContinuesText, out.Thinking = true, true
	default:
		out.Thinking = EndsInThought(m, ids)
	}
	return out, nil
}

// encodeText encodes a text, unless it must have more than limit tokens. It stops when
// ctx ends.
func encodeText(ctx context.Context, m *Model, text string, opt tokenizer.Options, limit int) ([]int32, error) {
	if least := m.LeastTokens(text); least > limit {
		return nil, &ContextError{Limit: m.Context, Prompt: least, Part: PartPrompt}
	}
	ctx, leave, err := cpulimit.EnterForText(ctx, len(text))
	if err != nil {
		return nil, err
	}
	defer leave()
	var runs [][]int32
	for run := range m.Tokenizer.Runs(text, opt) {
		runs = append(runs, slices.Clone(run))
		if err := cpulimit.Pause(ctx); err != nil {
			return nil, err
		}
	}
	return slices.Concat(runs...), nil
}

// cut marks where an open message ends. Templates may take off the space
// after it.
const (
	cut      = "{lutra: goes on here}"
	cutSpace = cut + " "
)

// Render returns the text that the model reads for a conversation, with all of its
// messages.
func (m *Model) Render(ctx context.Context, p *Prompt) (string, error) {
	messages := slices.Clone(p.Messages)
	for i := range messages {
		if messages[i].Content == nil && messages[i].ToolCalls == nil {
			messages[i].Content = "" // templates would write None
		}
	}
	if p.Ending == ContinueFinalMessage {
		if err := leaveOpen(&messages[len(messages)-1]); err != nil {
			return "", err
		}
	}
	text, err := writeTemplate(ctx, m, p, messages, false)
	if raised := (*template.RaisedError)(nil); errors.As(err, &raised) && len(p.Tools) > 0 && !m.Template.ReadsTools() {
		text, err = writeTemplate(ctx, m, p, messages, true)
	}
	if err != nil || p.Ending != ContinueFinalMessage {
		return text, err
	}
	at := strings.LastIndex(text, cut)
	if at < 0 {
		return "", fmt.Errorf("%w: it does not show the last message, which therefore cannot be continued", ErrTemplate)
	}
	if !strings.HasPrefix(text[at:], cutSpace) { // it trims messages
		return strings.TrimRight(text[:at], " \t\r\n"), nil
	}
	return text[:at], nil
}

// leaveOpen marks the end of what the answer continues: the message's text, or
// its thought where it has no text yet.
func leaveOpen(last *template.Message) error {
	text, ok := last.Content.(string)
	switch {
	case !ok || last.ToolCalls != nil:
		return fmt.Errorf("%w: only text can be continued", ErrTemplate)
	case text == "" && last.ReasoningContent != "":
		last.ReasoningContent += cutSpace
	default:
		last.Content = text + cutSpace
	}
	return nil
}

// writeTemplate renders messages with the template; toolsInUser as in toolcall.Format.Explain.
func writeTemplate(ctx context.Context, m *Model, p *Prompt, messages []template.Message, toolsInUser bool) (string, error) {
	if m.Template == nil {
		return "", fmt.Errorf("%w: model %q has none", ErrTemplate, m.Name)
	}
	tools, err := toolcall.Normalize(p.Tools)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	messages, err = m.ToolFormat().Explain(m.Template, tools, messages, toolsInUser)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	size := 0
	for i := range messages {
		if s, ok := messages[i].Content.(string); ok {
			size += len(s)
		}
	}
	ctx, leave, err := cpulimit.EnterForText(ctx, size)
	if err != nil {
		return "", err
	}
	defer leave()
	text, err := m.Template.Render(ctx, template.Input{
		Messages:            messages,
		Tools:               tools,
		AddGenerationPrompt: p.Ending == AddGenerationPrompt,
		BOS:                 m.Special(m.Tokenizer.BOS()),
		EOS:                 m.Special(m.Tokenizer.EOS()),
		Extra:               p.Extra,
		Adapt:               true,
	})
	if err != nil && ctx.Err() == nil {
		return "", fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	return text, err
}

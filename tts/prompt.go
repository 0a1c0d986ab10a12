package tts

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/text"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// Prompt is what a model goes on from: the first of Messages, Tokens and Text
// that is set.
type Prompt struct {
	Messages []template.Message // a conversation, rendered with the model's template
	Before   []int32            // token ids that stand before a conversation
	Tools    []any              // tool definitions as their JSON decodes; the template gets them as toolcall.Normalize writes them
	Extra    map[string]any     // further variables of the template
	Ending   Ending             // of the conversation
	Truncate bool               // leave out the oldest exchanges of a conversation that does not fit
	Tokens   []int32            // token ids, taken as they are
	Text     string             // plain text
	Infill   *Infill            // what Text stands before: the answer goes between; nil: nothing
	Bare     bool               // begin Text without the BOS that the model may want
	Literal  bool               // take the names of special tokens in Text for plain text
}

// Infill is what stands around a gap that the answer fills, besides the text before it.
type Infill struct {
	Suffix string // the text behind the gap
	Files  []File // others of the same project
}

// File is a text with a name.
type File struct{ Name, Text string }

// Ending is how a rendered conversation ends.
type Ending uint8

// The endings.
const (
	EndHeader Ending = iota // with the header of an answer
	EndClosed               // with the last message
	EndOpen                 // within the last message, which the answer continues
)

// Prepared is a prompt as the model reads it.
type Prepared struct {
	Tokens  []int32
	Text    string // what Tokens encode; empty where token ids were given
	Dropped int    // messages that were left out
	// Begun is the text of the message that the answer continues.
	Begun string
	// Thinking says that the model goes on in a thought, Midway that it goes on
	// in the midst of its thought or answer, whose white space then counts.
	Thinking, Midway bool

	messages []template.Message // those that were not left out
}

// opening is the event that a run begins with.
func (p *Prepared) opening() Event {
	return Event{What: Opening{Prompt: p.Tokens, Dropped: p.Dropped, Thinking: p.Thinking, Midway: p.Midway}}
}

// part is where the prompt comes from.
func (p *Prompt) part() Part {
	if p.Messages != nil {
		return PartMessages
	}
	return PartPrompt
}

// Prepare makes a prompt ready, as it would be for a request that bounds its
// answer to so many tokens; 0: to what is left of the context.
func (m *Model) Prepare(ctx context.Context, p *Prompt, maxTokens int) (*Prepared, error) {
	return m.prepare(ctx, p, maxTokens, math.MaxInt)
}

// Encode turns a prompt into tokens.
func (m *Model) Encode(ctx context.Context, p *Prompt) ([]int32, error) {
	out, err := m.Prepare(ctx, p, 0)
	if err != nil {
		return nil, err
	}
	return out.Tokens, nil
}

// PrepareRequest makes a request's prompt ready and checks that it fits the
// context. Errors: ErrEmpty, ErrToken, ErrTemplate, *ContextError, ctx's own.
func (m *Model) PrepareRequest(ctx context.Context, req *Request) (*Prepared, error) {
	out, err := m.prepare(ctx, &req.Prompt, req.Sampling.MaxTokens, m.Context)
	if err != nil {
		return nil, err
	}
	room := m.Context
	if !req.NoTokens {
		room--
	}
	switch n := len(out.Tokens); {
	case n == 0:
		return nil, ErrEmpty
	case n > room:
		return nil, &ContextError{Limit: m.Context, Prompt: n, Part: req.Prompt.part()}
	}
	return out, nil
}

// prepare is Prepare, but refuses a text that must have more than limit tokens
// before the work of encoding it.
func (m *Model) prepare(ctx context.Context, p *Prompt, maxTokens, limit int) (*Prepared, error) {
	switch {
	case p.Messages != nil:
		return m.fit(ctx, p, maxTokens, limit)
	case p.Tokens != nil:
		for i, id := range p.Tokens {
			if id < 0 || int(id) >= m.Vocab {
				return nil, fmt.Errorf("%w: token %d is %d, the vocabulary has %d", ErrToken, i, id, m.Vocab)
			}
		}
		return &Prepared{Tokens: p.Tokens, Thinking: m.thinks(p.Tokens)}, nil
	}
	if p.Infill != nil {
		return m.around(ctx, p, limit)
	}
	ids, err := m.encode(ctx, p.Text, tokenizer.Options{AddSpecial: !p.Bare, ParseSpecial: !p.Literal}, limit)
	if err != nil {
		return nil, err
	}
	return &Prepared{Tokens: ids, Text: p.Text, Thinking: m.thinks(ids)}, nil
}

// rendered prepares messages, all of them.
func (m *Model) rendered(ctx context.Context, p *Prompt, limit int) (*Prepared, error) {
	rendered, err := m.Render(ctx, p)
	if err != nil {
		return nil, err
	}
	ids, err := m.encode(ctx, rendered, tokenizer.Options{ParseSpecial: true}, limit) // the template writes the BOS itself
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
	out := &Prepared{Tokens: ids, Text: rendered, messages: p.Messages}
	if p.Ending != EndOpen {
		out.Thinking = m.thinks(ids)
		return out, nil
	}
	last := &p.Messages[len(p.Messages)-1]
	out.Begun, _ = last.Content.(string)
	switch {
	case out.Begun != "":
		out.Midway = true
		out.Thinking = strings.LastIndex(out.Begun, text.ThinkBegin) > strings.LastIndex(out.Begun, text.ThinkEnd)
	case last.ReasoningContent != "":
		out.Midway, out.Thinking = true, true
	default:
		out.Thinking = m.thinks(ids)
	}
	return out, nil
}

// encode encodes a text, unless it must have more than limit tokens. It stops when
// ctx ends.
func (m *Model) encode(ctx context.Context, text string, opt tokenizer.Options, limit int) ([]int32, error) {
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
// behind it.
const (
	cut      = "{lutra: goes on here}"
	cutSpace = cut + " "
)

// Render is the text that the model reads for a conversation, with all of its
// messages.
func (m *Model) Render(ctx context.Context, p *Prompt) (string, error) {
	messages := slices.Clone(p.Messages)
	for i := range messages {
		if messages[i].Content == nil && messages[i].ToolCalls == nil {
			messages[i].Content = "" // templates would write None
		}
	}
	if p.Ending == EndOpen {
		if err := leaveOpen(&messages[len(messages)-1]); err != nil {
			return "", err
		}
	}
	text, err := m.write(ctx, p, messages)
	if raised := (*template.RaisedError)(nil); errors.As(err, &raised) && len(p.Tools) > 0 && !m.Template.ReadsTools() {
		text, err = m.writeFor(ctx, p, messages, true)
	}
	if err != nil || p.Ending != EndOpen {
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

// write renders messages with the template.
func (m *Model) write(ctx context.Context, p *Prompt, messages []template.Message) (string, error) {
	return m.writeFor(ctx, p, messages, false)
}

// writeFor is write; toolsInUser as in explainTools.
func (m *Model) writeFor(ctx context.Context, p *Prompt, messages []template.Message, toolsInUser bool) (string, error) {
	if m.Template == nil {
		return "", fmt.Errorf("%w: model %q has none", ErrTemplate, m.Name)
	}
	tools, err := toolcall.Normalize(p.Tools)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	messages, err = m.explainTools(tools, messages, toolsInUser)
	if err != nil {
		return "", err
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
		AddGenerationPrompt: p.Ending == EndHeader,
		BOS:                 m.special(m.Tokenizer.BOS()),
		EOS:                 m.special(m.Tokenizer.EOS()),
		Extra:               p.Extra,
		Adapt:               true,
	})
	if err != nil && ctx.Err() == nil {
		return "", fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	return text, err
}

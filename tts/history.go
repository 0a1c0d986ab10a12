package tts

import (
	"context"
	"errors"
	"sort"

	"github.com/lutra-lm/lutra/models/template"
)

// fitContext prepares a conversation and leaves out exchanges that the model does not read: all but the latest MaxTurns. With
// Prompt.Truncate it leaves out as many of the oldest as it takes to make room for an answer. An exchange is what the user
// says and all that follows, up to where the user speaks again. System messages and the last exchange stay.
func fitContext(ctx context.Context, m *Model, p *Prompt, maxTokens, limit int) (*Prepared, error) {
	starts := exchanges(p.Messages)
	least := 0
	if m.MaxTurns > 0 {
		least = max(0, len(starts)-m.MaxTurns)
	}
	without := func(n int) (*Prepared, error) {
		if n == 0 {
			return renderPrompt(ctx, m, p, limit)
		}
		rest := *p
		rest.Messages = from(p.Messages, starts[n])
		out, err := renderPrompt(ctx, m, &rest, limit)
		if out != nil {
			out.Dropped = len(p.Messages) - len(rest.Messages)
		}
		return out, err
	}
	best, err := without(least)
	room := m.Context - reserveFor(m, maxTokens)
	if !p.Truncate || least >= len(starts)-1 || !overflows(best, err, room) {
		return best, err
	}
	// The fewest that have to go: what is left grows shorter with each.
	sort.Search(len(starts)-1-least, func(i int) bool {
		out, failed := without(least + 1 + i)
		fits := !overflows(out, failed, room)
		if fits || i == len(starts)-2-least {
			best, err = out, failed
		}
		return fits
	})
	return best, err
}

// overflows reports whether a conversation leaves too little room.
func overflows(p *Prepared, err error, room int) bool {
	var long *ContextError
	return errors.As(err, &long) || err == nil && len(p.Tokens) > room
}

// reserveFor returns the room that a truncated conversation leaves for the answer: what
// the request bounds it to, but no more than half of the context.
func reserveFor(m *Model, maxTokens int) int {
	if maxTokens == 0 {
		return m.Context / 4
	}
	return min(maxTokens, m.Context/2)
}

// exchanges returns the places where exchanges begin: at a user's message that
// follows another's.
func exchanges(messages []template.Message) []int {
	var starts []int
	before := ""
	for i := range messages {
		role := messages[i].Role
		if role == "user" && before != role {
			starts = append(starts, i)
		}
		if role != "system" {
			before = role
		}
	}
	return starts
}

// from returns the messages from start on, after the system messages before it.
func from(messages []template.Message, start int) []template.Message {
	var rest []template.Message
	for i := range messages {
		if i >= start || messages[i].Role == "system" {
			rest = append(rest, messages[i])
		}
	}
	return rest
}

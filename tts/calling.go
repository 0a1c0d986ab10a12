package tts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/grammar"
	grammarbudget "github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/grammar/schema"
	"github.com/lutra-lm/lutra/tts/constrain"
	"github.com/lutra-lm/lutra/tts/structure"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// Calling sets the model's calls of tools apart from its text, as Calls.
type Calling struct {
	Format *toolcall.Format
	Tools  []toolcall.Tool
	Single bool // further calls of a message are left out
	Only   bool // the prompt tells of more tools than these, which alone may be called

	held  []toolcall.Tool // that may or must be called
	bound toolcall.CallConstraint
}

// Filter filters the events of a run of n choices.
func (c *Calling) Filter(n int) Filter {
	parsers := make([]*toolcall.Parser, n)
	for i := range parsers {
		parsers[i] = c.Format.NewParser(c.Tools)
	}
	return func(e Event, emit func(Event) bool) bool {
		switch w := e.What.(type) {
		case Text:
			reasoning, text, calls := c.divide(w, parsers[e.Choice])
			return e.divided(emit, reasoning, text, calls)
		case End:
			if w.Finish == FinishStop && parsers[e.Choice].Calls() > 0 {
				w.Finish = FinishCalls
				e.What = w
			}
		}
		return emit(e)
	}
}

// divide takes the calls out of a text.
func (c *Calling) divide(t Text, p *toolcall.Parser) (reasoning Reasoning, rest Text, calls Calls) {
	said := t.Text
	t.Text = ""
	for _, part := range p.Push(said, t.Last) {
		reasoning += Reasoning(part.Reasoning)
		if part.Call == nil {
			t.Text += part.Text
		} else if !c.Single || part.Call.Index == 0 {
			calls = append(calls, *part.Call)
		}
	}
	return reasoning, t, calls
}

// Hold prepares a request whose answers may be calls. With must they have to be calls, with a name calls of that tool. If a
// call must be made, may be of a strict tool, or may not be of all tools in the prompt, it is held to the tools' names and
// schemas. The last call then ends the answer. The grammar is in use until ctx ends. Errors: *toolcall.SchemaError of a
// strict tool, and the errors of Model.Format.
func (c *Calling) Hold(ctx context.Context, req *Request, m *Model, must bool, name string) error {
	req.Marks, req.Calling = slices.Concat(c.Format.Marks, c.Format.Inner), c
	tools := c.Tools
	if name != "" {
		tools = slices.DeleteFunc(slices.Clone(tools), func(t toolcall.Tool) bool { return t.Name != name })
	}
	c.held, c.bound = tools, toolcall.CallConstraint{Required: must, Single: c.Single || name != "", Special: m.Formats.Special}
	if m.Thinks() {
		marks := m.ThoughtMarks()
		c.bound.Thought = [2]string{marks.Begin, marks.End}
	}
	if !must && !c.strict() && !c.Only {
		return nil
	}
	return c.hold(ctx, req, m, "")
}

// HoldAnswer holds the answers of a request that Hold has prepared to a format as well, for answers without
// calls. Its errors are the errors of Hold and of constrain.Formats.Format.
func (c *Calling) HoldAnswer(ctx context.Context, req *Request, m *Model, kind constrain.Kind, text string) error {
	if _, err := m.Formats.Format(ctx, kind, text); err != nil || c.bound.Required {
		return err
	}
	c.bound.Answer = func(f *schema.Combined) (grammar.Symbol, error) { return constrain.Answer(f, kind, text) }
	return c.hold(ctx, req, m, string(kind)+" "+text)
}

// strict reports whether arguments must meet their schema.
func (c *Calling) strict() bool {
	return slices.ContainsFunc(c.held, func(t toolcall.Tool) bool { return t.Strict })
}

// hold holds the answers of a request to calls of the tools, and to what answers says of others.
func (c *Calling) hold(ctx context.Context, req *Request, m *Model, answers string) error {
	format, err := c.format(ctx, m, c.held, answers)
	if err != nil && ctx.Err() == nil && !errors.Is(err, structure.ErrBusy) && !c.strict() { // all at once are too much: the model is trusted with the arguments
		tools := slices.Clone(c.held)
		for i := range tools {
			tools[i].Schema = nil
		}
		format, err = c.format(ctx, m, tools, answers)
	}
	req.Format, req.FormatThoughts = format, c.bound.Thought[0] != ""
	return err
}

// format returns what answers with calls are held to.
func (c *Calling) format(ctx context.Context, m *Model, tools []toolcall.Tool, answers string) (*structure.Format, error) {
	h := c.bound
	var key strings.Builder
	fmt.Fprintf(&key, "%s %v %v %v %q\n", c.Format.Name, h.Required, h.Single, h.Thought, answers)
	for _, t := range tools {
		fmt.Fprintf(&key, "%s %v %s\n", t.Name, t.Strict, t.Schema)
	}
	return m.Formats.Calls(ctx, key.String(), func(b *grammarbudget.Budget) (*grammar.Grammar, error) { return c.Format.Grammar(b, tools, h) })
}

// Read returns the calls in a whole answer in their order, a line each, by name and arguments
// (toolcall.Call.Canonical). It is false for an answer without any.
func (c *Calling) Read(text string) (calls string, ok bool) {
	p := c.Format.NewParser(c.Tools)
	var list []toolcall.Call
	for _, part := range p.Push(text, true) {
		list = toolcall.Join(list, part.Call)
	}
	if c.Single {
		list = list[:min(1, len(list))]
	}
	lines := make([]string, len(list))
	for i := range list {
		lines[i] = list[i].Canonical()
	}
	return strings.Join(lines, "\n"), len(list) > 0
}

// Apart returns the filters that set the thoughts of n choices of the model apart, and the calls of
// tools unless calling is nil.
func (m *Model) Apart(calling *Calling, n int) []Filter {
	if calling == nil {
		return []Filter{m.Thoughts(n)}
	}
	return []Filter{m.Thoughts(n), calling.Filter(n)}
}

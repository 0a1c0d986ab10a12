package tts

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/tts/toolcall"
)

// Calling is a strategy whose answers come with the model's calls of tools apart, in
// Delta.Calls.
type Calling struct {
	Strategy
	Format *toolcall.Format
	Tools  []toolcall.Tool
	Begun  string // what the prompt ends with, and every message thus begins with
	One    bool   // further calls of a message are left out
}

var _ Strategy = Calling{}

// Run implements Strategy.
func (c Calling) Run(ctx context.Context, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		parsers := make([]*toolcall.Parser, req.choices())
		begun := make([][]toolcall.Part, len(parsers))
		for i := range parsers {
			parsers[i] = c.Format.NewParser(c.Tools)
			begun[i] = slices.Clone(parsers[i].Push(c.Begun, false))
		}
		first := true
		for d, err := range c.Strategy.Run(ctx, req) {
			if err == nil && !first {
				parts := begun[d.Choice]
				begun[d.Choice] = nil
				c.divide(&d, parsers[d.Choice], parts)
			}
			first = false
			if !yield(d, err) {
				return
			}
		}
	}
}

// divide takes the calls out of a delta's text. parts come before it.
func (c Calling) divide(d *Delta, p *toolcall.Parser, parts []toolcall.Part) {
	text := d.Text
	d.Text = ""
	add := func(parts []toolcall.Part) {
		for _, part := range parts {
			d.Reasoning += part.Reasoning
			if part.Call == nil {
				d.Text += part.Text
			} else if !c.One || part.Call.Index == 0 {
				d.Calls = append(d.Calls, *part.Call)
			}
		}
	}
	add(parts)
	add(p.Push(text, d.Finish != ""))
	if d.Finish == FinishStop && p.Calls() > 0 {
		d.Finish = FinishCalls
	}
}

// ErrStrict says that a model's format does not let calls be held to their schemas.
var ErrStrict = errors.New("tts: calls in the model's format cannot be held to a schema unless one is required")

// Hold prepares a request whose answers may be calls, or must be one of a tool, of any
// with an empty name. Forced calls are held to their tool's schema, others to those of
// strict tools: the first call of an answer then ends it. Errors: ErrStrict, and what is
// wrong with the schema of a strict tool.
func (c *Calling) Hold(req *Request, m *Model, must bool, name string) error {
	strict := slices.ContainsFunc(c.Tools, func(t toolcall.Tool) bool { return t.Strict && (name == "" || t.Name == name) })
	var schema, mark string
	if must {
		c.Begun, schema = c.Format.Forced(c.Tools, name)
	} else if strict {
		mark, schema = c.Format.Held(c.Tools)
	}
	req.Prompt.Begin, req.Marks, req.Calls = c.Begun, c.Format.Marks, c.Read
	if schema == "" {
		if strict {
			return ErrStrict
		}
		return nil
	}
	format, err := m.Format(FormatSchema, schema)
	if err != nil && !strict { // the model is trusted with what cannot be held
		if must {
			c.Begun = c.Format.Begin(name)
			req.Prompt.Begin = c.Begun
		}
		return nil
	}
	req.Format, req.FormatAfter = format, mark
	return err
}

// Read is the calls in a whole answer, by name and arguments: the order of members and
// the white space between them do not matter. It is false for an answer without any.
func (c Calling) Read(text string) (calls string, ok bool) {
	p := c.Format.NewParser(c.Tools)
	var list []toolcall.Call
	for _, push := range []string{c.Begun, text} {
		for _, part := range p.Push(push, false) {
			list = toolcall.Join(list, part.Call)
		}
	}
	for _, part := range p.Push("", true) {
		list = toolcall.Join(list, part.Call)
	}
	var b strings.Builder
	for i := range list {
		if c.One && i > 0 {
			break
		}
		b.WriteString(list[i].Name + "(" + canonical(list[i].Arguments) + ")\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), b.Len() > 0
}

// canonical is JSON with its members in order and without white space, or what it is
// if it is no JSON.
func canonical(arguments string) string {
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return arguments
	}
	out, err := json.Marshal(v)
	if err != nil {
		return arguments
	}
	return string(out)
}

package tts

import (
	"context"
	"iter"
	"slices"

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

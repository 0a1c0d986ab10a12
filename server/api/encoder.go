package api

import (
	"strings"

	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// Encoder writes one answer as an API does: a stream by Event, KeepAlive and End, any other
// by Collect and Full. What it writes to a stream is a chunk, a jsonwrite.List of them, or
// nil for nothing. Methods are not called at once.
type Encoder interface {
	// Event returns what a stream says of an event. A Text has text or tokens.
	Event(tts.Event) any
	// KeepAlive returns what adds nothing.
	KeepAlive() any
	// End returns what ends a stream, whether it has failed by a fault or not.
	End(tts.Usage, *Fault) any
	// Collect takes in an event of an answer that is not streamed.
	Collect(tts.Event)
	// Full writes the answer that Collect has taken in.
	Full(*jsonwrite.Reply, tts.Usage)
}

// Choices collects the choices of an answer that is not streamed.
type Choices struct{ List []*Choice }

// Choice sums up the events of a choice.
type Choice struct {
	text, reasoning strings.Builder

	Calls  []toolcall.Call
	Tokens []tts.Token
	tts.End
}

// Text returns the answer's text, Reasoning what came before it.
func (c *Choice) Text() string      { return c.text.String() }
func (c *Choice) Reasoning() string { return c.reasoning.String() }

// Collect takes in an event.
func (c *Choices) Collect(e tts.Event) {
	for len(c.List) <= e.Choice {
		c.List = append(c.List, &Choice{})
	}
	one := c.List[e.Choice]
	switch w := e.What.(type) {
	case tts.Text:
		one.text.WriteString(w.Text)
		one.Tokens = append(one.Tokens, w.Tokens...)
	case tts.Reasoning:
		one.reasoning.WriteString(string(w))
	case tts.Calls:
		for i := range w {
			one.Calls = toolcall.Join(one.Calls, &w[i])
		}
	case tts.End:
		one.End = w
	}
}

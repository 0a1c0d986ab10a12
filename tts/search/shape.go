package search

import (
	"bytes"
	"slices"

	"github.com/lutra-lm/lutra/tts/text"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// shape follows the form of a candidate's text after its thought, to find where its solution steps end. nil
// stands for plain text, whose steps end only at delimiters.
type shape struct {
	thought text.Thought
	members *members         // nil: JSON is text like any other
	calls   *toolcall.Parser // nil: no tool may be called
	single  bool             // one call is all
	after   string           // what follows the calls and is none
}

// newShape returns the shape of an answer of which nothing has been generated.
func (in *searchInput) newShape() *shape {
	calling := in.req.Calling
	if !in.plan.Stepwise() || calling == nil && !in.plan.Step.Members {
		return nil
	}
	s := &shape{thought: in.model.ThoughtMarks().NewThought(in.prompt.thinking, false)}
	if in.plan.Step.Members {
		s.members = &members{}
	}
	if calling != nil {
		s.calls, s.single = calling.Format.NewParser(calling.Tools), calling.Single
	}
	s.push(in.prompt.begun)
	return s
}

// clone returns a shape that goes on from here on its own.
func (s *shape) clone() *shape {
	if s == nil {
		return nil
	}
	c := *s
	if s.members != nil {
		m := *s.members
		m.open = slices.Clone(m.open)
		c.members = &m
	}
	if s.calls != nil {
		c.calls = s.calls.Clone()
	}
	return &c
}

// push takes in what the candidate gains.
func (s *shape) push(gained string) {
	_, said := s.thought.Push(gained, false)
	if s.members != nil {
		s.members.push(said)
	}
	if s.calls == nil {
		return
	}
	called := s.calls.Calls() > 0
	for _, part := range s.calls.Push(said, false) {
		switch {
		case part.Call != nil:
			called = true
		case called && s.after == "":
			s.after = part.Text + part.Reasoning
		}
	}
}

// calling reports whether a call of a tool has begun, or may have: it is the candidate's last
// solution step, however long.
func (s *shape) calling() bool {
	return s != nil && s.calls != nil && (s.calls.Calls() > 0 || s.calls.Undecided())
}

// over reports whether the calls that end a candidate are complete, and where the text that
// follows them begins in what it has written.
func (s *shape) over(written []byte) (at int, over bool) {
	switch {
	case s == nil || s.calls == nil:
	case s.after != "":
		return bytes.LastIndex(written, []byte(s.after)), true
	case s.single && s.calls.Calls() > 1:
		return len(written), true
	}
	return 0, false
}

// within reports whether the text is within JSON, where solution steps end with members alone,
// and whether one ended with what was pushed last.
func (s *shape) within() (json, ended bool) {
	if s == nil || s.members == nil {
		return false, false
	}
	return len(s.members.open) > 0, s.members.ended
}

// members follows JSON to where members of objects, and items of arrays that are objects or
// arrays themselves, end with a comma. Other items are too short to judge.
type members struct {
	open            []byte // what the containers around begin with
	quoted, escaped bool   // in a string, after its backslash
	compound        bool   // the last value was an object or an array
	ended           bool   // one has ended with what was pushed last
}

// push takes in more text. Outside of objects and arrays any text may stand.
func (m *members) push(s string) {
	m.ended = false
	for _, c := range []byte(s) {
		switch {
		case m.escaped:
			m.escaped = false
		case m.quoted:
			m.escaped, m.quoted = c == '\\', c != '"'
		case c == '{' || c == '[':
			m.open, m.compound = append(m.open, c), false
		case len(m.open) == 0:
		case c == '}' || c == ']':
			m.open, m.compound = m.open[:len(m.open)-1], true
		case c == ',':
			m.ended = m.ended || m.compound || m.open[len(m.open)-1] == '{'
		case c == '"':
			m.quoted, m.compound = true, false
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			m.compound = false
		}
	}
}

package template

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Clients write calls of tools in ways that templates were not made for: with an empty
// text for none, with results in any order, with ids of their own. adapt brings them
// into the way that a template shows whole.

// adapt returns messages as the template wants them.
func (t *Template) adapt(messages []Message) ([]Message, error) {
	out := make([]Message, 0, len(messages))
	var order map[string]int // of the results that follow a call
	results := 0             // how many of them out ends with
	for i := range messages {
		m := messages[i]
		if m.Role == "tool" {
			out = append(out, m)
			results++
			ordered(out[len(out)-results:], order)
			continue
		}
		out, results, order = t.interleaved(out, results), 0, nil
		if m.ToolCalls != nil {
			calls, err := callsOf(&m)
			if err != nil {
				return nil, fmt.Errorf("template: message %d: %w", i, err)
			}
			order = map[string]int{}
			for n, c := range calls {
				if _, twice := order[c.id]; !twice {
					order[c.id] = n
				}
			}
			if m.Content == "" || m.Content == nil || !t.textBeside() {
				m.Content = t.silence()
			}
		}
		out = append(out, m)
	}
	return t.interleaved(out, results), nil
}

// call is one call of a message.
type call struct {
	id  string
	raw json.RawMessage
}

// callsOf returns the calls of a message.
func callsOf(m *Message) ([]call, error) {
	data, err := json.Marshal(m.ToolCalls)
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, err
	}
	out := make([]call, len(list))
	for i, raw := range list {
		var c struct{ ID string }
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, err
		}
		out[i] = call{c.ID, raw}
	}
	return out, nil
}

// ordered moves the last of some results to its place in the order of their calls: not
// all templates show whose result one is.
func ordered(results []Message, order map[string]int) {
	at := func(i int) int {
		if n, ok := order[results[i].ToolCallID]; ok {
			return n
		}
		return len(order)
	}
	for i := len(results) - 1; i > 0 && at(i) < at(i-1); i-- {
		results[i], results[i-1] = results[i-1], results[i]
	}
}

// interleaved makes of the message before the last results, if it has several calls and
// the template knows no more than one, a message for each call, with its result.
func (t *Template) interleaved(messages []Message, results int) []Message {
	at := len(messages) - results - 1
	if at < 0 || messages[at].ToolCalls == nil {
		return messages
	}
	m := messages[at]
	calls, err := callsOf(&m)
	if err != nil || len(calls) < 2 || t.severalCalls() {
		return messages
	}
	rest := slices.Clone(messages[at+1:])
	out := messages[:at]
	for i, c := range calls {
		m.ToolCalls = []json.RawMessage{c.raw}
		if i > 0 {
			m.Content, m.ReasoningContent = t.silence(), ""
		}
		out = append(out, m)
		if n := slices.IndexFunc(rest, func(r Message) bool { return r.ToolCallID == c.id }); n >= 0 {
			out, rest = append(out, rest[n]), slices.Delete(rest, n, n+1)
		}
	}
	return append(out, rest...)
}

// shortID returns nine letters and digits for an id: the only ones that some templates take.
func shortID(id string) string {
	const length = 9
	alien := func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	if len(id) == length && !strings.ContainsFunc(id, alien) || id == "" {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return base32.StdEncoding.EncodeToString(sum[:])[:length]
}

// silence returns the content of a message that calls tools and says nothing: some templates
// know calls by the null, others would write None.
func (f *findings) silence() any {
	if f.null() {
		return nil
	}
	return ""
}

package text

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/lutra-lm/lutra/models/template"
)

// usual are marks of templates that take thoughts out of answers and do not show them.
var usual = []Marks{
	Think,
	{Begin: "[THINK]", End: "[/THINK]"},
	{Begin: "<seed:think>", End: "</seed:think>"},
	{Begin: "<|START_THINKING|>", End: "<|END_THINKING|>"},
}

// MarksOf returns those of a model with a chat template: what that puts around a thought, else the usual ones
// that it knows, else those of Think.
func MarksOf(t *template.Template) Marks {
	if t == nil {
		none := Think
		none.None = true
		return none
	}
	source := t.Source()
	if strings.Contains(source, Channel.Begin) && strings.Contains(source, Channel.End) {
		return Channel // which may come again, as no probe shows
	}
	if m, ok := shown(t); ok {
		return m
	}
	for _, m := range usual {
		if strings.Contains(source, m.End) {
			return m
		}
	}
	none := Think
	none.None = true
	return none
}

// What a probe says and thinks stands in no template.
const (
	probeText    = "lutra_says"
	probeThought = "lutra_thinks"
)

// markPattern matches what may be a mark: a tag, or words between brackets.
var markPattern = regexp.MustCompile(`<[^<>\s"=']{1,80}>|\[/?[A-Z][A-Z_ ]{1,40}\]`)

// shown returns the marks that a template puts around a thought; false: it shows none.
func shown(t *template.Template) (Marks, bool) {
	arguments := `"{\"x\":\"y\"}"`
	if t.ObjectArguments() {
		arguments = `{"x":"y"}`
	}
	calls := json.RawMessage(`[{"id":"callid001","type":"function","function":{"name":"` + template.ProbeTools[0] + `","arguments":` + arguments + `}}]`)
	parts := json.RawMessage(`[{"type":"thinking","thinking":"` + probeThought + `"},{"type":"text","text":"` + probeText + `"}]`)
	for _, m := range []template.Message{
		{Content: probeText, ReasoningContent: probeThought},
		{Content: "", ReasoningContent: probeThought, ToolCalls: calls}, // some show those before calls alone
		{Content: parts},
	} {
		m.Role = "assistant"
		with, err := t.Turn(m)
		before, after, found := strings.Cut(with, probeThought)
		if err != nil || !found {
			continue
		}
		if m.ReasoningContent == "" {
			m.Content = probeText
		}
		m.ReasoningContent = ""
		without, err := t.Turn(m)
		if err != nil {
			continue
		}
		header, _ := t.Header()
		if marks, ok := around(before, after, without, header); ok {
			return marks, true
		}
	}
	return Marks{}, false
}

// around returns the marks between which a thought stands in a turn. without is the turn without it, header
// what the prompt ends with.
func around(before, after, without, header string) (m Marks, ok bool) {
	begins, ends := markPattern.FindAllStringIndex(before, -1), markPattern.FindAllStringIndex(after, -1)
	if len(ends) == 0 || strings.TrimSpace(after[:ends[0][0]]) != "" {
		return m, false
	}
	for n := range min(len(begins), len(ends)) { // as many tags as tell them from what is there without
		m.Begin, m.End = strings.TrimSpace(before[begins[len(begins)-1-n][0]:]), after[ends[0][0]:ends[n][1]]
		turns := markPattern.FindAllString(strings.TrimSuffix(strings.TrimSpace(header), m.Begin), -1)
		if len(turns) > 0 && strings.Contains(m.End, turns[len(turns)-1]) { // the answer would be a turn of its own
			return m, false
		}
		i := strings.Index(without, m.Begin)
		if i < 0 || strings.HasPrefix(strings.TrimLeft(without[i+len(m.Begin):], " \t\r\n"), m.End) {
			return m, true
		}
	}
	// The prompt may end with words that begin a thought, and no mark.
	n := 0
	for n < min(len(before), len(header)) && before[n] == header[n] {
		n++
	}
	m = Marks{Begin: strings.TrimSpace(header[n:]), End: after[ends[0][0]:ends[0][1]]}
	return m, m.Begin != ""
}

// has tells whether a special token of that name is one of the marks, or a part of one.
func (m Marks) has(name string) bool {
	return name != "" && (m.Begin == name || m.End == name || markPattern.MatchString(name) && (strings.Contains(m.Begin, name) || strings.Contains(m.End, name)))
}

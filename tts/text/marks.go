package text

import (
	"encoding/json"
	"slices"
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

// MarksOf returns the marks of a model with a chat template. It takes the marks that the template puts around
// a thought and around an answer, else the usual ones that it knows, else Think.
func MarksOf(t *template.Template) Marks {
	none := Think
	none.None = true
	if t == nil {
		return none
	}
	source := t.Source()
	if strings.Contains(source, Channel.Begin) && strings.Contains(source, Channel.End) {
		return Channel // which may come again, as no probe shows
	}
	m, ok := shown(t)
	if !ok {
		m = none
		if i := slices.IndexFunc(usual, func(m Marks) bool { return strings.Contains(source, m.End) }); i >= 0 {
			m = usual[i]
		}
	}
	m.Before, m.After = m.answer(t)
	return m
}

// answer returns what a template puts around an answer, behind what the prompt ends with and a thought.
func (m *Marks) answer(t *template.Template) (before, after string) {
	turn, err := t.Turn(template.Message{Role: "assistant", Content: probeText})
	before, after, found := strings.Cut(turn, probeText)
	header, fault := t.Header()
	if err != nil || fault != nil || !found {
		return "", ""
	}
	n := 0
	for n < min(len(before), len(header)) && before[n] == header[n] {
		n++
	}
	n = template.MarkStart(before, n)
	if open := strings.TrimSpace(header[n:]); open != "" && !strings.HasPrefix(open, m.Begin) {
		return "", "" // the prompt has what answers in messages have not
	}
	before = strings.TrimSpace(before[n:])
	before = strings.TrimSpace(strings.TrimPrefix(before, m.Begin))
	before = strings.TrimSpace(strings.TrimPrefix(before, m.End))
	if after = strings.TrimSpace(after); before == "" || len(before)+len(after) > mostAround {
		return "", ""
	}
	if marks := template.Marks(after); len(marks) == 0 || !strings.HasPrefix(after, marks[0]) {
		after = ""
	}
	return before, after
}

// mostAround bounds what stands around an answer, in bytes.
const mostAround = 512

// What a probe says and thinks stands in no template.
const (
	probeText    = "lutra_says"
	probeThought = "lutra_thinks"
)

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
		if marks, ok := apart(with, without, header); ok {
			return marks, true
		}
		if marks, ok := marksBetween(before, after, without, header); ok {
			return marks, true
		}
	}
	return Marks{}, false
}

// apart returns the marks of a thought that is a part of a message of its own, as the answer is. They are the texts that begin
// each part, and the text that ends the thought and begins the next part.
func apart(with, without, header string) (m Marks, ok bool) {
	part, found := strings.CutPrefix(with, header)
	answer, found2 := strings.CutPrefix(without, header)
	begin, part, found3 := strings.Cut(part, probeThought)
	end, _, found4 := strings.Cut(part, probeText)
	before, _, found5 := strings.Cut(answer, probeText)
	m = Marks{Begin: strings.TrimSpace(begin), End: strings.TrimSpace(strings.TrimSuffix(end, before))}
	return m, found && found2 && found3 && found4 && found5 && strings.TrimSpace(before) != "" &&
		strings.HasSuffix(end, before) && m.Begin != "" && len(template.Marks(m.End)) > 1
}

// marksBetween returns the marks between which a thought stands in a turn. without is the turn without it, header
// what the prompt ends with.
func marksBetween(before, after, without, header string) (m Marks, ok bool) {
	begins, ends := template.MarkPattern.FindAllStringIndex(before, -1), template.MarkPattern.FindAllStringIndex(after, -1)
	if len(ends) == 0 || strings.TrimSpace(after[:ends[0][0]]) != "" {
		return m, false
	}
	for n := range min(len(begins), len(ends)) { // as many tags as tell them from what is there without
		m.Begin, m.End = strings.TrimSpace(before[begins[len(begins)-1-n][0]:]), after[ends[0][0]:ends[n][1]]
		turns := template.Marks(strings.TrimSuffix(strings.TrimSpace(header), m.Begin))
		if len(turns) > 0 && slices.Contains(template.Marks(m.End), turns[len(turns)-1]) { // the answer would be a turn of its own
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
	all := []string{m.Begin, m.End, m.Before, m.After}
	return name != "" && (slices.Contains(all, name) || template.MarkPattern.MatchString(name) &&
		slices.ContainsFunc(all, func(mark string) bool { return strings.Contains(mark, name) }))
}

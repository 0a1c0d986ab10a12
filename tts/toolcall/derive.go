package toolcall

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/text"
)

// What a template makes of a call is found by rendering some whose names, arguments and ids stand nowhere
// else, and seeing what is the same around them.

// errNoCalls says that a template shows no calls.
var errNoCalls = errors.New("it shows no calls of tools")

// unclear says what probes of a template do not show.
type unclear string

func (e unclear) Error() string { return "its calls of tools cannot be told: " + string(e) }

// The probes. Of the first call's arguments there are two, to see what stands between them.
const (
	probeText  = "lutra_says"
	firstName  = "lutra_first"
	secondName = "lutra_second"
	argumentA  = `{"lutra_a":"value_of_a","lutra_b":"value_of_b"}`
	argumentC  = `{"lutra_c":"value_of_c"}`
)

// The bounds of a probe's text, and of what stands around names and arguments, in bytes.
const (
	mostTurn = 1 << 16
	mostForm = 2 << 10
)

// probe renders answers.
type probe struct {
	t   *template.Template
	ids [2]string
}

// turn returns what stands behind the question for an answer with these calls, with holes for ids.
func (p *probe) turn(content any, arguments ...string) (string, error) {
	m := template.Message{Role: "assistant", Content: content}
	var calls []json.RawMessage
	for i, a := range arguments {
		written := jsonText(a)
		if p.t.ObjectArguments() {
			written = []byte(a)
		}
		calls = append(calls, fmt.Appendf(nil, `{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, p.ids[i], template.ProbeTools[i], written))
	}
	if calls != nil {
		m.ToolCalls = calls
	}
	text, err := p.t.Turn(m)
	if err != nil {
		return "", unclear(err.Error())
	}
	if len(text) > mostTurn || strings.ContainsAny(text, holeID+holeIndex+holeName) {
		return "", unclear("what it writes of them is too long, or has characters for private use")
	}
	if !strings.Contains(p.ids[0], firstName) {
		text = strings.NewReplacer(p.ids[0], holeID, p.ids[1], holeID).Replace(text)
	}
	return text, nil
}

// derive returns the format in which a template writes calls.
func derive(t *template.Template) (*Format, error) {
	if !t.ReadsCalls() {
		return nil, errNoCalls
	}
	p := &probe{t: t, ids: [2]string{"callid001", "callid002"}}
	one, err := p.turn("", argumentA)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(one, firstName) { // some write ids that have the name
		p.ids = [2]string{"functions." + firstName + ":0", "functions." + secondName + ":1"}
		if one, err = p.turn("", argumentA); err != nil {
			return nil, err
		}
	}
	two, err := p.turn("", argumentA, argumentC)
	if err != nil {
		return nil, err
	}
	plain, err := p.turn(probeText)
	if err != nil {
		return nil, err
	}
	both, err := p.turn(probeText, argumentA)
	if err != nil {
		both = ""
	}
	d := &derivation{probe: p, one: one, two: two, plain: plain, both: both}
	f, err := d.form()
	if err != nil {
		return nil, err
	}
	out := newFormat(fmt.Sprintf("template-%x", sha256.Sum256(fmt.Appendf(nil, "%+v", f)))[:len("template-")+16], f)
	if slices.Contains(out.opens, "") { // which any text would begin with
		return nil, unclear("nothing begins a call")
	}
	return out, d.check(out)
}

// derivation is the work on a template's turns.
type derivation struct {
	*probe
	one, two, plain, both string // turns with one call, two, a text, and a text before one call
	header                int    // bytes of a turn before the answer
	ending                string // what stands behind a text
}

// shown is a call in a turn.
type shown struct {
	before    string // behind the header, or the arguments of the call before
	middle    string
	arguments string
	after     string // up to the end of the turn
}

func (d *derivation) form() (f form, err error) {
	at := strings.Index(d.plain, probeText)
	if at < 0 {
		return f, unclear("it does not show texts")
	}
	if d.ending = d.plain[at+len(probeText):]; strings.TrimSpace(d.ending) == "" {
		d.ending = d.behindText()
	}
	d.header = tagStart(d.one, common(d.one, d.plain[:at]))
	if begun, err := d.t.Header(); err == nil && strings.HasPrefix(d.one, begun) && strings.HasPrefix(d.two, begun) {
		n := len(begun)
		for _, mark := range template.MarkPattern.FindAllStringIndex(d.one[:max(d.header, n)], -1) {
			n = max(n, mark[1])
		}
		d.header = n // what a text and a call have alike behind the prompt are marks alone
	}
	if before := text.MarksOf(d.t).Before; before != "" {
		f.all = d.plain[strings.LastIndex(d.plain[:at], before):at]
	}

	first, kind, err := d.call(d.two[d.header:], firstName, argumentA, &f)
	if err != nil {
		return f, err
	}
	f.arguments = kind
	end := strings.TrimRight(d.ending, " \t\r\n")
	second, _, err := d.call(first.after, secondName, argumentC, &f)
	if err != nil {
		return f, err
	}
	apart := end != "" && strings.Contains(first.before, end)
	if apart && tokenizer.EndsTurn(end) {
		return f, unclear("a turn ends before the first")
	}
	first.before = d.bare(first.before)
	f.tail = d.ending
	if apart || end != "" && strings.Contains(second.before, end) || second.before == "" && kind == objectKind { // each call is a turn of its own
		if first, _, err = d.call(d.one[d.header:], firstName, argumentA, &f); err != nil {
			return f, err
		}
		f.once = true
		f.begin = strings.TrimLeft(d.bare(first.before), " \t\r\n")
		if f.middle, f.end = first.middle, d.unended(first.after); apart {
			f.open = d.ending
		}
		return f, d.finish(&f)
	}
	first.before = strings.ReplaceAll(first.before, firstName, holeName)
	second.before = strings.ReplaceAll(second.before, secondName, holeName)
	d.number(&f, &first, &second)
	if first.middle != second.middle {
		return f, unclear("what stands between name and arguments differs from call to call")
	}
	f.middle = first.middle
	f.begin = strings.TrimLeft(commonEnd(first.before, second.before), " \t\r\n")
	f.open = strings.TrimLeft(strings.TrimSuffix(first.before, f.begin), " \t\r\n")
	rest := strings.TrimSuffix(second.before, f.begin)
	f.end = rest[:tagStart(rest, common(rest, second.after))]
	if f.end == rest && f.begin == "" { // a line's end between calls stands behind the last one, too
		f.end = strings.TrimRight(rest, " \t\r\n")
	}
	f.between = rest[len(f.end):]
	f.close = strings.TrimRight(d.unended(second.after[len(f.end):]), " \t\r\n")
	if strings.TrimSpace(f.open) == "" {
		f.open, f.close = "", ""
	}
	return f, d.finish(&f)
}

// finish looks at what has been found.
func (d *derivation) finish(f *form) error {
	_, again, named := strings.Cut(f.begin, holeName)
	if strings.Contains(f.open+f.begin+f.middle+f.between, "lutra_") || strings.Contains(f.open+again+f.between, holeName) ||
		named && (len(template.Marks(again)) == 0 || !strings.HasPrefix(again, template.Marks(again)[0])) {
		return unclear("the name stands more than once")
	}
	if f.open+f.begin == "" && (f.arguments != objectKind || f.objects.whole || strings.TrimSpace(f.middle) != "" || !strings.HasPrefix(f.middle, "\n") || strings.TrimSpace(f.between) == "") {
		return unclear("nothing begins a call")
	}
	if len(strings.Join(f.texts(), f.between)) > mostForm {
		return unclear("what stands around them is too long")
	}
	if f.arguments == elementKind && len(template.Marks(f.end)) == 0 {
		return unclear("nothing ends a call")
	}
	if f.arguments != objectKind {
		return nil
	}
	return f.findMembers()
}

// findMembers finds the members of a call that is an object: its name and its arguments.
func (f *form) findMembers() error {
	brace := strings.LastIndex(f.begin, "{")
	if brace < 0 {
		return nil // a name before the arguments
	}
	object := f.begin[brace:] + firstName + f.middle + argumentA + f.end
	var members map[string]any
	if json.NewDecoder(strings.NewReader(strings.NewReplacer(holeID, "x", holeIndex, "0").Replace(object))).Decode(&members) != nil || strings.Count(f.begin, "{") > 1 {
		return unclear("they are objects within objects")
	}
	f.objects.whole = true
	for key, v := range members {
		switch {
		case v == firstName:
			f.objects.name = key
		case isArguments(v) && key != firstName:
			f.objects.arguments = key
		}
	}
	if _, keyed := members[firstName]; !keyed && (f.objects.name == "" || f.objects.arguments == "") {
		return unclear("they are objects without a name")
	}
	return nil
}

func isArguments(v any) bool {
	m, ok := v.(map[string]any)
	return ok && m["lutra_a"] != nil
}

// bare returns what stands before a call without what belongs to a thought or to a text that are empty.
func (d *derivation) bare(before string) string {
	marks := text.MarksOf(d.t)
	if rest, begun := strings.CutPrefix(strings.TrimSpace(before), marks.Begin); begun {
		if rest, ended := strings.CutPrefix(strings.TrimSpace(rest), marks.End); ended {
			before = rest
		}
	}
	at := strings.Index(d.both, probeText)
	if at < 0 {
		return before
	}
	behind := d.both[at+len(probeText):]
	if n := tagStart(behind, common(behind, d.ending)); strings.TrimSpace(behind[:n]) != "" {
		if i := strings.Index(before, behind[:n]); i >= 0 {
			return before[i+n:]
		}
	}
	if i := strings.Index(behind, firstName); i >= 0 { // all that stands there whether or not a text comes first
		same := commonEnd(behind[:i], before)
		if strings.TrimSpace(same) != "" {
			return same
		}
	}
	return before
}

// behindText returns the mark that stands behind a text which is not the last one.
func (d *derivation) behindText() string {
	text, err := d.t.Turn(template.Message{Role: "assistant", Content: probeText}, template.Message{Role: "user", Content: "x"})
	_, behind, ok := strings.Cut(text, probeText)
	if at := template.MarkPattern.FindStringIndex(behind); err == nil && ok && at != nil && strings.TrimSpace(behind[:at[0]]) == "" {
		return behind[:at[1]]
	}
	return ""
}

// unended returns what stands behind a call without what ends the turn.
func (d *derivation) unended(after string) string {
	end := strings.TrimSpace(d.ending)
	if at := strings.LastIndex(after, end); end != "" && at >= 0 && strings.TrimSpace(after[at+len(end):]) == "" {
		return after[:at]
	}
	same := commonEnd(after, d.ending)
	return after[:len(after)-len(same)]
}

// number makes holes of the numbers of calls, where they have some.
func (d *derivation) number(f *form, first, second *shown) {
	for base := range 2 {
		a, b := fmt.Sprint(base), fmt.Sprint(base+1)
		if standalone(first.before+"\x00"+first.middle, a) < 0 || standalone(second.before+"\x00"+second.middle, b) < 0 {
			continue
		}
		f.base = base
		for _, s := range []*string{&first.before, &first.middle} {
			*s = holed(*s, a)
		}
		for _, s := range []*string{&second.before, &second.middle} {
			*s = holed(*s, b)
		}
		second.after = holed(second.after, b)
		return
	}
}

// standalone finds a number that is no part of a word; -1: there is none.
func standalone(text, number string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], number)
		if i < 0 {
			return -1
		}
		i += from
		word := func(at int) bool { return at >= 0 && at < len(text) && nameLength(text[at:at+1]) == 1 }
		if !word(i-1) && !word(i+len(number)) {
			return i
		}
		from = i + 1
	}
}

func holed(text, number string) string {
	for {
		i := standalone(text, number)
		if i < 0 {
			return text
		}
		text = text[:i] + holeIndex + text[i+len(number):]
	}
}

// check holds a format to what it comes from.
func (d *derivation) check(f *Format) error {
	turn, want := d.two, []Call{{Name: firstName, Arguments: argumentA}, {Name: secondName, Arguments: argumentC}}
	if f.form.once {
		turn, want = d.one, want[:1]
	}
	p := f.NewParser([]Tool{{Name: firstName}, {Name: secondName}})
	var got []Call
	for _, part := range p.Push(d.unended(turn[d.header:]), true) {
		got = Join(got, part.Call)
	}
	if !slices.EqualFunc(got, want, func(a, b Call) bool { return a.Canonical() == b.Canonical() }) {
		return unclear("what it writes of two is not read as two")
	}
	return nil
}

// common returns how many bytes two texts begin with alike.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// commonEnd returns what two texts end with alike, from where no tag is cut.
func commonEnd(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	same := a[len(a)-n:]
	for _, text := range []string{a, b} {
		for _, mark := range template.MarkPattern.FindAllStringIndex(text, -1) {
			if at := len(text) - len(same); mark[0] < at && at < mark[1] {
				same = text[mark[1]:]
			}
		}
	}
	for _, pair := range []string{"<>", "[]"} {
		if end := strings.IndexByte(same, pair[1]); end >= 0 && n < max(len(a), len(b)) {
			if open := strings.IndexByte(same, pair[0]); open < 0 || open > end {
				same = same[end+1:]
			}
		}
	}
	for same != "" && same[0]&0xc0 == 0x80 { // of a character
		same = same[1:]
	}
	return same
}

// tagStart returns where the tag begins that the first n bytes of a text end within, else n.
func tagStart(text string, n int) int {
	text = text[:template.MarkStart(text, n)]
	n = len(text)
	for n > 0 && n > len(text)-4 && text[n-1]&0xc0 == 0x80 {
		n--
	}
	if open := strings.LastIndexByte(text, '<'); open > strings.LastIndexByte(text, '>') {
		n = min(n, open)
	}
	if open := strings.LastIndexByte(text, '['); open >= 0 && strings.Trim(text[open:], "[/ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" {
		n = min(n, open)
	}
	return n
}

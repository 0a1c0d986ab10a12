package toolcall

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/template"
)

// form describes a template's calls, to the letter:
//
//	open (begin NAME middle ARGUMENTS end) between (begin NAME middle ARGUMENTS end) … close
//
// In begin, middle and end a call's id stands at holeID, and its number at holeIndex; in begin its name, where it
// stands twice, at holeName.
type form struct {
	open, begin, middle, end, between, close string

	tail string // what ends the turn
	all  string // what a part begins with that is text, where parts say for whom they are

	arguments kind
	base      int        // number of the first call, where they are numbered
	once      bool       // a message has one call at most
	objects   objectForm // of calls that are objects
	elements  element    // of arguments that are elements
	quote     string     // around strings, of arguments that are marked
}

const (
	holeID    = "\uE000"
	holeIndex = "\uE001"
	holeName  = "\uE002"
)

// kind is a way of writing arguments.
type kind uint8

const (
	objectKind  kind = iota // a JSON object
	elementKind             // an element for each
	markedKind              // an object with a mark around strings
	pythonKind              // arguments of a call in Python, by keyword
)

// hole is where arguments of a kind stand in a pattern.
func (k kind) hole() string { return [...]string{"%a", "%e", "%m", "%k"}[k] }

// objectForm says that a call is an object, whose members are a name and arguments.
type objectForm struct {
	whole           bool
	name, arguments string // keys; both empty: the name is the key of the arguments
}

// element describes the text of an argument: open NAME named VALUE close.
type element struct {
	open, close, between string
	named                []named
}

// named is the text between an argument's name and its value.
type named struct {
	literal string
	says    bool // whether the value is text
	text    bool
}

// What may be a token within a tag: DeepSeek's <｜DSML｜invoke, Kimi K3's <|open|>call<|sep|>.
var (
	innerPattern = regexp.MustCompile(`(</?)(｜[^｜<>\s]{1,32}｜)([^>])`)
	tokenPattern = regexp.MustCompile(`<\|\w+\|>`)
)

// innerMarks returns the tokens within tags of a text.
func innerMarks(text string) (list []string) {
	for _, m := range innerPattern.FindAllStringSubmatch(text, -1) {
		list = append(list, m[2])
	}
	for _, m := range template.Marks(text) {
		if tokens := tokenPattern.FindAllString(m, -1); len(tokens) > 1 {
			list = append(list, tokens...)
		}
	}
	return list
}

// newFormat makes the format of a form.
func newFormat(name string, f form) *Format {
	out := &Format{Name: name, form: f, enter: func(p *Parser, mark string) state {
		if mark == p.format.nameMark {
			p.held = mark + p.held
			p.raw = p.raw[:len(p.raw)-len(mark)]
		}
		return inCall
	}}
	out.collectMarks()
	out.answer = pattern(f.all)
	preamble, open := out.opening()
	if strings.Contains(f.begin+f.middle+f.end, holeID) {
		out.newID = func(int, string) string { return rand.Text()[:idLength] } // the letters and digits that templates want
	}
	if at := strings.Index(f.begin, "functions."); at >= 0 && strings.HasPrefix(f.middle, ":"+holeIndex) { // the id has all
		out.newID = func(index int, name string) string { return fmt.Sprintf("functions.%s:%d", name, index) }
	}
	out.frame(preamble, open)
	return out
}

// collectMarks sets the tokens that belong to a call.
func (out *Format) collectMarks() {
	for _, text := range out.form.texts() {
		out.Marks = append(out.Marks, template.Marks(text)...)
		out.Inner = append(out.Inner, innerMarks(text)...)
	}
	if len(out.Inner) > 0 { // of a mark of several tokens words would be left
		out.Marks = append(out.Marks, template.Marks(out.form.tail)...)
	}
	out.Marks = slices.DeleteFunc(out.Marks, func(m string) bool { return slices.Contains(out.Inner, m) })
	for _, list := range []*[]string{&out.Marks, &out.Inner} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
}

// opening sets what a call is told by, and returns what stands before all calls and what opens one.
func (out *Format) opening() (preamble, open string) {
	f := &out.form
	written := f.begin
	if before, behind, named := strings.Cut(f.begin, holeName); named {
		mark := template.Marks(behind)[0]
		out.lead = &lead{word: lastWord(f.between), before: strings.TrimSpace(before), after: mark}
		_, written, _ = strings.Cut(behind, mark)
	}
	begin := strings.TrimSpace(written)
	out.nameMark = begin
	for _, hole := range []string{holeID, holeIndex} {
		if at := strings.LastIndex(out.nameMark, hole); at >= 0 {
			out.nameMark = out.nameMark[at+len(hole):]
		}
	}
	opening := strings.TrimRight(strings.TrimSpace(f.open), "[{ \n")
	switch marks := template.Marks(written); {
	case f.open+f.begin == "":
		out.opens, out.unmarked, out.first = []string{strings.TrimSpace(f.between)}, true, inRecipient
		out.enter = func(*Parser, string) state { return inRecipient }
		out.bars = []string{"^" + recipientLine, pattern(f.between) + recipientLine}
	case len(marks) > 0 && slices.Contains(out.Inner, marks[0]): // which begins much else
		out.opens, out.nameMark = []string{begin}, ""
	case len(marks) > 0:
		out.openedBy(begin, marks[0])
	case len(template.Marks(f.open)) > 0:
		out.opens = template.Marks(f.open)[:1]
		out.openedByTag()
		return "", f.open + f.begin
	case strings.HasPrefix(begin, "<"):
		out.opens = []string{out.nameMark}
	case opening != "":
		out.opens = []string{opening}
		out.closing = strings.Trim(f.close, "] \n")
		return "", f.open + f.begin
	default:
		out.bare, out.unmarked = strings.TrimSpace(f.open + begin)[:1], true
		return "", f.open + f.begin
	}
	return f.open, f.begin
}

// openedBy has a call told by the mark that it begins with.
func (out *Format) openedBy(begin, mark string) {
	out.opens = []string{mark}
	if words, _, ok := strings.Cut(begin, "{"); ok && out.form.objects.whole && !strings.ContainsAny(words, holeID+holeIndex) && len(template.Marks(words)) > 0 {
		out.opens = []string{strings.TrimRight(words, " \n[")}
	}
	if _, behind, ok := strings.Cut(out.nameMark, mark); ok {
		out.nameMark = strings.TrimSpace(behind)
	}
	out.openedByTag()
}

// openedByTag has a call told by a tag before the name too.
func (out *Format) openedByTag() {
	if strings.HasPrefix(out.nameMark, "<") && !strings.Contains(out.nameMark, ">") {
		out.opens = append(slices.Clip(out.opens), out.nameMark)
	}
}

// frame sets how calls that are held to a grammar are written.
func (out *Format) frame(preamble, open string) {
	f := &out.form
	open, again, named := strings.Cut(open, holeName)
	space := ""
	if named {
		again, space = "%n"+pattern(again), " ?"
		out.answer = space + out.answer
	}
	more, _, _ := strings.Cut(f.between+f.begin, holeName)
	fr := frame{
		preamble: pattern(preamble), open: space + pattern(open), end: pattern(f.close),
		calls: []string{again + "%n" + pattern(f.middle) + f.arguments.hole() + pattern(f.end)},
	}
	if !f.once {
		fr.more = pattern(more)
	}
	fr.endOptional = len(template.Marks(f.close)) == 1 && template.Marks(f.close)[0] == strings.TrimSpace(f.close)
	out.frames = []frame{fr}
	switch {
	case f.open+f.begin == "":
		out.frames = []frame{fr, fr}
		out.frames[0].open, out.frames[1].open = "^", fr.more
	case out.unmarked:
		out.frames[0].open = "^" + fr.open
		out.bars = []string{"^[ \t\r\n]*" + pattern(strings.TrimSpace(open)) + "%n"}
	default:
		for _, o := range out.opens {
			out.bars = append(out.bars, pattern(o))
		}
	}
}

// lead begins a part of a message that is a call: the name of the tool, which is repeated after it.
type lead struct {
	word   string // may come first, of parts that are not the first
	before string
	after  string // a mark
}

// lastWord returns what stands behind all marks of a text.
func lastWord(text string) string {
	all := template.MarkPattern.FindAllStringIndex(text, -1)
	if len(all) == 0 {
		return ""
	}
	return strings.TrimSpace(text[all[len(all)-1][1]:])
}

// recipientLine is a part's first line, of one that is a call.
const recipientLine = `[ \t\r]*%n[ \t\r]*\n[ \t\r\n]*\{`

// idLength is the length of ids in templates that show one, after Mistral's, which take no other.
const idLength = 9

// texts returns all that stands between names, arguments and values.
func (f *form) texts() []string {
	list := []string{f.all, f.open, f.begin, f.middle, f.end, f.between, f.close, f.elements.open, f.elements.close}
	for _, n := range f.elements.named {
		list = append(list, n.literal)
	}
	return append(list, f.quote)
}

// pattern returns the pattern of a form's text.
func pattern(text string) string {
	var b strings.Builder
	last := 0
	plain := func(s string) {
		s = strings.ReplaceAll(regexp.QuoteMeta(s), "%", "[%]")
		s = strings.ReplaceAll(s, holeID, fmt.Sprintf("[a-zA-Z0-9]{%d}", idLength))
		b.WriteString(strings.ReplaceAll(s, holeIndex, "[0-9]{1,4}"))
	}
	for _, at := range template.MarkPattern.FindAllStringIndex(text, -1) {
		plain(text[last:at[0]])
		b.WriteString(text[at[0]:at[1]])
		last = at[1]
	}
	plain(text[last:])
	return b.String()
}

// written fills the holes of a text for the first call of a message.
func (f *Format) written(text, id, name string) string {
	return strings.NewReplacer(holeID, id, holeIndex, fmt.Sprint(f.form.base), holeName, name).Replace(text)
}

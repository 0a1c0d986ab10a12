package toolcall

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// form is how a template writes calls, to the letter:
//
//	open (begin NAME middle ARGUMENTS end) between (begin NAME middle ARGUMENTS end) … close
//
// In begin, middle and end a call's id stands at holeID, and its number at holeIndex.
type form struct {
	open, begin, middle, end, between, close string

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
)

// kind is how arguments are written.
type kind uint8

const (
	objectKind  kind = iota // a JSON object
	elementKind             // an element for each
	markedKind              // an object with a mark around strings
	pythonKind              // those of a call in Python, by keyword
)

// hole is where arguments of a kind stand in a pattern.
func (k kind) hole() string { return [...]string{"%a", "%e", "%m", "%k"}[k] }

// objectForm says that a call is an object, whose members are a name and arguments.
type objectForm struct {
	whole           bool
	name, arguments string // keys; both empty: the name is the key of the arguments
}

// element is how an argument is written: open NAME named VALUE close.
type element struct {
	open, close, between string
	named                []named
}

// named is what stands between an argument's name and its value.
type named struct {
	literal string
	says    bool // whether the value is text
	text    bool
}

// markPattern matches what may be a token of its own: a tag, or a word between brackets.
var markPattern = regexp.MustCompile(`<[^<>\s"=']{1,80}>|\[/?[A-Z][A-Z_ ]{1,40}\]`)

// innerPattern matches what may be a token within a tag, such as DeepSeek's <｜DSML｜invoke.
var innerPattern = regexp.MustCompile(`(</?)(｜[^｜<>\s]{1,32}｜)([^>])`)

// innerMarks returns the tokens within tags of a text.
func innerMarks(text string) (list []string) {
	for _, m := range innerPattern.FindAllStringSubmatch(text, -1) {
		list = append(list, m[2])
	}
	return list
}

// marksIn returns the marks in a text.
func marksIn(text string) []string { return markPattern.FindAllString(text, -1) }

// newFormat makes the format of a form.
func newFormat(name string, f form) *Format {
	out := &Format{Name: name, form: f, enter: func(p *Parser, mark string) state {
		if mark == p.format.nameMark {
			p.held = mark + p.held
			p.raw = p.raw[:len(p.raw)-len(mark)]
		}
		return inCall
	}}
	for _, text := range f.texts() {
		out.Marks = append(out.Marks, marksIn(text)...)
		out.Inner = append(out.Inner, innerMarks(text)...)
	}
	for _, list := range []*[]string{&out.Marks, &out.Inner} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	begin := strings.TrimSpace(f.begin)
	out.nameMark = begin
	for _, hole := range []string{holeID, holeIndex} {
		if at := strings.LastIndex(out.nameMark, hole); at >= 0 {
			out.nameMark = out.nameMark[at+len(hole):]
		}
	}
	preamble, open := f.open, f.begin
	switch marks := marksIn(f.begin); {
	case len(marks) > 0:
		out.opens = marks[:1]
		_, behind, _ := strings.Cut(out.nameMark, marks[0])
		if strings.Contains(out.nameMark, marks[0]) {
			out.nameMark = strings.TrimSpace(behind)
		}
		if strings.HasPrefix(out.nameMark, "<") && !strings.Contains(out.nameMark, ">") {
			out.opens = append(slices.Clip(out.opens), out.nameMark)
		}
	case len(marksIn(f.open)) > 0:
		out.opens = marksIn(f.open)[:1]
		if strings.HasPrefix(out.nameMark, "<") && !strings.Contains(out.nameMark, ">") {
			out.opens = append(slices.Clip(out.opens), out.nameMark)
		}
		preamble, open = "", f.open+f.begin
	case strings.HasPrefix(begin, "<"):
		out.opens = []string{out.nameMark}
	case strings.TrimRight(strings.TrimSpace(f.open), "[{ \n") != "":
		out.opens = []string{strings.TrimRight(strings.TrimSpace(f.open), "[{ \n")}
		out.closing = strings.Trim(f.close, "] \n")
		preamble, open = "", f.open+f.begin
	default:
		out.bare, out.unmarked = strings.TrimSpace(f.open + begin)[:1], true
		preamble, open = "", f.open+f.begin
	}
	if strings.Contains(f.begin+f.middle+f.end, holeID) {
		out.newID = func(int, string) string { return rand.Text()[:idLength] } // the letters and digits that templates want
	}
	if at := strings.Index(f.begin, "functions."); at >= 0 && strings.HasPrefix(f.middle, ":"+holeIndex) { // the id has all
		out.newID = func(index int, name string) string { return fmt.Sprintf("functions.%s:%d", name, index) }
	}
	fr := frame{
		preamble: pattern(preamble), open: pattern(open), end: pattern(f.close),
		calls: []string{"%n" + pattern(f.middle) + f.arguments.hole() + pattern(f.end)},
	}
	if !f.once {
		fr.more = pattern(f.between + f.begin)
	}
	fr.endOptional = len(marksIn(f.close)) == 1 && marksIn(f.close)[0] == strings.TrimSpace(f.close)
	if out.bars = out.opens; out.unmarked {
		fr.open = "^" + fr.open
		out.bars = []string{"^[ \t\r\n]*" + pattern(strings.TrimSpace(open)) + "%n"}
	} else {
		out.bars = nil
		for _, o := range out.opens {
			out.bars = append(out.bars, pattern(o))
		}
	}
	out.frames = []frame{fr}
	return out
}

// idLength is that of ids which templates show, by Mistral's, which take no other.
const idLength = 9

// texts returns all that stands between names, arguments and values.
func (f *form) texts() []string {
	list := []string{f.open, f.begin, f.middle, f.end, f.close, f.elements.open, f.elements.close}
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
	for _, at := range markPattern.FindAllStringIndex(text, -1) {
		plain(text[last:at[0]])
		b.WriteString(text[at[0]:at[1]])
		last = at[1]
	}
	plain(text[last:])
	return b.String()
}

// written fills the holes of a text for the first call of a message.
func (f *Format) written(text, id string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, holeID, id), holeIndex, fmt.Sprint(f.form.base))
}

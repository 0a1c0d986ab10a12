package toolcall

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/grammar/regex"
	"github.com/lutra-lm/lutra/grammar/schema"
	"github.com/lutra-lm/lutra/models/template"
)

// frame has patterns for the text around the calls of a message.
type frame struct {
	preamble    string   // what stands before open if a call is asked for
	open        string   // what the first one begins with; with ^: at the message's beginning alone
	calls       []string // the ways to write one after that, each with a name and arguments
	more        string   // what begins the next one; empty: there is none
	end         string   // what stands after the last one
	endOptional bool     // end may be missing, since vocabularies have it as the token that ends an answer
}

// A pattern says how models of the family were taught to write, to the letter: what has
// no choice in it can be spelled as they would spell it. It is an expression of package
// regex in which marks of the format may stand, outside parentheses, and
//
//	%n  the name of a tool
//	%a  the arguments of that tool, an object
//	%e  the same as elements
//	%m  the same with a mark around strings
//	%k  the same by keyword, as Python writes them
//	%h  a header of Harmony, up to where it ends
var holes = []string{"%n", "%a", "%e", "%m", "%k", "%h"}

// CallConstraint says how an answer is held to calls.
type CallConstraint struct {
	Required bool                   // it is a call; else it may be text, or text before calls
	Single   bool                   // it has one call at most
	Special  func(mark string) bool // the mark is a special token; nil: none is
	// Answer adds what an answer without calls is held to, and then no text stands before calls; nil: any
	// text. An answer that is a call in any case needs none.
	Answer func(*schema.Combined) (grammar.Symbol, error)
	// Thought begins and ends a thought that may stand before the answer; empty: none. Harmony has its own.
	Thought [2]string
}

// SchemaError says what is wrong with the schema of a tool.
type SchemaError struct {
	Name string // of the tool
	Err  error
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("the tool %s: %s", e.Name, strings.TrimPrefix(e.Err.Error(), "schema: "))
}

// Unwrap returns the cause.
func (e *SchemaError) Unwrap() error { return e.Err }

// anyObject is a schema that all arguments meet.
const anyObject = schema.Object

// Grammar returns the grammar of answers whose calls are calls of tools and meet their schemas. If a schema
// cannot be enforced and its tool is not strict, its arguments are any object. The grammar is charged to a
// budget. An error is a *SchemaError, budget.ErrBusy, or one of package schema.
func (f *Format) Grammar(charged *budget.Budget, tools []Tool, h CallConstraint) (*grammar.Grammar, error) {
	if f.thought[0] != "" {
		h.Thought = f.thought
	}
	b := &holder{format: f, hold: h, frame: schema.NewCombined(charged)}
	b.arena = b.frame.Arena()
	for i := range tools {
		if err := b.add(&tools[i]); err != nil {
			return nil, err
		}
	}
	answers, err := b.answers()
	if err != nil {
		return nil, err
	}
	return b.frame.Grammar(b.frame.Rule(answers...))
}

// holder makes the grammar of a format's answers.
type holder struct {
	format *Format
	hold   CallConstraint
	frame  *schema.Combined
	arena  *regex.Arena
	names  []string
	args   []grammar.Symbol // by tool
}

// add adds a tool's arguments.
func (b *holder) add(t *Tool) error {
	text := string(t.Schema)
	if len(t.Schema) == 0 {
		text = anyObject
	}
	part, end := b.arena.Budget().Apart() // whatever is wrong with one schema is not to spoil the others
	alone := schema.NewCombined(part)
	s, err := b.arguments(alone, t, text)
	if err == nil {
		_, err = alone.Grammar(alone.Rule([]grammar.Symbol{s}))
	}
	end()
	switch {
	case err == nil:
	case errors.Is(err, budget.ErrBusy): // another time it may be held to
		return err
	case t.Strict:
		return &SchemaError{t.Name, err}
	default:
		text = anyObject
	}
	if s, err = b.arguments(b.frame, t, text); err != nil {
		return &SchemaError{t.Name, err}
	}
	b.names, b.args = append(b.names, t.Name), append(b.args, s)
	return nil
}

// arguments returns the symbol of a tool's arguments as the format writes them.
func (b *holder) arguments(f *schema.Combined, t *Tool, text string) (grammar.Symbol, error) {
	a, form := f.Arena(), &b.format.form
	mark := (&holder{format: b.format, hold: b.hold, arena: a}).mark
	switch form.arguments {
	case markedKind:
		never, err := a.Search(regexp.QuoteMeta(form.quote), regex.Raw)
		if err != nil {
			return 0, err
		}
		return f.Marked([]byte(text), schema.Options{Listed: true}, mark(form.quote), never)
	case pythonKind:
		return f.Elements([]byte(text), schema.Elements{
			Named: a.Literal("="), Between: a.Literal(", "), Python: true,
			Text: func(string) bool { return false }, Name: pythonName.MatchString,
		})
	case elementKind:
		e := &form.elements
		ends := []string{regexp.QuoteMeta(strings.TrimSpace(e.close))}
		if marks := template.Marks(form.end); len(marks) > 0 && marks[0] != strings.TrimSpace(e.close) {
			ends = append(ends, regexp.QuoteMeta(marks[0]))
		}
		never, err := a.Search(strings.Join(ends, "|"), regex.Raw)
		if err != nil {
			return 0, err
		}
		var texts, values []regex.Expr
		for _, n := range e.named {
			if !n.says || n.text {
				texts = append(texts, mark(n.literal))
			}
			if !n.says || !n.text {
				values = append(values, mark(n.literal))
			}
		}
		stop := e.named[0].literal[:1]
		return f.Elements([]byte(text), schema.Elements{
			Open: mark(e.open), NamedText: a.Or(texts...), Named: a.Or(values...), Close: mark(e.close), Between: mark(e.between), Never: never,
			Text: func(name string) bool { return t.Text == nil || t.Text(name) },
			Name: func(name string) bool { return !strings.Contains(name, stop) },
		})
	}
	return f.Object([]byte(text), schema.Options{Listed: true})
}

// pythonName matches names that may stand before a value.
var pythonName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// answers returns the ways to write an answer.
func (b *holder) answers() (all [][]grammar.Symbol, err error) {
	begun, thought := b.thought()
	free, err := b.free(thought)
	if err != nil {
		return nil, err
	}
	alone := b.hold.Answer != nil // calls are
	switch {
	case b.hold.Required:
	case alone:
		answer, err := b.hold.Answer(b.frame)
		if err != nil {
			return nil, err
		}
		begin, err := b.sequence(b.format.answer, -1)
		if err != nil {
			return nil, err
		}
		all = append(all, append(begin, answer))
	default:
		all = append(all, []grammar.Symbol{b.frame.Match(free)})
	}
	for _, fr := range b.format.frames {
		open, first := strings.CutPrefix(fr.open, "^")
		var one []grammar.Symbol
		switch {
		case b.hold.Required || alone:
			open = fr.preamble + open
		case !first:
			one = append(one, b.frame.Match(free))
		}
		begin, err := b.sequence(open, -1)
		if err != nil {
			return nil, err
		}
		calls, err := b.calls(&fr)
		if err != nil {
			return nil, err
		}
		all = append(all, append(append(one, begin...), calls))
	}
	if thought != regex.None {
		cut := all[:0:0]
		if !b.hold.Required && !alone { // an answer may end in its thought
			cut = append(cut, []grammar.Symbol{b.frame.Match(begun)})
		}
		maybe := b.frame.Match(b.arena.Optional(thought))
		for i := range all {
			all[i] = append([]grammar.Symbol{maybe}, all[i]...)
		}
		all = append(all, cut...)
	}
	return all, nil
}

// calls returns one call or several, up to the end of the answer. One that must be ends with
// its arguments: what would follow says nothing.
func (b *holder) calls(fr *frame) (grammar.Symbol, error) {
	var one [][]grammar.Symbol
	args := b.format.form.arguments.hole()
	single := b.hold.Required && b.hold.Single && (args == "%a" || args == "%m")
	for tool := range b.names {
		for _, pattern := range fr.calls {
			if single {
				pattern = pattern[:strings.Index(pattern, args)+len(args)]
			}
			s, err := b.sequence(pattern, tool)
			if err != nil {
				return 0, err
			}
			one = append(one, s)
		}
	}
	call := b.frame.Rule(one...)
	if single {
		return call, nil
	}
	end, err := b.sequence(fr.end, -1)
	if err != nil {
		return 0, err
	}
	last := [][]grammar.Symbol{append([]grammar.Symbol{call}, end...)}
	if fr.endOptional {
		last = append(last, []grammar.Symbol{call})
	}
	calls := b.frame.Rule(last...)
	if fr.more == "" || b.hold.Single {
		return calls, nil
	}
	more, err := b.sequence(fr.more, -1)
	if err != nil {
		return 0, err
	}
	all := b.frame.Rule()
	b.frame.Let(all, []grammar.Symbol{calls}, append(append([]grammar.Symbol{call}, more...), all))
	return all, nil
}

// free matches text that begins no call and, if there may be thoughts, none of them.
func (b *holder) free(thought regex.Expr) (regex.Expr, error) {
	var barred []regex.Expr
	for _, pattern := range b.format.bars {
		rest, first := strings.CutPrefix(pattern, "^")
		parts := []regex.Expr{regex.All}
		if first {
			parts = nil
		}
		for _, piece := range b.pieces(rest) {
			e, err := b.barred(piece)
			if err != nil {
				return regex.None, err
			}
			parts = append(parts, e)
		}
		barred = append(barred, b.arena.Seq(append(parts, regex.All)...))
	}
	if thought != regex.None {
		barred = append(barred, b.arena.Seq(b.space(), b.mark(b.hold.Thought[0]), regex.All))
	}
	return b.arena.Not(b.arena.Or(barred...)), nil
}

// barred returns a piece of what text may not hold: marks are, however they are spelt.
func (b *holder) barred(piece string) (regex.Expr, error) {
	a := b.arena
	switch {
	case piece == "%n":
		return a.Literals(b.names), nil
	case piece == "%h":
		return a.Not(a.Seq(regex.All, b.either(messageMark), regex.All)), nil
	case b.isMark(piece):
		return b.either(piece), nil
	}
	return a.Match(piece, regex.Raw)
}

// thought matches a thought before an answer, without its end and whole; None: there is
// none.
func (b *holder) thought() (begun, whole regex.Expr) {
	if b.hold.Thought[0] == "" {
		return regex.None, regex.None
	}
	a, end := b.arena, b.either(b.hold.Thought[1])
	begun = a.Seq(b.space(), b.mark(b.hold.Thought[0]), a.Not(a.Seq(regex.All, end, regex.All)))
	return begun, a.Seq(begun, end, b.space())
}

// space returns a little white space.
func (b *holder) space() regex.Expr {
	var s regex.Bytes
	for _, c := range []byte(" \t\r\n") {
		s.Add(c, c)
	}
	return b.arena.Repeat(b.arena.Set(s), 0, mostSpace)
}

// mostSpace bounds the white space around a thought.
const mostSpace = 4

// mark returns how the model writes a mark, or a text with marks in it.
func (b *holder) mark(text string) regex.Expr {
	e := regex.Empty
	for _, piece := range b.pieces(text) {
		if b.hold.Special == nil {
			e = b.arena.Seq(e, b.arena.Literal(piece))
			continue
		}
		if b.hold.Special(piece) {
			e = b.arena.Seq(e, b.arena.Literal(grammar.Special+piece))
			continue
		}
		for _, m := range innerMarks(piece) {
			if b.hold.Special(m) {
				piece = strings.ReplaceAll(piece, m, grammar.Special+m)
			}
		}
		e = b.arena.Seq(e, b.arena.Literal(piece))
	}
	return e
}

// either returns a mark as a token of its own or spelt out.
func (b *holder) either(text string) regex.Expr {
	e := b.arena.Or(b.arena.Literal(text), b.mark(text))
	if end := b.lines(text); end != "" {
		e = b.arena.Or(e, b.arena.Literal(grammar.Special+text+end))
	}
	return e
}

// lines returns the ends of lines that a mark's token holds behind it, as GigaChat's do.
func (b *holder) lines(mark string) string {
	for _, end := range []string{"\n", "\n\n"} {
		if b.hold.Special != nil && b.hold.Special(mark+end) {
			return end
		}
	}
	return ""
}

func (b *holder) isMark(piece string) bool {
	return slices.Contains(b.format.Marks, piece) || slices.Contains(b.format.Inner, piece)
}

// pieces divides a pattern at its marks and holes.
func (b *holder) pieces(pattern string) (list []string) {
	for pattern != "" {
		at, found := len(pattern), ""
		for _, group := range [][]string{b.format.Marks, b.format.Inner, holes} {
			for _, m := range group {
				if i := strings.Index(pattern, m); i >= 0 && cmp.Or(i-at, len(found)-len(m)) < 0 {
					at, found = i, m
				}
			}
		}
		if at > 0 {
			list = append(list, pattern[:at])
		}
		if found != "" {
			list = append(list, found)
		}
		pattern = pattern[at+len(found):]
	}
	return list
}

// sequence returns the symbols of a pattern for a tool; -1: it names none.
func (b *holder) sequence(pattern string, tool int) (list []grammar.Symbol, err error) {
	pieces := b.pieces(pattern)
	for i, piece := range pieces {
		e := regex.None
		switch {
		case piece == b.format.form.arguments.hole():
			list = append(list, b.args[tool])
			continue
		case piece == "%n":
			e = b.arena.Literal(b.names[tool])
		case b.isMark(piece):
			e = b.mark(piece)
			if end := b.lines(piece); end != "" && i+1 < len(pieces) && strings.HasPrefix(pieces[i+1], end) {
				e = b.arena.Literal(grammar.Special + piece + end)
				pieces[i+1] = pieces[i+1][len(end):]
			}
		default:
			if e, err = b.arena.Match(piece, regex.Raw); err != nil {
				return nil, err
			}
		}
		list = append(list, b.frame.Match(e))
	}
	return list, nil
}

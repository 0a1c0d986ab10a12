package regex

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/lutra-lm/lutra/grammar/budget"
)

// Expr is an expression of an Arena. Equal expressions have equal numbers as far
// as the arena's simplifications go.
type Expr int32

// The expressions of every arena.
const (
	None  Expr = iota // matches nothing
	Empty             // matches the empty text alone
	All               // matches every sequence of bytes
)

// Infinite is the upper bound of a repetition without one.
const Infinite = -1

// ErrSize says that expressions have become too many to go on.
var ErrSize = errors.New("grammar: the expression is too complex")

// The bounds of the work of finding out whether an intersection is empty.
const (
	mostSearch   = 1 << 15
	mostSearches = 1 << 20 // of all searches together; later ones are short
	fewSearch    = 1 << 8
)

type kind uint8

const (
	kNone kind = iota
	kEmpty
	kSet    // a: index of the byte set
	kSeq    // a then b
	kAlt    // a: index of the list
	kAnd    // a: index of the list
	kNot    // a
	kRepeat // a, from min to max times
	kNumber // a: index of the reading
	kBucket // a, of min buckets; max: the hash of the text that has been read
)

type flags uint8

const (
	nullable flags = 1 << iota // matches the empty text
	simple                     // no intersection within: empty only if it is None
	content                    // whole characters only
	covers                     // one character, any of Plain among them
	anyChar                    // one character, whichever
)

type term struct {
	kind     kind
	a, b     Expr
	min, max int32
}

// info is about the texts of an expression.
type info struct {
	flags
	findings
	longest  int32 // of longest, plus two; 0: not known
	shortest int32 // of shortest, plus one; 0: not known
}

// findings holds what derivatives have told of an expression.
type findings struct {
	life life
	room int32 // of Room, plus one; 0: not known
	next []Expr
}

type life uint8

const (
	unknown life = iota
	alive
	dead
)

// What an arena's parts take of its budget, with their places in maps.
const (
	exprBytes = 128 // an expression
	listBytes = 96  // a list, and listItem for each of its members
	listItem  = 8
	setBytes  = 128 // a set of bytes, or how far a number has been read
)

// meter charges a budget, and keeps its error once that has been spent.
type meter struct {
	budget *budget.Budget
	err    error
}

// algebra makes expressions of others, and gives equal ones one number.
type algebra struct {
	meter
	terms      []term
	infos      []info
	ids        map[term]Expr
	lists      [][]Expr
	listIDs    map[string]Expr
	sets       []Bytes
	setIDs     map[Bytes]Expr
	numbers    []numbers
	readings   []reading
	readingIDs map[reading]Expr
	key        []byte
}

// texts makes expressions of characters, patterns and numbers.
type texts struct {
	algebra
	anyRune    map[Quoting]Expr
	anySpelled Expr // a character of a string of JSON, in every spelling; None: not made yet
	buckets    bool // tell all bytes apart
}

// Arena holds expressions. It is for one goroutine at a time. Expressions are made
// first; after Freeze they have derivatives, and it is known of each whether it matches anything.
type Arena struct {
	texts
	classOf   [256]uint8
	examples  []byte  // a byte of each class
	order     []uint8 // of classes, in which searches try them
	frozen    bool
	searched  int
	undecided bool
}

// Bytes is a set of bytes.
type Bytes [4]uint64

// Has reports whether b is in the set.
func (s *Bytes) Has(b byte) bool { return s[b>>6]>>(b&63)&1 != 0 }

// Add adds the bytes from lo to hi.
func (s *Bytes) Add(lo, hi byte) {
	for b := int(lo); b <= int(hi); b++ {
		s[b>>6] |= 1 << (b & 63)
	}
}

// New makes an arena of the default budget.
func New() *Arena { return Within(budget.Default()) }

// Within makes an arena whose expressions, and the work on them, are charged to b.
func Within(b *budget.Budget) *Arena {
	of := algebra{meter: meter{budget: b}, ids: map[term]Expr{}, listIDs: map[string]Expr{}, setIDs: map[Bytes]Expr{}, readingIDs: map[reading]Expr{}}
	a := &Arena{texts: texts{algebra: of, anyRune: map[Quoting]Expr{}}}
	a.append(term{kind: kNone}, simple)
	a.append(term{kind: kEmpty}, nullable|simple|content)
	a.append(term{kind: kNot, a: None}, nullable|simple)
	return a
}

// Budget returns what a's expressions are charged to.
func (a *meter) Budget() *budget.Budget { return a.budget }

// Err returns an error of the budget once that has been spent. What was made or asked since
// is of no use.
func (a *meter) Err() error { return a.err }

// hold charges bytes, and reports whether there is room for them.
func (a *meter) hold(bytes int) bool {
	if err := a.budget.Hold(bytes); err != nil && a.err == nil {
		a.err = err
	}
	return a.err == nil
}

// work charges steps, and reports whether they may be done.
func (a *meter) work(steps int) bool {
	if err := a.budget.Work(steps); err != nil && a.err == nil {
		a.err = err
	}
	return a.err == nil
}

// Undecided reports whether it could not be found out in time whether some expression
// matches anything. It counts as matching nothing.
func (a *Arena) Undecided() bool { return a.undecided }

// Work returns how many steps have been taken: expressions made, and derivatives taken in
// search of what they match.
func (a *Arena) Work() int { return len(a.terms) + a.searched }

func (a *algebra) add(t term, f flags) Expr {
	if e, ok := a.ids[t]; ok {
		return e
	}
	if !a.hold(exprBytes) || !a.work(1) {
		return None
	}
	return a.append(t, f)
}

// append adds a term that there must be, whatever the budget says.
func (a *algebra) append(t term, f flags) Expr {
	e := Expr(len(a.terms))
	a.ids[t] = e
	a.terms = append(a.terms, t)
	a.infos = append(a.infos, info{flags: f})
	return e
}

func (a *algebra) is(e Expr, f flags) bool { return a.infos[e].flags&f == f }

// Nullable reports whether e matches the empty text.
func (a *algebra) Nullable(e Expr) bool { return a.is(e, nullable) }

// Set matches one byte of s.
func (a *algebra) Set(s Bytes) Expr {
	if s == (Bytes{}) {
		return None
	}
	id, ok := a.setIDs[s]
	if !ok {
		if !a.hold(setBytes) {
			return None
		}
		id = Expr(len(a.sets))
		a.sets = append(a.sets, s)
		a.setIDs[s] = id
	}
	f := simple | content
	for b := range 256 {
		if s.Has(byte(b)) && (b < 0x20 || b > 0x7f || b == '"' || b == '\\') {
			f = simple
		}
	}
	return a.add(term{kind: kSet, a: id}, f)
}

// Byte matches b.
func (a *algebra) Byte(b byte) Expr {
	var s Bytes
	s.Add(b, b)
	return a.Set(s)
}

// Literal matches the bytes of text.
func (a *algebra) Literal(text string) Expr {
	e := Empty
	for i := len(text) - 1; i >= 0; i-- {
		e = a.seq(a.Byte(text[i]), e)
	}
	return e
}

// Seq matches the expressions one after another.
func (a *algebra) Seq(es ...Expr) Expr {
	out := Empty
	for _, e := range slices.Backward(es) {
		out = a.seq(e, out)
	}
	return out
}

func (a *algebra) seq(x, y Expr) Expr {
	switch {
	case x == None || y == None:
		return None
	case x == Empty:
		return y
	case y == Empty:
		return x
	case x == All && y == All:
		return All
	}
	if t := a.terms[x]; t.kind == kSeq { // lean to the right
		return a.seq(t.a, a.seq(t.b, y))
	}
	return a.add(term{kind: kSeq, a: x, b: y}, a.infos[x].flags&a.infos[y].flags&(nullable|simple|content))
}

// Repeat matches x from least to most times; most may be Infinite.
func (a *algebra) Repeat(x Expr, least, most int) Expr {
	if a.is(x, nullable) {
		least = 0
	}
	switch {
	case most != Infinite && most < least:
		return None
	case x == None && least > 0:
		return None
	case most == 0, x == Empty, x == None:
		return Empty
	case least == 1 && most == 1:
		return x
	}
	f := a.infos[x].flags & (simple | content)
	if least == 0 {
		f |= nullable
	}
	return a.add(term{kind: kRepeat, a: x, min: int32(least), max: int32(most)}, f)
}

// Optional matches x or nothing.
func (a *algebra) Optional(x Expr) Expr { return a.Or(x, Empty) }

// Not matches the sequences of bytes that x does not match. It is for use within And.
func (a *algebra) Not(x Expr) Expr {
	switch {
	case x == None:
		return All
	case x == All:
		return None
	case a.terms[x].kind == kNot:
		return a.terms[x].a
	}
	f := flags(0)
	if !a.is(x, nullable) {
		f = nullable
	}
	return a.add(term{kind: kNot, a: x}, f)
}

// list interns a sorted list.
func (a *algebra) list(es []Expr) Expr {
	a.key = a.key[:0]
	for _, e := range es {
		a.key = binary.LittleEndian.AppendUint32(a.key, uint32(e))
	}
	if id, ok := a.listIDs[string(a.key)]; ok {
		return id
	}
	a.hold(listBytes + listItem*len(es))
	id := Expr(len(a.lists))
	a.lists = append(a.lists, slices.Clone(es))
	a.listIDs[string(a.key)] = id
	return id
}

// flatten lists the members of es, with lists of the same kind replaced by their
// members, sorted and each once.
func (a *algebra) flatten(k kind, es []Expr) []Expr {
	if !a.work(len(es)) {
		return nil
	}
	out := make([]Expr, 0, len(es))
	for _, e := range es {
		if t := a.terms[e]; t.kind == k {
			if !a.work(len(a.lists[t.a])) {
				return nil
			}
			out = append(out, a.lists[t.a]...)
		} else {
			out = append(out, e)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Or matches what one of es matches.
func (a *algebra) Or(es ...Expr) Expr {
	out := a.flatten(kAlt, es)
	if len(out) > 1 {
		out = a.union(out)
	}
	f := simple | content
	for _, e := range out {
		if e == All {
			return All
		}
		f = f&a.infos[e].flags | (f|a.infos[e].flags)&nullable
	}
	switch len(out) {
	case 0:
		return None
	case 1:
		return out[0]
	}
	return a.add(term{kind: kAlt, a: a.list(out)}, f)
}

// union drops None, joins sets of bytes, and drops what an unbounded repetition of
// all characters holds.
func (a *algebra) union(es []Expr) []Expr {
	var set Bytes
	sets := 0
	everything := None
	for _, e := range es {
		t := a.terms[e]
		if t.kind == kSet {
			sets++
			for i, w := range a.sets[t.a] {
				set[i] |= w
			}
		}
		if a.isAnyText(e) {
			everything = e
		}
	}
	out := es[:0]
	for _, e := range es {
		switch {
		case e == None, sets > 1 && a.terms[e].kind == kSet:
		case everything != None && e != everything && a.is(e, content):
		default:
			out = append(out, e)
		}
	}
	if sets > 1 {
		out = append(out, a.Set(set))
		slices.Sort(out)
		out = slices.Compact(out)
	}
	return out
}

// And matches what all of es match.
func (a *algebra) And(es ...Expr) Expr {
	out := a.flatten(kAnd, es)
	f := nullable
	kept := out[:0]
	for _, e := range out {
		if e == None {
			return None
		}
		if e != All {
			f &= a.infos[e].flags
			kept = append(kept, e)
		}
	}
	switch len(kept) {
	case 0:
		return All
	case 1:
		return kept[0]
	}
	if slices.Contains(kept, Empty) {
		if f&nullable != 0 {
			return Empty
		}
		return None
	}
	for _, e := range kept {
		if a.is(e, content) {
			f |= content
		}
	}
	if f&content != 0 { // what is text need not be any text besides, and is never anything but text
		if slices.ContainsFunc(kept, func(e Expr) bool { t := a.terms[e]; return t.kind == kNot && a.isAnyText(t.a) }) {
			return None
		}
		texts := 0
		for _, e := range kept {
			if a.is(e, content) {
				texts++
			}
		}
		if i := slices.IndexFunc(kept, a.isAnyText); i >= 0 && texts > 1 {
			return a.And(slices.Delete(kept, i, i+1)...)
		}
	}
	return a.add(term{kind: kAnd, a: a.list(kept)}, f)
}

// isAnyText reports whether e is any number of any characters.
func (a *algebra) isAnyText(e Expr) bool {
	t := a.terms[e]
	return t.kind == kRepeat && t.min == 0 && t.max == Infinite && a.is(t.a, anyChar)
}

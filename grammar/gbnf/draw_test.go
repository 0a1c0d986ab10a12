package gbnf

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// drawn is a part of a grammar as a tree, which is written in the ways that grammars are
// written, and recognised slowly.
type drawn interface {
	// write is a text of it, within a sequence.
	write(r *rand.Rand) string
	// ends returns the places where a match of it in s may end that begins at one place. It
	// asks p for the ends of rules.
	ends(p *recogniser, at int) places
}

// places are offsets of a text, a bit each.
type places uint64

func (p places) each(do func(at int)) {
	for at := range 64 {
		if p>>at&1 != 0 {
			do(at)
		}
	}
}

type (
	literal  string
	class    struct{ text, runes string } // runes of the alphabet; negative ones are listed too
	sequence []drawn
	choice   []drawn
	repeated struct {
		drawn
		least, most int // most may be -1
	}
	named int // a rule
)

// recogniser finds out what each rule matches of a text, from each place on: until nothing
// is added, so that rules may begin with themselves.
type recogniser struct {
	rules   []drawn
	text    string
	known   map[[2]int]places
	changed bool
}

// recognises reports whether the first rule matches the whole text.
func recognises(rules []drawn, text string) bool {
	p := &recogniser{rules: rules, text: text, known: map[[2]int]places{}}
	for p.changed = true; p.changed; {
		p.changed = false
		for rule := range rules {
			for at := range len(text) + 1 {
				key := [2]int{rule, at}
				if all := p.known[key] | rules[rule].ends(p, at); all != p.known[key] {
					p.known[key], p.changed = all, true
				}
			}
		}
	}
	return p.known[[2]int{0, 0}]>>len(text)&1 != 0
}

func (l literal) ends(p *recogniser, at int) places {
	if strings.HasPrefix(p.text[at:], string(l)) {
		return 1 << (at + len(l))
	}
	return 0
}

func (c class) ends(p *recogniser, at int) places {
	if r, size := utf8.DecodeRuneInString(p.text[at:]); size > 0 && strings.ContainsRune(c.runes, r) {
		return 1 << (at + size)
	}
	return 0
}

func (s sequence) ends(p *recogniser, at int) places {
	all := places(1) << at
	for _, k := range s {
		var next places
		all.each(func(at int) { next |= k.ends(p, at) })
		all = next
	}
	return all
}

func (c choice) ends(p *recogniser, at int) (all places) {
	for _, k := range c {
		all |= k.ends(p, at)
	}
	return all
}

func (x repeated) ends(p *recogniser, at int) (all places) {
	last := places(1) << at
	for n := 0; ; n++ {
		if n >= x.least {
			if all|last == all {
				return all
			}
			all |= last
		}
		if n == x.most || n > x.least+len(p.text)+1 {
			return all
		}
		var next places
		last.each(func(at int) { next |= x.drawn.ends(p, at) })
		last = next
	}
}

func (n named) ends(p *recogniser, at int) places { return p.known[[2]int{int(n), at}] }

// first adds the rules that d may begin with to rules, by whether they may be empty. It
// reports whether d may be empty.
func first(d drawn, empty []bool, rules map[named]bool) bool {
	switch d := d.(type) {
	case literal:
		return d == ""
	case named:
		rules[d] = true
		return empty[d]
	case sequence:
		for _, k := range d {
			if !first(k, empty, rules) {
				return false
			}
		}
		return true
	case choice:
		some := false
		for _, k := range d {
			some = first(k, empty, rules) || some
		}
		return some
	case repeated:
		return d.most != 0 && first(d.drawn, empty, rules) || d.least == 0
	}
	return false
}

// circular reports whether a rule may begin with itself, by way of others or not.
func circular(rules []drawn) bool {
	empty := make([]bool, len(rules))
	begins := make([]map[named]bool, len(rules))
	for range rules { // until nothing changes
		for i, d := range rules {
			begins[i] = map[named]bool{}
			empty[i] = first(d, empty, begins[i])
		}
	}
	for range rules {
		for i := range rules {
			for k := range begins[i] {
				maps.Copy(begins[i], begins[k])
			}
		}
	}
	for i := range rules {
		if begins[i][named(i)] {
			return true
		}
	}
	return false
}

// space returns a text that may stand between parts; within a group, lines may end.
func space(r *rand.Rand, group bool) string {
	if group && r.IntN(6) == 0 {
		return " # or \"so\"\n\t "
	}
	return []string{" ", "  ", "\t"}[r.IntN(3)]
}

func (l literal) write(r *rand.Rand) string {
	var b strings.Builder
	for _, c := range string(l) {
		switch n := r.IntN(8); {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c == '\n':
			b.WriteString(`\n`)
		case n == 0 && c < 0x100:
			fmt.Fprintf(&b, `\x%02x`, c)
		case n == 1:
			fmt.Fprintf(&b, `\u%04X`, c)
		case n == 2:
			fmt.Fprintf(&b, `\U%08x`, c)
		default:
			b.WriteRune(c)
		}
	}
	return `"` + b.String() + `"`
}

func (c class) write(*rand.Rand) string { return c.text }

func (s sequence) write(r *rand.Rand) string {
	parts := make([]string, len(s))
	for i, k := range s {
		if parts[i] = k.write(r); !single(k) || r.IntN(6) == 0 {
			parts[i] = "(" + space(r, true) + parts[i] + space(r, true) + ")"
		}
	}
	if len(s) == 0 {
		return `""`
	}
	return strings.Join(parts, space(r, false))
}

// single reports whether a part needs no parentheses within a sequence.
func single(d drawn) bool {
	switch d.(type) {
	case sequence, choice:
		return false
	}
	return true
}

func (c choice) write(r *rand.Rand) string {
	parts := make([]string, len(c))
	for i, k := range c {
		parts[i] = k.write(r)
	}
	return strings.Join(parts, " |"+[]string{"", " ", "\n  "}[r.IntN(3)])
}

func (x repeated) write(r *rand.Rand) string {
	text := sequence{x.drawn}.write(r)
	switch {
	case x.least == 0 && x.most == 1 && r.IntN(2) == 0:
		return text + "?"
	case x.least == 0 && x.most < 0 && r.IntN(2) == 0:
		return text + "*"
	case x.least == 1 && x.most < 0 && r.IntN(2) == 0:
		return text + " +"
	case x.most < 0:
		return fmt.Sprintf("%s{%d,}", text, x.least)
	case x.least == x.most:
		return fmt.Sprintf("%s{%d}", text, x.least)
	}
	return fmt.Sprintf("%s{%d, %d}", text, x.least, x.most)
}

func (n named) write(*rand.Rand) string { return ruleNames[n] }

var ruleNames = []string{"root", "x", "y-2", "Long_name"}

// characters lists the characters of random texts.
const characters = "ab\"é\n"

var classes = []class{
	{"[ab]", "ab"}, {"[^a]", "b\"é\n"}, {"[a-c]", "ab"}, {".", characters}, {`[\x61"]`, "a\""}, {`[^\n"]`, "abé"}, {`[\u00e9-\u00ff\n]`, "é\n"}, {`[\]\-b]`, "b"}, {"[^a-zé]", "\"\n"}, {"[b-]", "b"}, {"[]", ""},
}

// draw draws a part that nests up to depth deep, of a grammar of so many rules.
func draw(r *rand.Rand, rules, depth int) drawn {
	some := func(most int) []drawn {
		parts := make([]drawn, r.IntN(most+1))
		for i := range parts {
			parts[i] = draw(r, rules, depth-1)
		}
		return parts
	}
	switch n := r.IntN(12); {
	case depth == 0 && n < 4 || n < 2:
		return named(r.IntN(rules))
	case depth == 0 && n < 7 || n < 3:
		return classes[r.IntN(len(classes))]
	case depth == 0 || n < 5:
		text := ""
		for range r.IntN(3) {
			text += string([]rune(characters)[r.IntN(5)])
		}
		return literal(text)
	case n < 7:
		x := repeated{draw(r, rules, depth-1), r.IntN(3), -1}
		if r.IntN(2) == 0 {
			x.most = x.least + r.IntN(3)
		}
		return x
	case n < 9:
		return choice(append(some(2), draw(r, rules, depth-1)))
	}
	return sequence(some(3))
}

// drawGrammar draws rules, and a grammar of them.
func drawGrammar(r *rand.Rand) (rules []drawn, text string) {
	rules = make([]drawn, 1+r.IntN(len(ruleNames)))
	order := r.Perm(len(rules))
	for _, i := range order {
		rules[i] = draw(r, len(rules), 1+r.IntN(3))
		text += ruleNames[i] + " ::=" + []string{" ", "\n  "}[r.IntN(2)] + rules[i].write(r) + []string{"\n", "\n\n# a rule\n"}[r.IntN(2)]
	}
	return rules, text
}

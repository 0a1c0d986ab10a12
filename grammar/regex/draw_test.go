package regex

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// drawn is a pattern with a slow way to match it: match calls end with each place at which
// a match from at on may end, until that is true.
type drawn struct {
	text  string
	match func(s []rune, at int, end func(int) bool) bool
	fixed bool // it matches places rather than characters
	atom  bool // what repeats it repeats all of it
}

// alphabet lists the characters of random texts; patterns tell them apart.
var alphabet = []rune{'a', 'b', '-', 'é', '"'}

// texts are all up to so many characters long.
func textsUpTo(longest int) []string {
	all := []string{""}
	for from := 0; longest > 0; longest-- {
		to := len(all)
		for _, text := range all[from:to] {
			for _, c := range alphabet {
				all = append(all, text+string(c))
			}
		}
		from = to
	}
	return all
}

// chars are ways to write a character of a set.
var chars = []struct {
	text string
	set  string // of alphabet
}{
	{"a", "a"}, {"b", "b"}, {"-", "-"}, {"é", "é"}, {`"`, `"`}, {"x", ""}, {".", `ab-é"`}, {"[ab]", "ab"}, {"[^a]", `b-é"`}, {"[a-c-]", "ab-"}, {"[^b-é]", `a-"`}, {`[\wé]`, "abé"},
	{`\w`, "ab"}, {`\W`, `-é"`}, {`\d`, ""}, {`\D`, `ab-é"`}, {`\s`, ""}, {`\S`, `ab-é"`}, {`\x61`, "a"}, {`\u00e9`, "é"}, {`\p{L}`, "abé"}, {`\P{L}`, `-"`}, {`[^\W_]`, "ab"}, {`[^]`, `ab-é"`}, {`[\-"]`, `-"`},
	{"[]", ""}, {"(?i:A)", "a"}, {"(?i:[B-C])", "b"},
}

// draw draws a pattern that nests up to depth deep.
func draw(r *rand.Rand, depth int) drawn {
	kind := r.IntN(10)
	if depth == 0 || kind < 2 {
		c := chars[r.IntN(len(chars))]
		return drawn{text: c.text, atom: true, match: func(s []rune, at int, end func(int) bool) bool {
			return at < len(s) && strings.ContainsRune(c.set, s[at]) && end(at+1)
		}}
	}
	switch kind {
	case 2, 3:
		return repeated(draw(r, depth-1), r)
	case 4:
		x, y := draw(r, depth-1), draw(r, depth-1)
		return drawn{text: x.text + "|" + y.text, fixed: x.fixed || y.fixed, match: func(s []rune, at int, end func(int) bool) bool {
			return x.match(s, at, end) || y.match(s, at, end)
		}}
	case 5:
		return place(r, depth)
	}
	x, y := draw(r, depth-1).group(), draw(r, depth-1).group()
	return drawn{text: x.text + y.text, fixed: x.fixed || y.fixed, match: func(s []rune, at int, end func(int) bool) bool {
		return x.match(s, at, func(at int) bool { return y.match(s, at, end) })
	}}
}

// group is d as it stands within a sequence or a repetition.
func (d drawn) group() drawn {
	if !d.atom {
		d.text, d.atom = "("+d.text+")", true
	}
	return d
}

func repeated(x drawn, r *rand.Rand) drawn {
	least, most := r.IntN(3), Infinite
	sign := fmt.Sprintf("{%d,}", least)
	switch r.IntN(5) {
	case 0:
		least, sign = 0, "*"
	case 1:
		least, sign = 1, "+"
	case 2:
		least, most, sign = 0, 1, "?"
	case 3:
		most = least + r.IntN(3)
		sign = fmt.Sprintf("{%d,%d}", least, most)
	}
	if r.IntN(6) == 0 {
		sign += "?"
	}
	if x.fixed && !x.atom || x.text == "" {
		x = x.group()
	}
	var from func(s []rune, at, done int, end func(int) bool) bool
	from = func(s []rune, at, done int, end func(int) bool) bool {
		return done >= least && end(at) || (most == Infinite || done < most) && x.match(s, at, func(next int) bool {
			return (next > at || done < least) && from(s, next, done+1, end)
		})
	}
	return drawn{text: x.group().text + sign, fixed: x.fixed, match: func(s []rune, at int, end func(int) bool) bool { return from(s, at, 0, end) }}
}

// place is a pattern that matches a place.
func place(r *rand.Rand, depth int) drawn {
	word := func(s []rune, at int) bool { return at >= 0 && at < len(s) && (s[at] == 'a' || s[at] == 'b') }
	at := func(text string, is func(s []rune, at int) bool) drawn {
		return drawn{text: text, fixed: true, atom: true, match: func(s []rune, at int, end func(int) bool) bool { return is(s, at) && end(at) }}
	}
	edge := func(s []rune, at int) bool { return word(s, at-1) != word(s, at) }
	ahead := draw(r, depth-1)
	follows := func(s []rune, at int) bool { return ahead.match(s, at, func(int) bool { return true }) }
	switch r.IntN(8) {
	case 0, 1:
		return at("^", func(_ []rune, at int) bool { return at == 0 })
	case 2, 3:
		return at("$", func(s []rune, at int) bool { return at == len(s) })
	case 4:
		return at(`\b`, edge)
	case 5:
		return at(`\B`, func(s []rune, at int) bool { return !edge(s, at) })
	case 6:
		return at("(?="+ahead.text+")", follows)
	}
	return at("(?!"+ahead.text+")", func(s []rune, at int) bool { return !follows(s, at) })
}

// found reports whether d matches somewhere in a text, and whole whether it matches all of it.
func (d drawn) found(text string) bool {
	s := []rune(text)
	for at := range utf8.RuneCountInString(text) + 1 {
		if d.match(s, at, func(int) bool { return true }) {
			return true
		}
	}
	return false
}

func (d drawn) whole(text string) bool {
	s := []rune(text)
	return d.match(s, 0, func(at int) bool { return at == len(s) })
}

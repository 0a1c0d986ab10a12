package regex

import (
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// judged tells of each text whether it is matched.
func judged(all []string, match func(string) bool) []bool {
	out := make([]bool, len(all))
	for i, text := range all {
		out[i] = match(text)
	}
	return out
}

// differs is the first text of which two disagree.
func differs(all []string, a, b []bool) (text string, differ bool) {
	for i := range all {
		if a[i] != b[i] {
			return all[i], true
		}
	}
	return "", false
}

func TestADrawnPatternMatchesWhatASlowMatcherDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	all := textsUpTo(4)
	patterns := sweep.Of(t, 80, 600)
	used, standard := 0, 0
	for range patterns {
		d := draw(r, 1+r.IntN(4))
		found, whole := judged(all, d.found), judged(all, d.whole)
		if re, err := regexp.Compile(d.text); err == nil && !strings.Contains(d.text, "[]") && !strings.Contains(d.text, "[^]") { // the slow matcher is right
			standard++
			if text, differ := differs(all, found, judged(all, re.MatchString)); differ {
				t.Fatalf("%q on %q: the standard library disagrees with the slow matcher", d.text, text)
			}
		}
		for _, quoting := range []Quoting{Raw, JSON} {
			a := New()
			in, err := a.Search(d.text, quoting)
			of, fault := a.Match(d.text, quoting)
			if err != nil || fault != nil {
				break // anchors where they are not supported
			}
			used++
			spell := func(text string) string {
				if quoting == JSON {
					return Escape(text)
				}
				return text
			}
			for i, text := range all[:31] { // before it is frozen
				if a.Matches(in, spell(text)) != found[i] || a.Matches(of, spell(text)) != whole[i] {
					t.Errorf("%q on %q: in it %v, all of it %v", d.text, text, !found[i], !whole[i])
				}
			}
			a.Freeze()
			if text, differ := differs(all, found, judged(all, func(text string) bool { return matches(a, in, spell(text)) })); differ {
				t.Errorf("%q in %q: %v", d.text, text, !d.found(text))
			}
			if text, differ := differs(all, whole, judged(all, func(text string) bool { return matches(a, of, spell(text)) })); differ {
				t.Errorf("%q is %q: %v", d.text, text, !d.whole(text))
			}
			if err := a.Err(); err != nil {
				t.Errorf("%q: %v", d.text, err)
			}
		}
	}
	if used < patterns || standard < patterns/4 {
		t.Errorf("of %d patterns, %d spellings were used, and %d compared with the standard library", patterns, used, standard)
	}
}

// known is an expression and which texts it matches.
type known struct {
	Expr
	name string
	want func(i int) bool // of the texts at hand
	few  []string
	ok   bool // few are all of them
}

// drawExpressions draws two patterns and combines them.
func drawExpressions(r *rand.Rand, a *Arena, all []string) []*known {
	var es []Expr
	var sets [][]bool
	for len(es) < 2 {
		d := draw(r, 1+r.IntN(3))
		if e, err := a.Search(d.text, JSON); err == nil {
			es, sets = append(es, e), append(sets, judged(all, d.found))
		}
	}
	x, y := es[0], es[1]
	least := r.IntN(3)
	most := least + r.IntN(3)
	short := a.Texts(least, most, JSON)
	fits := func(i int) bool {
		n := utf8.RuneCountInString(all[i])
		return n >= least && n <= most
	}
	list := []*known{
		{Expr: a.And(x, y), name: "both", want: func(i int) bool { return sets[0][i] && sets[1][i] }},
		{Expr: a.Or(x, y), name: "either", want: func(i int) bool { return sets[0][i] || sets[1][i] }},
		{Expr: a.And(a.AnyText(JSON), a.Not(x)), name: "not the one", want: func(i int) bool { return !sets[0][i] }},
		{Expr: a.And(a.Not(x), a.Not(y), short), name: "neither, and short", want: func(i int) bool { return !sets[0][i] && !sets[1][i] && fits(i) }},
		{Expr: a.And(x, short), name: "one, and short", want: func(i int) bool { return sets[0][i] && fits(i) }},
	}
	for _, k := range list {
		k.few, k.ok = a.Enumerate([]Expr{k.Expr}, 200)
	}
	return list
}

// matchesText reports whether e matches some text, found without what a knows of it. sure
// is false where there are too many expressions to look at.
func matchesText(a *Arena, e Expr) (some, sure bool) {
	seen := map[Expr]bool{e: true}
	for queue := []Expr{e}; len(queue) > 0; queue = queue[1:] {
		if some = a.Nullable(queue[0]); some || len(seen) > 3000 {
			return some, some
		}
		for class := range a.Classes() {
			if d := a.derive(queue[0], class); !seen[d] {
				seen[d] = true
				queue = append(queue, d)
			}
		}
	}
	return false, true
}

func TestWhatIsKnownOfADrawnExpressionIsTrue(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 44))
	all := textsUpTo(3)
	few, none, roomy := 0, 0, 0
	for range sweep.Of(t, 80, 400) {
		a := Within(budget.New(context.Background(), 1<<32, 1<<32, nil))
		list := drawExpressions(r, a, all)
		a.Freeze()
		for _, k := range list {
			for i, text := range all {
				text = Escape(text)
				if got := matches(a, k.Expr, text); got != k.want(i) {
					t.Errorf("%s: %q is matched: %v", k.name, text, got)
				} else if n := len(text); got && (shortest(&a.algebra, k.Expr) > n || longest(&a.algebra, k.Expr) < n || k.ok && !slices.Contains(k.few, text)) {
					t.Errorf("%s: %q is matched, but from %d to %d bytes are, and of few %q", k.name, text, shortest(&a.algebra, k.Expr), longest(&a.algebra, k.Expr), k.few)
				}
			}
			if k.ok {
				few++
				if slices.ContainsFunc(k.few, func(text string) bool { return !matches(a, k.Expr, text) }) || a.Exceeds(k.Expr, len(k.few)) || len(k.few) > 0 && !a.Exceeds(k.Expr, len(k.few)-1) {
					t.Errorf("%s: not all that it matches are %q", k.name, k.few)
				}
			}
			some, sure := matchesText(a, k.Expr)
			if sure && some != a.Alive(k.Expr) && !a.Undecided() {
				t.Errorf("%s: some text is matched: %v, known: %v", k.name, some, !some)
			}
			if sure && !some {
				none++
			}
			for e, n := k.Expr, 0; n < 6; n++ { // a random text
				if room := a.Room(e); room > 0 && a.Alive(e) {
					roomy++
					takesPlain(t, a, e, room)
				}
				var may []Expr
				for class := range a.Classes() {
					if d := a.Next(e, class); d != None {
						may = append(may, d)
					}
				}
				if a.Ends(e) != (a.Nullable(e) && len(may) == 0) {
					t.Errorf("%s: it ends behind %d bytes: %v", k.name, n, a.Ends(e))
				}
				if len(may) == 0 {
					break
				}
				e = may[r.IntN(len(may))]
				if some, sure := matchesText(a, e); sure && !some {
					t.Errorf("%s: there is a dead end behind %d bytes", k.name, n)
				}
			}
		}
		if err := a.Err(); err != nil {
			t.Fatal(err)
		}
	}
	if few < 20 || none < 20 || roomy < 20 {
		t.Errorf("%d expressions match few texts, %d none, and %d have room", few, none, roomy)
	}
}

// takesPlain checks that up to room plain characters may follow.
func takesPlain(t *testing.T, a *Arena, e Expr, room int) {
	t.Helper()
	for _, plain := range []string{"a", "é~", "-日#", " 😀~"} {
		if utf8.RuneCountInString(plain) > room {
			continue
		}
		end := e
		for i := range len(plain) {
			end = a.Next(end, int(a.classOf[plain[i]]))
		}
		if end == None {
			t.Errorf("there is room for %d characters, but not for %q", room, plain)
		}
	}
}

func TestEachTextDrawsOneLot(t *testing.T) {
	a := New()
	const lots = 7
	var es []Expr
	for i := range lots {
		es = append(es, a.HashBucket(i, lots))
	}
	drawn := [lots]int{}
	for _, text := range textsUpTo(4) {
		found := 0
		for i, e := range es {
			if a.Matches(e, text) {
				found++
				drawn[i]++
			}
		}
		if found != 1 {
			t.Fatalf("%q draws %d lots", text, found)
		}
	}
	if slices.Min(drawn[:]) < 30 {
		t.Errorf("the lots are drawn %v times", drawn)
	}
}

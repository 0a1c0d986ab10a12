package regex

import (
	"math/big"
	"regexp"
	"testing"
)

// matches runs text through the derivatives of e.
func matches(a *Arena, e Expr, text string) bool {
	for i := range len(text) {
		e = a.Next(e, int(a.classOf[text[i]]))
	}
	return a.Nullable(e)
}

func TestPatternsMatchWhatTheStandardLibraryMatches(t *testing.T) {
	texts := []string{"", "a", "b", "ab", "ba", "aab", "abc", "foo", "foobar", "barfoo", "x-1", "2024-01-02", "é", "日本", "a b", "A1", "zz9", "aaa", "aaaa", "\n", "0x1F", "12.5"}
	for _, pattern := range []string{
		"", "a", "^a", "a$", "^a$", "^(a|b)$", "(^a|b$)", "a|b", "^a*$", "^a+b?$", "^[a-z]{2,3}$", "^[^a-z]+$", `\d`, `^\d{4}-\d\d-\d\d$`, `^\w+$`, `\s`, "^.$", "^.{2}$",
		"foo|bar", "^(foo|bar)+$", "^(?:foo)?bar$", "[a-c]b", `^\S+$`, `^[\w-]+$`, "^(a|ab)(c|bcd)?$", `^\p{L}+$`, `^[0-9]+(\.[0-9]+)?$`, "a{0}", "^$", "x*", "^(ab|b)*$",
	} {
		a := New()
		e, err := a.Search(pattern, Raw)
		if err != nil {
			t.Fatal(err)
		}
		a.Freeze()
		want := regexp.MustCompile(pattern)
		for _, text := range texts {
			if got := matches(a, e, text); got != want.MatchString(text) {
				t.Errorf("%q on %q: %v", pattern, text, got)
			}
		}
	}
}

func TestTheEndMayStandWithinARepetition(t *testing.T) {
	texts := []string{""}
	for i := 0; i < len(texts) && len(texts[i]) < 6; i++ {
		for _, next := range []string{"a", "b", ","} {
			texts = append(texts, texts[i]+next)
		}
	}
	for _, pattern := range []string{
		"^(a(b|$))*$", "^(a(b|$)){2}$", "^(a?(b|$)){2}$", "^(a$)*$", "^(a$){2}$", "^(a?$){3}$", "^(a$)+b", "(a$)*b", "^(a|b$){0,2}$", "^([^,]+(,|$)){3,}$", "^([^,]+(,|$)){2,3}$",
		`^(,?(a|b*)($|,))*$`, "^((a|b$)|,$)+$", "^(a(,|$))+b?$", "(a(b|$)){2,}",
	} {
		a := New()
		e, err := a.Search(pattern, Raw)
		if err != nil {
			t.Fatal(err)
		}
		a.Freeze()
		want := regexp.MustCompile(pattern)
		for _, text := range texts {
			if got := matches(a, e, text); got != want.MatchString(text) {
				t.Errorf("%q on %q: %v", pattern, text, got)
			}
		}
	}
}

func TestLookingAheadIsAnIntersection(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"^(?!foo)[a-z]+$", "bar", true}, {"^(?!foo)[a-z]+$", "foobar", false}, {"^(?!foo$)[a-z]+$", "foobar", true},
		{`^(?=.*[A-Z])(?=.*\d).{3,}$`, "aB1", true}, {`^(?=.*[A-Z])(?=.*\d).{3,}$`, "ab1", false}, {"a(?!b)", "ab", false}, {"a(?!b)", "abac", true},
	} {
		a := New()
		e, err := a.Search(c.pattern, JSON)
		if err != nil {
			t.Fatal(err)
		}
		a.Freeze()
		if got := matches(a, e, c.text); got != c.want {
			t.Errorf("%q on %q: %v", c.pattern, c.text, got)
		}
	}
}

func TestEdgesOfWordsAndEitherCaseAreMatched(t *testing.T) {
	texts := []string{"", "foo", "Foo", "FOO", "a foo", "afoo", "foo b", "foob", "foo_", "-foo-", "foofoo", "é foo", "éfoo", "foo foo", "s", "S", "k", "x", "mode", "a mode b", "amod", "Mode"}
	for _, pattern := range []string{
		`\bfoo\b`, `^\bfoo`, `foo\b`, `\Bfoo`, `foo\B`, `\b`, `^\B$`, `(\bfoo|b)$`, `\bfoo\b.*\bfoo\b`,
		`\b\b`, `\B\b`, `^\b\w*\b$`, `\b\w?\b\w?\B`, `$^`, `$^f`,
		"(?i)foo", "(?i)^foo$", "^(?i:f)oo$", "(?i)^[^f]", "^((?i)f)oo", "(?i)^s$", "(?i)^[j-l]$", "(?i)^[^k]$",
	} {
		a := New()
		e, err := a.Search(pattern, Raw)
		if err != nil {
			t.Fatal(err)
		}
		a.Freeze()
		want := regexp.MustCompile(pattern)
		for _, text := range texts {
			if got := matches(a, e, text); got != want.MatchString(text) {
				t.Errorf("%q on %q: %v", pattern, text, got)
			}
		}
	}
}

func TestWhatIsLookedForBeforeEveryCharacterIsRegular(t *testing.T) {
	for pattern, want := range map[string]map[string]bool{
		"^((?!mode)(?!Mode).)*$": {"": true, "mod": true, "a mode": false, "xMode": false, "mode": false, "moMod": true},
		"^(?:(?=[ab]).)+$":       {"": false, "ab": true, "abc": false},
		"^x((?!a$).)*$":          {"x": true, "xab": true, "xba": false},
	} {
		a := New()
		e, err := a.Search(pattern, JSON)
		if err != nil {
			t.Fatal(err)
		}
		a.Freeze()
		for text, want := range want {
			if got := matches(a, e, text); got != want {
				t.Errorf("%q on %q: %v, want %v", pattern, text, got, want)
			}
		}
	}
}

func TestAnEmptyIntersectionIsNone(t *testing.T) {
	a := New()
	x, _ := a.Search("^[a-z]{3}$", JSON)
	e := a.Seq(a.Byte('"'), a.And(x, a.Repeat(a.Char(AnyRune, JSON), 5, Infinite)), a.Byte('"'))
	a.Freeze()
	if a.Next(e, int(a.classOf['"'])) != None {
		t.Error("three letters cannot be five characters")
	}
}

func TestATextThatLookingAheadRulesOutIsRefusedWithoutASearch(t *testing.T) {
	a := New()
	e, err := a.Search(`^(?!.*://)(?=.{1,255}$)((.{1,63}\.){1,127}(?![0-9]*$)[a-z0-9-]+\.?)$`, JSON)
	if err != nil {
		t.Fatal(err)
	}
	a.Freeze()
	for _, b := range []byte("a:/") {
		if e = a.Next(e, int(a.classOf[b])); e == None {
			t.Fatalf("refused at %q", b)
		}
	}
	before := a.searched
	if a.Next(e, int(a.classOf['/'])) != None {
		t.Error(`"a://" is accepted`)
	}
	if n := a.searched - before; n > 1000 {
		t.Errorf("the search took %d steps", n)
	}
}

func TestMultiplesOfDecimals(t *testing.T) {
	for _, c := range []struct {
		of, text string
		want     bool
	}{
		{"7", "49", true}, {"7", "50", false}, {"7", "-14", true}, {"0.25", "1.75", true}, {"0.25", "1.7", false}, {"0.25", "1.750", true}, {"0.01", "3.14", true},
		{"0.01", "3.141", false}, {"2", "3.0", false}, {"2", "4.0", true}, {"2.5", "5", true}, {"2.5", "7.5", true}, {"2.5", "7", false},
	} {
		a := New()
		of, _ := new(big.Rat).SetString(c.of)
		e, err := a.Number(Numbers{Multiple: of})
		a.Freeze()
		if got := err == nil && matches(a, e, c.text); got != c.want {
			t.Errorf("%s a multiple of %s: %v", c.text, c.of, got)
		}
	}
}

func TestHostilePatternsAreRefusedInBoundedTime(t *testing.T) {
	for _, pattern := range []string{
		"(((((a{1000}){1000}){1000}){1000}){1000}){100000}", "(a*)*b(?=", `(?<=a)b`, `\b*`, `a(?=b)\bc`, `a(?!\b)`, `((?!\b).)*`, `((?!a).)*\b`, `(a)\1`, "[z-a]", "(", ")", "a**", "[", `\`, `\u{110000}`, "(^a){2}", "(a$b)*", "((a$)*b)*", "(?:a|b|(?:^c|d))(?:a|b|(?:^c|d))(?:a|b|(?:^c|d))(?:a|b|(?:^c|d))(?:a|b|(?:^c|d))(?:a|b|(?:^c|d))(?:a|b|(?:^c|d))(?:a|b|(?:^c|d))(?:a|b|(?:^c|d))",
	} {
		if _, err := New().Search(pattern, JSON); err == nil {
			t.Errorf("%q is accepted", pattern)
		}
	}
}

func FuzzPatternsNeverPanic(f *testing.F) {
	f.Add("^(?!a|b)[^a-z]{2,}\\d$", "abc")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		a := New()
		e, err := a.Search(pattern, JSON)
		if err != nil {
			return
		}
		a.Freeze()
		matches(a, e, text[:min(len(text), 50)])
	})
}

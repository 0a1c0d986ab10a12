package gbnf

import (
	"errors"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/grammar/budget"
)

func accepts(t *testing.T, grammar, text string) bool {
	t.Helper()
	g, err := Compile(grammar, budget.Default())
	if err != nil {
		t.Fatal(err)
	}
	s, n, err := g.Start().Read([]byte(text))
	return err == nil && n == len(text) && s.Accepts()
}

func TestGrammarsOfLlamaCppAreUnderstood(t *testing.T) {
	const list = `# a list of words
root  ::= item ("," ws item)* end?
item  ::= [a-z]+ | "(" root ")"
ws    ::= [ \t]*
end   ::= "!"{1,2}
`
	for text, want := range map[string]bool{
		"a": true, "ab, c": true, "(a,b),c!": true, "((x))!!": true, "": false, "a,": false, "(a": false, "a!!!": false, "A": false,
	} {
		if got := accepts(t, list, text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if !accepts(t, `root ::= "\x41" [^\n] . (x | "é"){2} 
x ::= "\u00e4"`, "A?zäé") {
		t.Error("escapes, classes and repetitions of rules")
	}
	if !accepts(t, "root ::= a\na ::= \"x\" a | \"\"", "xxxx") {
		t.Error("a rule that ends with itself")
	}
}

func TestGrammarsThatCannotBeUsedAreRefusedWithAReason(t *testing.T) {
	for text, reason := range map[string]string{
		"root ::= root \"a\" | \"b\"":                      "begins with itself",
		"root ::= e root\ne ::= \"a\"?":                    "no text meets it",
		"root ::= e root \"b\"\ne ::= \"a\"?":              "line 1: the rule root begins with itself",
		"root ::= \"x\" a\na ::= b \"c\"\nb ::= a | \"d\"": "line 2: the rule a begins with itself, by way of b",
		"root ::= ((root \"a\")? \"b\")*":                  "begins with itself",
		"root ::= missing":                                 "no rule missing",
		"other ::= \"a\"":                                  "no rule root",
		"root ::= \"a\" root":                              "no text meets it",
		"root ::= (\"a\"":                                  "missing )",
		"root ::= \"a":                                     "has no end",
		"root ::= [z-a]":                                   "out of order",
		"root ::= \"a\"{2,1}":                              "no repetition",
		"root ::= x{60000}\nx ::= \"a\" x?":                "repeated",
		"root = \"a\"":                                     "expected ::=",
		"root ::= \"a\"\nroot ::= \"b\"":                   "twice",
		"root ::= " + strings.Repeat("(", 200):             "deeper",
	} {
		_, err := Compile(text, budget.Default())
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

func TestOfSeveralMissingRulesTheSameIsAlwaysNamed(t *testing.T) {
	for range 30 {
		if _, err := Compile("root ::= c a b d", budget.Default()); err == nil || !strings.Contains(err.Error(), "no rule c") {
			t.Fatalf("Compile = %v, want an error about c", err)
		}
	}
}

func FuzzGrammarsNeverPanic(f *testing.F) {
	f.Add("root ::= \"a\" [b-c]* x?\nx ::= \"(\" root \")\"", "a(b")
	f.Fuzz(func(t *testing.T, grammar, text string) {
		if len(grammar) > 1000 {
			return
		}
		g, err := Compile(grammar, budget.Default())
		if err == nil {
			_, _, _ = g.Start().Read([]byte(text[:min(len(text), 50)]))
		}
	})
}

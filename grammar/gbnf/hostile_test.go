package gbnf

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// many joins the results of item for 0 to n-1.
func many(n int, item func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(item(i))
	}
	return b.String()
}

// small grammars look hard and are not: each is used for a text.
var small = map[string]struct{ grammar, text string }{
	"many rules that may be empty": {"root ::= " + strings.Repeat("x ", 4200) + "\".\"\nx ::= \"a\" | \"\"", strings.Repeat("a", 50) + "."},
	"many of different names": {"root ::= " + many(3000, func(i int) string { return fmt.Sprintf("x%d ", i) }) + "\".\"\n" +
		many(3000, func(i int) string { return fmt.Sprintf("x%d ::= \"a\"?\n", i) }), strings.Repeat("a", 20) + "."},
	"twice as many empty ones each time": {many(40, func(i int) string { return fmt.Sprintf("a%d ::= a%d a%d\n", i, i+1, i+1) }) + "a40 ::= \"x\" | \"\"\nroot ::= a0 \".\"", "xxxx."},
	"each of the twelve behind": {many(12, func(i int) string {
		return fmt.Sprintf("a%d ::= %s\n", i, many(12-i, func(k int) string { return fmt.Sprintf("a%d ", i+k+1) }))
	}) + "a12 ::= \"x\" | \"\"\nroot ::= a0 \".\"", "xxxx."},
	"a long chain":                       {"root ::= a0\n" + many(12000, func(i int) string { return fmt.Sprintf("a%d ::= a%d\n", i, i+1) }) + "a12000 ::= \"x\"", "x"},
	"a long chain from its end on":       {"root ::= a12000\n" + many(12000, func(i int) string { return fmt.Sprintf("a%d ::= a%d\n", i+1, i) }) + "a0 ::= \"x\"", "x"},
	"a repetition of empty parts":        {"root ::= x* \".\"\nx ::= \"a\" | \"\"", "aaa."},
	"repetitions within repetitions":     {"root ::= ((x*)*)+ \".\"\nx ::= \"a\" | \"\"", "aaa."},
	"itself behind what may be empty":    {"root ::= x root | \".\"\nx ::= \"a\" | \"\"", "aaa."},
	"many pieces":                        {"root ::= " + strings.Repeat(`"a" `, 20000), "aaaa"},
	"copies of copies":                   {"root ::= (((x y){1000}){1000}){1000} \".\"\nx ::= \"a\"\ny ::= \"b\"?", "abaab"},
	"copies of copies that may be empty": {"root ::= (((x y){1000}){1000}){1000} \".\"\nx ::= \"a\"?\ny ::= \"b\"?", "abaab."},
	"optional copies of copies":          {"root ::= ((x x){0,100}){0,100} \".\"\nx ::= \"a\" | \"\"", "aaaaa."},
	"twice the ways with every byte":     {"root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"d\"", strings.Repeat("a", 200) + "d" + strings.Repeat("bc", 100)},
	"ways to divide a text":              {"root ::= s \".\"\ns ::= x | x s\nx ::= \"a\" | \"a\" \"a\" | y\ny ::= \"a\" y | \"a\"", strings.Repeat("a", 100) + "."},
	"ways to nest":                       {"root ::= \"a\" root root | \"a\"", strings.Repeat("a", 101)},
	"a palindrome":                       {"root ::= \"a\" root \"a\" | \"b\" root \"b\" | \"\"", strings.Repeat("ab", 40) + strings.Repeat("ba", 40)},
	"many alternatives":                  {"root ::= " + many(5000, func(i int) string { return fmt.Sprintf(`"w%d" x | `, i) }) + "\"z\"\nx ::= \".\"", "w77."},
	"equal alternatives":                 {"root ::= (" + strings.Repeat("x | ", 5000) + "x) \".\"\nx ::= \"a\" x | \"\"", "aaa."},
	"rules that share all that follows":  {"root ::= (" + many(300, func(i int) string { return fmt.Sprintf("x%d | ", i) }) + "y) \".\"\ny ::= \"b\"\n" + many(300, func(i int) string { return fmt.Sprintf("x%d ::= \"a\" (root y | x%d)? \n", i, (i+1)%300) }), strings.Repeat("a", 40) + "."},
	"subsets":                            {"root ::= (\"a\" | \"b\")* \"a\" " + strings.Repeat(`("a" | "b") `, 14) + "\".\"", strings.Repeat("ba", 20) + "."},
	"subsets of rules":                   {"root ::= x* a " + strings.Repeat("x ", 14) + "\".\"\nx ::= \"a\" | \"b\"\na ::= \"a\"", strings.Repeat("ba", 20) + "."},
	"deep groups":                        {"root ::= " + strings.Repeat("(", 99) + `"a"` + strings.Repeat(")?", 99) + `"."`, "a."},
}

func TestGrammarsThatLookHardAreUsedQuickly(t *testing.T) {
	sweep.Full(t)
	for name, c := range small {
		b := budget.Default()
		g, err := Compile(c.grammar, b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		t.Logf("%s: %d steps, %d KiB", name, b.Spent(), b.Held()>>10)
		if b.Spent() > 1<<20 {
			t.Errorf("%s: compiling it took %d steps", name, b.Spent())
		}
		s := g.Start()
		for i := range len(c.text) {
			if err := s.Allow(bytewise, make(grammar.Mask, bytewise.Words()), nil); err != nil {
				t.Errorf("%s: the mask behind %d bytes: %v", name, i, err)
				break
			}
			next, n, err := s.Read([]byte{c.text[i]})
			if err != nil || n != 1 {
				t.Errorf("%s: %q is refused behind %d bytes: %v", name, c.text[i], i, err)
				break
			}
			s = next
		}
		if strings.HasSuffix(c.text, ".") && !s.Accepts() {
			t.Errorf("%s: the text may not end", name)
		}
		if b.Held() > b.Bytes() {
			t.Errorf("%s: %d bytes are held", name, b.Held())
		}
	}
}

// bytewise is a vocabulary of bytes.
var bytewise = grammar.NewVocabulary(256, func(id int32) []byte { return []byte{byte(id)} })

// large grammars need more than they may have.
var large = map[string]string{
	"copies":             "root ::= " + strings.Repeat("x{4000} ", 15) + "\nx ::= (y y){4000}\ny ::= \"a\" y | \"b\"",
	"optional classes":   "root ::= " + many(2000, func(i int) string { return fmt.Sprintf(`[^\U%08x]? `, 0x4e00+i) }) + `"."`,
	"classes":            "root ::= " + many(8000, func(i int) string { return fmt.Sprintf(`[\U%08x-\U%08x] x `, 0x100+i*3, 0x20000+i*7) }) + "\nx ::= \".\"",
	"names":              many(15000, func(i int) string { return fmt.Sprintf("a%d ::= [a-z]\n", i) }) + "root ::= a0",
	"ways of an ending":  "root ::= " + strings.Repeat(`("a" | "b")* "a" `, 40) + strings.Repeat(`("a" | "b") `, 200),
	"repeated sequences": "root ::= " + strings.Repeat(`((([a-z]?){100}){100}){100} `, 100),
}

func TestALargeGrammarIsRefusedByItsBoundOrStaysWithinIt(t *testing.T) {
	sweep.Full(t)
	for name, text := range large {
		for _, b := range []*budget.Budget{
			budget.New(context.Background(), 1<<14, 64<<20, nil),
			budget.New(context.Background(), 1<<24, 1<<20, nil),
		} {
			g, err := Compile(text, b)
			s := (*grammar.State)(nil)
			if err == nil {
				s = g.Start()
			}
			for i := 0; err == nil && i < 200 && !s.Ended(); i++ {
				if err = s.Allow(bytewise, make(grammar.Mask, bytewise.Words()), nil); err == nil {
					s, _, err = s.Read([]byte{"ab"[i%2]})
				}
			}
			var e *budget.Error
			if err != nil && !errors.As(err, &e) {
				t.Errorf("%s: %v, want a bound", name, err)
			}
			if most := b.Bytes() * 5 / 4; b.Held() > most {
				t.Errorf("%s: %d bytes are held, want at most %d", name, b.Held(), most)
			}
			if b.Spent() > 1<<24+1<<20 {
				t.Errorf("%s: %d steps of one task", name, b.Spent())
			}
		}
	}
}

func TestARefusedGrammarNamesItsLineAndTheBound(t *testing.T) {
	for _, c := range []struct {
		text         string
		steps, bytes int64
		want         []string
	}{
		{"# long\nroot ::= x\nx ::= " + strings.Repeat(`"a" x | `, 3000) + `"b"`, 1000, 64 << 20, []string{"line 3:", "to compile it takes more than 1000 steps"}},
		{"root ::= x\n\nx ::= " + strings.Repeat(`"a" x | `, 3000) + `"b"`, 1 << 24, 128 << 10, []string{"line 3:", "more than 128 KiB"}},
		{small["many rules that may be empty"].grammar, 12000, 64 << 20, []string{"line 1:", "12000 steps"}},
	} {
		_, err := Compile(c.text, budget.New(context.Background(), c.steps, c.bytes, nil))
		var bound *budget.Error
		if !errors.As(err, &bound) {
			t.Errorf("%.30q: %v, want a bound", c.text, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%.30q: %q, want %q in it", c.text, err, want)
			}
		}
	}
}

// countdown is a context that ends when it has been asked so many times.
type countdown struct {
	context.Context
	left *int
}

func (c countdown) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestCompilingEndsWithItsRequest(t *testing.T) {
	text := "root ::= x\nx ::= " + strings.Repeat(`"a" x | `, 20000) + `"b"`
	whole := budget.Default()
	if _, err := Compile(text, whole); err != nil {
		t.Fatal(err)
	}
	left := 3
	b := budget.New(countdown{context.Background(), &left}, budget.Steps, budget.Bytes, nil)
	if _, err := Compile(text, b); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context has ended", err)
	}
	if b.Spent() >= whole.Spent()/2 {
		t.Errorf("%d steps after the end, of %d", b.Spent(), whole.Spent())
	}
}

package gbnf

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// longest bounds the texts of language.
const longest = 6

// language is the texts of up to longest bytes that each rule stands for: rules are
// alternatives of sequences of a, b and rules (A, B, ...). It is what they generate,
// taken literally.
func language(rules [][]string) []map[string]bool {
	texts := make([]map[string]bool, len(rules))
	for i := range texts {
		texts[i] = map[string]bool{}
	}
	for changed := true; changed; {
		changed = false
		for i, alternatives := range rules {
			for _, sequence := range alternatives {
				all := []string{""}
				for _, k := range sequence {
					next := []string{string(k)}
					if k < 'a' {
						next = next[:0]
						for text := range texts[k-'A'] {
							next = append(next, text)
						}
					}
					var longer []string
					for _, head := range all {
						for _, tail := range next {
							if len(head)+len(tail) <= longest {
								longer = append(longer, head+tail)
							}
						}
					}
					slices.Sort(longer)
					all = slices.Compact(longer)
				}
				for _, text := range all {
					changed = changed || !texts[i][text]
					texts[i][text] = true
				}
			}
		}
	}
	return texts
}

func TestARandomGrammarAcceptsWhatItGenerates(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	names := []string{"root", "x", "y", "z"}
	used, all := 0, sweep.Cases(1000, 3000)
	for range all {
		rules := make([][]string, len(names))
		var text strings.Builder
		for i := range rules {
			fmt.Fprintf(&text, "%s ::=", names[i])
			for j := range 1 + r.IntN(3) {
				if j > 0 {
					text.WriteString(" |")
				}
				sequence := ""
				for range r.IntN(4) {
					sequence += string("abABCD"[r.IntN(6)])
				}
				rules[i] = append(rules[i], sequence)
				text.WriteString(` ""`)
				for _, k := range sequence {
					if k < 'a' {
						text.WriteString(" " + names[k-'A'])
					} else {
						fmt.Fprintf(&text, " %q", k)
					}
				}
			}
			text.WriteString("\n")
		}
		source := strings.ReplaceAll(text.String(), "'", `"`)
		want := language(rules)[0]
		g, err := Compile(source, budget.Default())
		if err != nil {
			if !strings.Contains(err.Error(), "begins with itself") && (!strings.Contains(err.Error(), "no text meets it") || len(want) > 0) {
				t.Fatalf("%s%v, and it has %d texts", source, err, len(want))
			}
			continue
		}
		used++
		for n := range longest + 1 {
			for bits := range 1 << n {
				text := make([]byte, n)
				for i := range text {
					text[i] = "ab"[bits>>i&1]
				}
				s, read, err := g.Start().Read(text)
				if err != nil {
					t.Fatal(err)
				}
				if got := read == n && s.Accepts(); got != want[string(text)] {
					t.Fatalf("%s%q: %v, want %v", source, text, got, !got)
				}
			}
		}
	}
	if used < all/10 {
		t.Errorf("only %d of %d grammars were used", used, all)
	}
}

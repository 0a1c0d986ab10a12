package gbnf

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/grammar/grammartest"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// short are all texts of up to so many characters, and some longer ones.
func short(r *rand.Rand, longest int) []string {
	all := []string{""}
	for from := 0; longest > 0; longest-- {
		to := len(all)
		for _, text := range all[from:to] {
			for _, c := range characters {
				all = append(all, text+string(c))
			}
		}
		from = to
	}
	for range 60 {
		var b strings.Builder
		for range 4 + r.IntN(6) {
			b.WriteRune([]rune(characters)[r.IntN(5)])
		}
		all = append(all, b.String())
	}
	return all
}

func TestADrawnGrammarMatchesWhatASlowRecogniserDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 52))
	grammars := sweep.Of(t, 200, 3200)
	used, left, empty, ends, taken, complex := 0, 0, 0, 0, 0, 0
	for range grammars {
		rules, source := drawGrammar(r)
		all := short(r, 3)
		g, err := Compile(source, budget.Default())
		switch {
		case err == nil:
		case strings.Contains(err.Error(), "begins with itself"):
			if left++; !circular(rules) {
				t.Errorf("%s%v", source, err)
			}
			continue
		case strings.Contains(err.Error(), "no text meets it"):
			empty++
			for _, text := range all {
				if recognises(rules, text) {
					t.Errorf("%s%v, and %q does", source, err, text)
				}
			}
			continue
		default:
			t.Errorf("%s%v", source, err)
			continue
		}
		used++
		v := []grammartest.Vocabulary{grammartest.Bytes(), grammartest.Embedded(), grammartest.Hostile(r, source)}[r.IntN(3)]
		var accepted []string
		for _, text := range all {
			want := recognises(rules, text)
			if got := grammartest.Reads(t, g, text); got != want {
				t.Errorf("%s%q is accepted: %v", source, text, got)
			} else if want {
				accepted = append(accepted, text)
			}
		}
		taken += len(accepted)
		r.Shuffle(len(accepted), func(i, j int) { accepted[i], accepted[j] = accepted[j], accepted[i] })
		for i := 0; err == nil && i < min(4, len(accepted)); i++ {
			err = grammartest.Accepts(g, v, r, accepted[i], 1)
		}
		for i := 0; err == nil && i < 3; i++ {
			text, ended, fault := grammartest.Walk(g, v, r, r.IntN(12), characters)
			if err = fault; ended {
				ends++
				if len(text) < 60 && strings.Trim(text, characters) == "" && !recognises(rules, text) { // classes list no other characters
					t.Errorf("%s%q is written", source, text)
				}
			}
		}
		if bound := (*budget.Error)(nil); errors.As(err, &bound) {
			complex++ // a token of 2047 bytes may be read in too many ways
		} else if err != nil {
			t.Errorf("%s%v", source, err)
		}
	}
	if used < grammars/2 || empty < grammars/100 || left < grammars/100 || taken < 3*used || ends < 2*used || complex > used/50 {
		t.Errorf("of %d grammars, %d are used, %d without texts, %d begin with themselves; %d texts are accepted, %d walks end, %d are too complex", grammars, used, empty, left, taken, ends, complex)
	}
}

package usage

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Nearest is the candidate that word was probably meant to be, two slips of the
// finger away at most; empty: none.
func Nearest(word string, candidates []string) string {
	const slips = 2
	best, least := "", min(slips, len(word)/2)+1
	if len(word) > 100 {
		return "" // nobody types so much by mistake
	}
	for _, c := range candidates {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// DidYouMean is the end of an error about an unknown word: a question, or nothing.
// What begins like a candidate means it too.
func DidYouMean(word string, candidates []string) string {
	best := Nearest(word, candidates)
	for _, c := range candidates {
		if best == "" && len(word) > 2 && strings.HasPrefix(c, word) {
			best = c
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

package usage

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Nearest returns the candidate that is closest to word, at most two edits away; empty:
// there is none.
func Nearest(word string, candidates []string) string {
	const edits = 2
	best, least := "", min(edits, len(word)/2)+1
	if len(word) > 100 {
		return "" // long words take long to compare
	}
	for _, c := range candidates {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// DidYouMean ends an error about an unknown word: with a question, or with nothing.
// The beginning of a candidate means that candidate.
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

package grammartest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/grammar"
)

// Reads reports whether g accepts a whole text, read byte by byte.
func Reads(t testing.TB, g *grammar.Grammar, text string) bool {
	t.Helper()
	s := g.Start()
	for i := range len(text) {
		next, n, err := s.Read([]byte{text[i]})
		if err != nil {
			t.Fatalf("%.200q: %v behind %d bytes", text, err, i)
		}
		if n == 0 {
			return false
		}
		s = next
	}
	return s.Accepts()
}

// mostForced bounds the bytes that are found to be forced at once.
const mostForced = 256

// Mask returns the tokens that v allows after s. It is an error unless s reads their bytes
// one by one, and all of them begin with the bytes that are forced within tokens.
func Mask(s *grammar.State, v Vocabulary) (grammar.Mask, error) {
	mask := make(grammar.Mask, v.Words())
	if err := s.Allow(v.Vocabulary, mask, nil); err != nil {
		return nil, err
	}
	first, err := firstBytes(s)
	if err != nil {
		return nil, err
	}
	forced := s.Forced()
	count, within := 0, true
	for id, text := range v.Texts {
		may := len(text) > 0 && v.Has(int32(id)) && first[text[0]]
		for at, i := s, 0; may && i < len(text); i++ {
			next, n, err := at.Read(text[i : i+1])
			if err != nil {
				return nil, err
			}
			at, may = next, n == 1
		}
		if may != mask.Has(int32(id)) {
			return nil, fmt.Errorf("the mask has token %q: %v", text, !may)
		}
		if may {
			count++
			within = within && strings.HasPrefix(string(forced), string(text))
		}
	}
	got, err := s.ForcedWithin(v.Vocabulary, nil)
	if err != nil {
		return nil, err
	}
	// Within a list whose items differ, tokens that would repeat one count here.
	short := len(got) == 0 && within && len(forced) < mostForced && s.Shared()
	if short && len(forced) > 0 || len(got) > 0 && (!within || string(got) != string(forced)) {
		return nil, fmt.Errorf("%q is forced, and within tokens %q, beside which there are others: %v", forced, got, !within)
	}
	shared := make(grammar.Mask, v.Words())
	if err := s.Rules().Allow(v.Vocabulary, shared, nil); err != nil {
		return nil, err
	}
	if err := s.Withhold(v.Vocabulary, shared, nil); err != nil || !slices.Equal(shared, mask) {
		return nil, fmt.Errorf("the mask of the rules, without what is withheld, has %d tokens and not %d: %v", shared.Count(), mask.Count(), err)
	}
	if mask.Count() != count {
		return nil, fmt.Errorf("the mask has %d tokens, %d may follow", mask.Count(), count)
	}
	return mask, nil
}

// firstBytes returns the bytes that may follow s.
func firstBytes(s *grammar.State) (may [256]bool, err error) {
	for b := range may {
		_, n, err := s.Read([]byte{byte(b)})
		if err != nil {
			return may, err
		}
		may[b] = n == 1
	}
	return may, nil
}

// Accepts returns an error unless g accepts text however it is cut into tokens of v. It tries some ways: each token is in
// the mask, forced bytes come next, and a lookup without the lock gives what a lookup with it gives.
func Accepts(g *grammar.Grammar, v Vocabulary, r *rand.Rand, text string, ways int) error {
	for range ways {
		s, rest := g.Start(), text
		fault := func(format string, args ...any) error {
			return fmt.Errorf("behind %q: "+format, append([]any{text[:len(text)-len(rest)]}, args...)...)
		}
		for _, id := range v.cut(r, text) {
			if forced := s.Forced(); !strings.HasPrefix(rest, string(forced)) {
				return fault("%q is forced, and %q follows", forced, rest)
			}
			token := v.Texts[id]
			mask := make(grammar.Mask, v.Words())
			within, err := s.ForcedWithin(v.Vocabulary, nil)
			if err == nil {
				err = s.Allow(v.Vocabulary, mask, nil)
			}
			if err != nil {
				return fault("%w", err)
			}
			next, n, err := s.Read(token)
			switch {
			case err != nil:
				return fault("%w", err)
			case !strings.HasPrefix(rest, string(within)):
				return fault("%q is forced within tokens, and %q follows", within, rest)
			case v.Has(id) && !mask.Has(id):
				return fault("the mask lacks %q", token)
			case n != len(token):
				return fault("%d bytes of %q are read", n, token)
			}
			if peeked, m, known := s.Peek(token); known && (m != n || peeked != next) {
				return fault("%d bytes of %q are known to be read, to another state", m, token)
			}
			s, rest = next, rest[len(token):]
		}
		if !s.Accepts() {
			return fmt.Errorf("it may not end: expected %s", s.Expected())
		}
	}
	return nil
}

// Walk returns a text of random tokens of v that g allows. After about most of them it prefers tokens that have one of the
// bytes of closing. Each mask is compared with the tokens that are read, one in eight times. ended is false if the text has
// not come to an end after many tokens more. It is an error if nothing may follow a text that may not end.
func Walk(g *grammar.Grammar, v Vocabulary, r *rand.Rand, most int, closing string) (text string, ended bool, err error) {
	s := g.Start()
	for n := range 40 * (most + 10) {
		if s.Accepts() && (s.Ended() || n > most || r.IntN(8) == 0) {
			return text, true, nil
		}
		mask := make(grammar.Mask, v.Words())
		if err = s.Allow(v.Vocabulary, mask, nil); err == nil && r.IntN(8) == 0 {
			mask, err = Mask(s, v)
		}
		if err != nil {
			return text, false, fmt.Errorf("behind %q: %w", text, err)
		}
		var may, ends []int32
		for id, token := range v.Texts {
			if mask.Has(int32(id)) {
				if may = append(may, int32(id)); strings.ContainsAny(string(token), closing) {
					ends = append(ends, int32(id))
				}
			}
		}
		if len(may) == 0 {
			return text, s.Accepts(), fmt.Errorf("nothing may follow %q", text)
		}
		if len(ends) > 0 && (n > most && r.IntN(4) > 0 || r.IntN(4) == 0) {
			may = ends
		}
		token := v.Texts[may[r.IntN(len(may))]]
		next, k, err := s.Read(token)
		if err != nil || k != len(token) {
			return text, false, fmt.Errorf("behind %q, %d bytes of %q are read, which the mask has: %v", text, k, token, err)
		}
		s, text = next, text+string(token)
	}
	return text, false, nil
}

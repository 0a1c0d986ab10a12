package constrain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	grammarbudget "github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/structure"
	"github.com/lutra-lm/lutra/tts/text"
)

// speller returns a model without weights, as far as constraints need one.
func speller(t testing.TB) Words {
	t.Helper()
	f, err := embedded.Open(embedded.Models()[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.New(f.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	return Words{Tokenizer: tok, Vocab: tok.Size()}
}

// endingAtOnce returns the only token that may come next, where a thought has to end, found
// in the whole completion.
func endingAtOnce(most int, begin, end, completion []int32) (id int32, ends bool) {
	if len(completion) < most+len(begin) || !slices.Equal(completion[:len(begin)], begin) {
		return 0, false
	}
	thought := completion[len(begin):]
	for i := len(end); i <= len(thought); i++ {
		if slices.Equal(thought[i-len(end):i], end) {
			return 0, false
		}
	}
	for n := min(len(end)-1, len(thought)-most); n > 0; n-- {
		if slices.Equal(thought[len(thought)-n:], end[:n]) {
			return end[n], true
		}
	}
	return end[0], true
}

func TestAThoughtsEndIsFoundTokenByToken(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, end := range [][]int32{{7}, {1, 2, 1, 1}, {1, 1, 2}} {
		for _, begin := range [][]int32{nil, {3, 1}} {
			l := &thoughtLimit{most: 4, begin: begin, end: text.NewMatcher(end)}
			found := 0
			for range 2000 {
				completion := slices.Clone(begin[:min(len(begin), r.IntN(4))])
				state := l.start()
				for _, id := range completion {
					state = l.next(state, id)
				}
				for range 14 {
					id, ends := l.ending(state)
					want, must := endingAtOnce(l.most, begin, end, completion)
					if ends != must || ends && id != want {
						t.Fatalf("behind %v, end %v: token %d, %v; want %d, %v", completion, end, id, ends, want, must)
					}
					if ends {
						found++
					}
					next := int32(1 + r.IntN(3))
					if ends && r.IntN(3) > 0 {
						next = id
					}
					completion, state = append(completion, next), l.next(state, next)
				}
			}
			if found < 1000 {
				t.Errorf("an end was due %d times", found)
			}
		}
	}
}

// held returns where completions begin that are held to a list of numbers, behind a thought, with
// a word that is forbidden.
func held(t testing.TB, m Words, thinking bool) sampling.Constraint {
	t.Helper()
	f, err := compile(Schema, `{"type": "array", "items": {"type": "integer"}}`, grammarbudget.Default())
	if err != nil {
		t.Fatal(err)
	}
	r := &Rules{Format: structure.New(f, structure.Vocabulary(m.Tokenizer), structure.TokensOf(m.Tokenizer)), BadWords: []string{"12"}}
	return r.New(m, nil, thinking)
}

func TestACompletionMayBeReadLateAndInAnyOrder(t *testing.T) {
	m := speller(t)
	vocab := (m.Vocab + 63) / 64
	r := rand.New(rand.NewPCG(5, 6))
	for _, thinking := range []bool{false, true} {
		at := held(t, m, thinking)
		var completion []int32
		begin := at
		if thinking {
			for _, id := range m.Tokenizer.Encode(nil, "hm, </thin </think>\n", tokenizer.Options{}) {
				completion, at = append(completion, id), at.Next(id)
			}
		}
		for range 60 {
			mask := make([]uint64, vocab)
			at.Allow(mask)
			// Another reads the same completion at once, in a format of its own, of which
			// nothing is known.
			late := held(t, m, thinking)
			for _, id := range completion {
				late = late.Next(id)
			}
			again := make([]uint64, vocab)
			late.Allow(again)
			if !slices.Equal(mask, again) {
				t.Fatalf("behind %q: read at once, the mask is another", m.Tokenizer.Decode(completion, false))
			}
			var may []int32
			for id := range int32(m.Vocab) {
				if mask[id/64]>>(id%64)&1 != 0 && !m.Tokenizer.EOG(id) {
					may = append(may, id)
				}
			}
			if len(may) == 0 {
				break
			}
			id := may[r.IntN(len(may))]
			// A guess that is not taken changes nothing.
			for range 3 {
				at.Next(may[r.IntN(len(may))]).Allow(make([]uint64, vocab))
			}
			completion, at = append(completion, id), at.Next(id)
		}
		if mask := make([]uint64, vocab); begin != nil {
			begin.Allow(mask)
			if slices.Max(mask) == 0 {
				t.Error("nothing may come first any more")
			}
		}
	}
}

func TestWhatHasLeftItsFormatAllowsNothing(t *testing.T) {
	m := speller(t)
	at := held(t, m, false)
	for _, id := range m.Tokenizer.Encode(nil, "[1, x", tokenizer.Options{}) {
		at = at.Next(id)
	}
	mask := make([]uint64, (m.Vocab+63)/64)
	if at.Allow(mask); slices.Max(mask) != 0 {
		t.Error("tokens are allowed")
	}
	if id, ok := at.(sampling.Preparer).Forced(); ok {
		t.Errorf("token %d is forced", id)
	}
}

func TestAWordThatIsForbiddenIsNotForced(t *testing.T) {
	m := speller(t)
	f, err := NewFormats(m.Tokenizer).Format(t.Context(), Choice, Choices([]string{"day 12 each"}))
	if err != nil {
		t.Fatal(err)
	}
	spelled := ""
	for _, bad := range [][]string{nil, {"12"}} {
		at := (&Rules{Format: f, BadWords: bad}).New(m, nil, false)
		var forced []byte
		for {
			id, ok := at.(sampling.Preparer).Forced()
			if !ok {
				break
			}
			forced, at = append(forced, m.Tokenizer.Piece(id)...), at.Next(id)
		}
		if bad == nil {
			spelled = string(forced)
		} else if len(forced) >= len(spelled) {
			t.Errorf("%q is forced in spite of the word %q", forced, bad)
		}
	}
	if spelled != "day 12 each" {
		t.Errorf("%q is forced", spelled)
	}
}

// BenchmarkConstraint measures what a token of a structured answer takes beside its
// sampling: it does not grow with the answer.
func BenchmarkConstraint(b *testing.B) {
	m := speller(b)
	for _, length := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprintf("tokens=%d", length), func(b *testing.B) {
			comma, one := m.Tokenizer.Encode(nil, ",", tokenizer.Options{Within: true}), m.Tokenizer.Encode(nil, "1", tokenizer.Options{Within: true})
			at := held(b, m, false).Next(m.Tokenizer.Encode(nil, "[", tokenizer.Options{Within: true})[0])
			for range length / 2 {
				at = at.Next(one[0]).Next(comma[0])
			}
			mask := make([]uint64, (m.Vocab+63)/64)
			b.ReportAllocs()
			for b.Loop() {
				for _, id := range []int32{one[0], comma[0]} {
					at = at.Next(id)
					<-at.(sampling.Preparer).Prepare().Allowed
					clear(mask)
					at.Allow(mask)
				}
			}
		})
	}
}

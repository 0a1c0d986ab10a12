package grammar

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// brackets is the rules of nested lists of words.
type brackets struct{ arena *regex.Arena }

func (b brackets) Terminal(s Symbol) (regex.Expr, bool) {
	a := b.arena
	switch s {
	case 1:
		return a.Byte('['), true
	case 2:
		return a.Byte(']'), true
	case 3:
		return a.Seq(a.Byte('"'), a.Texts(0, 20, regex.JSON), a.Byte('"')), true
	case 4:
		return a.Literal(", "), true
	}
	return regex.None, false
}

func (b brackets) Alternatives(s Symbol) [][]Symbol {
	if s == 0 {
		return [][]Symbol{{3}, {1, 5, 2}, {1, 2}}
	}
	return [][]Symbol{{0}, {0, 4, 5}}
}

func newBrackets(t *testing.T) *Grammar {
	t.Helper()
	a := regex.New()
	r := brackets{a}
	for s := range Symbol(6) {
		r.Terminal(s)
	}
	g, err := New(a, r, 0)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// words is a vocabulary of all bytes and of random words, some of them twice.
func words(r *rand.Rand) [][]byte {
	var texts [][]byte
	for b := range 256 {
		texts = append(texts, []byte{byte(b)})
	}
	pieces := []string{"[", "]", `"`, ", ", "a", "bc", "é", "日", `\n`, `\`, "x y", "\xe6", "1234567890"}
	for range 3000 {
		var b strings.Builder
		for range 1 + r.IntN(6) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		texts = append(texts, []byte(b.String()))
	}
	return append(texts, nil, []byte(strings.Repeat("a", 60)))
}

func TestAMaskHoldsTheTokensThatMayFollowAndNoOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	texts := words(r)
	v := NewVocabulary(len(texts), func(id int32) []byte { return texts[id] })
	g := newBrackets(t)
	for range 30 {
		s := g.Start()
		for range 12 {
			mask := make(Mask, v.Words())
			if err := s.Allow(v, mask, nil); err != nil {
				t.Fatal(err)
			}
			var may []int32
			for id, text := range texts {
				_, n, err := s.Read(text)
				if want := err == nil && n == len(text) && n > 0; want != mask.Has(int32(id)) {
					t.Fatalf("token %q: %v, want %v", text, mask.Has(int32(id)), want)
				} else if want {
					may = append(may, int32(id))
				}
			}
			if mask.Count() != len(may) {
				t.Fatalf("%d tokens are allowed, want %d", mask.Count(), len(may))
			}
			if len(may) == 0 {
				break
			}
			s, _, _ = s.Read(texts[may[r.IntN(len(may))]])
		}
	}
}

// What matches nothing has no room.
func TestAMaskHasNoTokensForAWayThatLeadsNowhere(t *testing.T) {
	texts := [][]byte{[]byte("a"), []byte("b"), []byte("xyz")}
	v := NewVocabulary(len(texts), func(id int32) []byte { return texts[id] })
	a := regex.New()
	e, err := a.Search("^(.*(?=a)b|ab)$", regex.JSON)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Single(a, e)
	if err != nil {
		t.Fatal(err)
	}
	mask := make(Mask, v.Words())
	if err := g.Start().Allow(v, mask, nil); err != nil || mask.Count() != 1 || !mask.Has(0) {
		t.Errorf("the mask has %d tokens, %v", mask.Count(), err)
	}
}

func TestLongWorkPausesNowAndThen(t *testing.T) {
	a := regex.New()
	e, err := a.Match(`[a-z]{1,200}x[a-z]{40}`, regex.Raw)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Single(a, e)
	if err != nil {
		t.Fatal(err)
	}
	texts := make([][]byte, 40)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range texts {
		for range 90 {
			texts[i] = append(texts[i], byte('a'+r.IntN(26)))
		}
	}
	v := NewVocabulary(len(texts), func(id int32) []byte { return texts[id] })
	pauses := 0
	if err := g.Start().Allow(v, make(Mask, v.Words()), func() { pauses++ }); err != nil {
		t.Fatal(err)
	}
	if pauses == 0 {
		t.Error("thousands of states were worked out without a pause")
	}
	before := pauses
	_, _, _ = g.Start().Read(texts[0])
	if pauses != before {
		t.Error("what is asked for later pauses too")
	}
}

func TestWhatIsForcedIsFound(t *testing.T) {
	a := regex.New()
	g, err := Single(a, a.Seq(a.Literal("abc"), a.Or(a.Literal("de"), a.Literal("df")), a.Optional(a.Byte('!'))))
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Start().Forced(); string(got) != "abcd" {
		t.Errorf("forced %q", got)
	}
	s, n, _ := g.Start().Read([]byte("abcdf"))
	if n != 5 || !s.Accepts() || len(s.Forced()) > 0 || s.Expected() != `'!', the end` {
		t.Errorf("after %d bytes: %v, %q, %s", n, s.Accepts(), s.Forced(), s.Expected())
	}
	if s, _, _ = s.Read([]byte("!")); !s.Ended() || !s.Accepts() {
		t.Error("there is nothing behind the end")
	}
}

func TestATextHasEndedWhereNothingMayFollow(t *testing.T) {
	a := regex.New()
	short, err := a.Match("(ab?){2}", regex.Raw)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Single(a, a.And(short, a.Texts(0, 3, regex.Raw)))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"": false, "ab": false, "aa": false, "aba": true, "aab": true} {
		if s, n, err := g.Start().Read([]byte(text)); n != len(text) || s.Ended() != want || err != nil {
			t.Errorf("behind %d bytes of %q, nothing may follow: %v, want %v (%v)", n, text, s.Ended(), want, err)
		}
	}
}

func TestMemoryIsForgottenAndAnswersStayRight(t *testing.T) {
	g := newBrackets(t)
	held := g.Start()
	for i := range 3 * mostInterned {
		text := fmt.Sprintf(`[[["%d`, i)
		if _, n, err := g.Start().Read([]byte(text)); n != len(text) || err != nil {
			t.Fatalf("%d of %q: %v", n, text, err)
		}
		if i%1000 == 0 && len(g.memo.states) > mostInterned+100 {
			t.Fatalf("%d states", len(g.memo.states))
		}
	}
	if s, n, _ := held.Read([]byte(`["a", ["b"], []]`)); n != 16 || !s.Accepts() {
		t.Errorf("after %d bytes: %v", n, s.Accepts())
	}
}

package structure

import (
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/regex"
	"github.com/lutra-lm/lutra/grammar/schema"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// spelling is a tokenizer of bytes and of a few words, of which it writes the longest.
type spelling []string

func (s spelling) Text(id int32) []byte {
	if id < 256 {
		return []byte{byte(id)}
	}
	return []byte(s[id-256])
}

func (s spelling) Encode(dst []int32, text string, o tokenizer.Options) []int32 {
	for i, word := range s {
		if name, special := strings.CutPrefix(word, grammar.Special); special && o.ParseSpecial && strings.HasPrefix(text, name) {
			dst, text = append(dst, int32(256+i)), text[len(name):]
		}
	}
	for len(text) > 0 {
		id, n := int32(text[0]), 1
		for i, word := range s {
			if len(word) > n && len(word) <= len(text) && text[:len(word)] == word {
				id, n = int32(256+i), len(word)
			}
		}
		dst, text = append(dst, id), text[n:]
	}
	return dst
}

func newFormat(t *testing.T, text string, words ...string) *Format {
	t.Helper()
	g, err := schema.Compile([]byte(text), schema.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := spelling(words)
	return New(g, grammar.NewVocabulary(256+len(s), s.Text), s)
}

const fewLetters = `{"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 9}`

// walk reads the tokens of a text, and is nil where they are none of the format.
func (f *Format) walk(t *testing.T, text string) *State {
	t.Helper()
	p := f.Start()
	for _, id := range f.tokens.Encode(nil, text, tokenizer.Options{}) {
		next, err := p.Next(id)
		if err != nil {
			t.Fatal(err)
		}
		if next == nil {
			return nil
		}
		p = next
	}
	return p
}

func TestAStateIsWhereATextLeadsTo(t *testing.T) {
	f := newFormat(t, fewLetters)
	for text, accepts := range map[string]bool{"": false, `["a`: false, `["a","b"]`: true} {
		if p := f.walk(t, text); p == nil || p.Accepts() != accepts {
			t.Errorf("behind %q: %v, want a state that accepts: %v", text, p, accepts)
		}
	}
	for _, text := range []string{`["c`, `["c",`} {
		if p := f.walk(t, text); p != nil {
			t.Errorf("behind %q there is a state", text)
		}
	}
	if f.walk(t, `["a"`) != f.walk(t, `["b"`) {
		t.Error("equal states of the grammar have several states")
	}
}

func TestWhatHasBeenReadOnceIsKnownWithoutWork(t *testing.T) {
	f := newFormat(t, fewLetters)
	if _, known := f.Start().Peek('['); known {
		t.Error("what nobody has read is known")
	}
	want := f.walk(t, "[")
	if got, known := f.Start().Peek('['); !known || got != want {
		t.Errorf("Peek = %p, %v, want %p", got, known, want)
	}
	f.walk(t, "x")
	if got, known := f.Start().Peek('x'); !known || got != nil {
		t.Errorf("what is refused: Peek = %p, %v", got, known)
	}
}

func TestATokenIsForcedWhereOnlyItsSpellingIsLeftToChoose(t *testing.T) {
	const object = `{"type": "object", "properties": {"number": {"enum": ["one", "only"]}}, "required": ["number"], "additionalProperties": false}`
	words := []string{"number", "num", "ber", `":`, ` "`, "on", "one", `"}`, `{"`}
	for _, c := range []struct{ text, forced string }{
		{"", ""},                  // { or {"
		{"{", ""},                 // white space may come
		{`{"`, "number"},          // num and n are its beginnings
		{`{"nu`, "m"},             // as the tokenizer spells the rest
		{`{"number`, `":`},        // nothing is longer
		{`{"number":`, ""},        // a blank, or none
		{`{"number":"`, ""},       // on, or one, which goes beyond what is forced
		{`{"number":"on`, ""},     // e or l
		{`{"number":"onl`, `y`},   // the quote and the bracket go on behind it
		{`{"number":"only"}`, ""}, // nothing
		{`{"number":"only`, ""},   // " or "}
		{`{"number":"only"`, ""},  // white space or }
	} {
		f := newFormat(t, object, words...)
		id, ok := f.walk(t, c.text).Forced(nil)
		got := ""
		if ok {
			got = string(f.tokens.Text(id))
		}
		if got != c.forced {
			t.Errorf("behind %q %q is forced, want %q", c.text, got, c.forced)
		}
	}
}

func TestATokenThatIsNoTextIsForcedByItsName(t *testing.T) {
	arena := regex.New()
	g, err := grammar.Single(arena, arena.Literal("go"+grammar.Special+"<call>"+"now"))
	if err != nil {
		t.Fatal(err)
	}
	s := spelling{"go", grammar.Special + "<call>", "<call>", "now", grammar.Special + "<stop>"}
	f := New(g, grammar.NewVocabulary(256+len(s), s.Text), s)
	p := f.Start()
	for _, want := range []int32{256, 257, 259} {
		id, ok := p.Forced(nil)
		if !ok || id != want {
			t.Fatalf("token %d is forced, %v, want %d", id, ok, want)
		}
		if p, err = p.Next(id); err != nil {
			t.Fatal(err)
		}
	}
	if id, ok := p.Forced(nil); ok || !p.Accepts() {
		t.Errorf("at the end token %d is forced, it may end here: %v", id, p.Accepts())
	}
}

func TestManyMayAskAtOnce(t *testing.T) {
	f := newFormat(t, fewLetters)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			p := f.Start()
			for _, b := range []byte(`["a","b","a","b","a","b","a"]`) {
				mask, err := p.Mask(nil)
				if err != nil || !mask.Has(int32(b)) {
					t.Errorf("%q is not allowed, %v", b, err)
					return
				}
				if id, ok := p.Forced(nil); ok && id != int32(b) {
					t.Errorf("%q is forced instead of %q", id, b)
				}
				p, _ = p.Next(int32(b))
			}
		})
	}
	wg.Wait()
}

func TestMasksTakeABoundedAmountOfMemory(t *testing.T) {
	sweep.NoRace(t)
	f := newFormat(t, `{"type": "string", "maxLength": 5000}`)
	p := f.walk(t, `"`)
	for range 5000 {
		if _, err := p.Mask(nil); err != nil {
			t.Fatal(err)
		}
		p, _ = p.Next('x')
		if len(f.states) > mostStates || f.held > mostMasks {
			t.Fatalf("%d states, %d bytes of masks", len(f.states), f.held)
		}
	}
}

// What has been written of such a list is the answer's own; masks of the rules are shared.
func TestItemsOfAListDiffer(t *testing.T) {
	f := newFormat(t, `{"type": "array", "uniqueItems": true, "items": {"type": "string", "maxLength": 2}}`, `","`, `"ab"`, `b","a`)
	for text, may := range map[string]string{`["a","a`: "b", `["b","a`: `b"`, `["ab","a`: `c"`, `["a","ab"`: `,]`} {
		p := f.walk(t, text)
		if p == nil {
			t.Errorf("there is nothing behind %q", text)
			continue
		}
		mask, err := p.Mask(nil)
		if err != nil {
			t.Fatal(err)
		}
		for id := range int32(256 + 3) {
			next, err := p.Next(id)
			if err != nil || mask.Has(id) != (next != nil) {
				t.Errorf("behind %q, token %d: the mask says %v, and what is behind it is %v, %v", text, id, mask.Has(id), next, err)
			}
		}
		for _, b := range []byte(may) {
			if !mask.Has(int32(b)) {
				t.Errorf("behind %q there may be no %q", text, b)
			}
		}
	}
	if f.walk(t, `["ab","ab"`) != nil || f.walk(t, `["a","a"`) != nil {
		t.Error("an item is there twice")
	}
}

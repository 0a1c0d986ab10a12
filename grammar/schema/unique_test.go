package schema

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/grammar"
)

func TestItemsOfAListMayBeHeldApart(t *testing.T) {
	for schema, texts := range map[string]map[string]bool{
		`{"type": "array", "uniqueItems": true, "items": {"type": "string"}}`: {
			`["a", "b"]`: true, `["a", "a"]`: false, `["a", "aa", ""]`: true, `["", ""]`: false, "[\n  \"x\",\n  \"x\"\n]": false,
			`["\"", "\\", "\n"]`: true, `["\"", "\""]`: false, `["a\\", "a\\"]`: false, `["[", "[", "c"]`: false, `["a,b", "a", "b"]`: true, `[]`: true,
		},
		`{"type": "array", "uniqueItems": true, "items": {"type": "integer"}}`: {
			`[1, 12, 2, -1]`: true, `[12, 1, 12]`: false, `[1,1]`: false, `[1,\n 1]`: false, `[0, -0]`: false, `[10, 1, 0]`: true,
		},
		`{"type": "array", "uniqueItems": true, "items": {"type": ["number", "null", "boolean"]}}`: {
			`[1, 1.5, null, true, false]`: true, `[null, 1, null]`: false, `[1.5, 1.50]`: false, `[true, true]`: false, `[1e1, 10]`: false, `[0.5, 5]`: true,
		},
		`{"type": "array", "items": {"type": "array", "uniqueItems": true, "items": {"type": "string"}}}`: {
			`[["a"], ["a"]]`: true, `[["a"], ["b", "b"]]`: false, `[[], ["a", "b"], []]`: true,
		},
		`{"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true, "items": {"type": "string"}}, "b": {"type": "array", "items": {"type": "string"}}}}`: {
			`{"a": ["x"], "b": ["x", "x"]}`: true, `{"a": ["x", "x"], "b": []}`: false,
		},
		`{"type": "array", "uniqueItems": true, "minItems": 3, "items": {"type": "integer", "minimum": 1, "maximum": 70}}`: {`[1, 2]`: false, `[70, 7, 17]`: true},
	} {
		g, err := Compile([]byte(schema), Options{})
		if err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}
		for text, want := range texts {
			text = strings.ReplaceAll(text, `\n `, "\n ") // of an indent
			for _, piece := range []int{1, 3, len(text)} {
				s, whole := g.Start(), true
				for rest := text; rest != "" && whole; rest = rest[min(piece, len(rest)):] {
					part := rest[:min(piece, len(rest))]
					next, n, err := s.Read([]byte(part))
					if err != nil {
						t.Fatal(err)
					}
					s, whole = next, n == len(part)
				}
				if got := whole && s.Accepts(); got != want {
					t.Errorf("%s: %s in pieces of %d bytes: %v, want %v", schema, text, piece, got, want)
				}
			}
		}
	}
}

// A token's text is the vocabulary's, and read by many at once.
func TestReadingLeavesTheTextAlone(t *testing.T) {
	g, err := Compile([]byte(`{"type": "array", "uniqueItems": true, "items": {"type": "string"}}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(`["a", "b"]`)
	var wg sync.WaitGroup
	for range 4 { // the race detector sees writes
		wg.Go(func() {
			if s, n, err := g.Start().Read(text); n != len(text) || !s.Accepts() || err != nil {
				t.Errorf("%d bytes of %s are read: %v", n, text, err)
			}
			if !bytes.Equal(text, []byte(`["a", "b"]`)) {
				t.Errorf("the text has become %s", text)
			}
		})
	}
	wg.Wait()
}

// One that can only end would be a dead end.
func TestARepeatedItemIsRefusedWithItsLastByte(t *testing.T) {
	for text, want := range map[string]int{"[0,0": 3, "[10,10": 6, "[null,n": 6, "[1,-0": 4, "[10,0": 5} {
		g, err := Compile([]byte(`{"type": "array", "uniqueItems": true, "items": {"type": ["integer", "null"]}}`), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, n, err := g.Start().Read([]byte(text)); n != want || err != nil {
			t.Errorf("%d bytes of %s are read, want %d: %v", n, text, want, err)
		}
	}
}

// Tokens may hold an item's end, or several items.
func TestNoTokenRepeatsAnItem(t *testing.T) {
	words := []string{`"a`, `"a"`, `","`, `"a"]`, `"a","a"`, `["a","a"`, `["a","b"`, `b"`, `","a"`, `,1`, `1,1`, `12,1`, `[1,1`, `[1`, `11`, `1]`, `"]`, `a","a"`}
	v := grammar.NewVocabulary(len(words), func(id int32) []byte { return []byte(words[id]) })
	for _, c := range []struct{ items, before string }{
		{"string", ``}, {"string", `["a"`}, {"string", `["a",`}, {"string", `["a","`}, {"string", `["b","`}, {"string", `["a","b","a`},
		{"integer", ``}, {"integer", `[1`}, {"integer", `[1,`}, {"integer", `[11,1`},
	} {
		g, err := Compile([]byte(`{"type": "array", "uniqueItems": true, "items": {"type": "`+c.items+`"}}`), Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, n, err := g.Start().Read([]byte(c.before))
		if n < len(c.before) || err != nil {
			t.Fatal(c.before, n, err)
		}
		mask := make(grammar.Mask, v.Words())
		if err := s.Allow(v, mask, nil); err != nil {
			t.Fatal(err)
		}
		for id, word := range words {
			_, n, err := s.Read([]byte(word))
			if want := n == len(word); mask.Has(int32(id)) != want || err != nil {
				t.Errorf("behind %s, %s: the mask says %v, reading it %v, %v", c.before, word, !want, want, err)
			}
		}
	}
}

func TestItemsThatCannotBeToldApartAreRefusedByName(t *testing.T) {
	for _, items := range []string{`{}`, `{"type": "object"}`, `{"type": ["string", "array"]}`} {
		if _, err := Compile([]byte(`{"type": "array", "uniqueItems": true, "items": `+items+`}`), Options{}); err == nil || !strings.Contains(err.Error(), "uniqueItems") {
			t.Errorf("%s: %v", items, err)
		}
	}
	if _, err := Compile([]byte(`{"type": "array", "uniqueItems": true, "minItems": 100, "items": {"type": "integer", "minimum": 1, "maximum": 99}}`), Options{}); err == nil {
		t.Error("100 of 99 numbers are taken for possible")
	}
}

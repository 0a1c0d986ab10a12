package constrain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/grammar"
	grammarbudget "github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/tts/structure"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// listed returns n of what item makes, with commas between.
func listed(n int, item func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = item(i)
	}
	return strings.Join(parts, ",")
}

// largeFormats returns formats of each kind that need more than a mebibyte.
func largeFormats(f *Formats) map[string]func(ctx context.Context) error {
	word := func(i int) string { return fmt.Sprintf(`"%016x"`, uint64(i)*0x9e3779b97f4a7c15) } // no two end alike
	text := map[Kind]string{
		Schema:  `{"enum": [` + listed(20000, word) + `]}`,
		Regex:   strings.ReplaceAll(listed(1500, word), ",", "|"),
		Choice:  Choices(strings.Split(listed(5000, word), ",")),
		Grammar: "root ::= " + strings.ReplaceAll(listed(5000, word), ",", "|"),
	}
	all := map[string]func(ctx context.Context) error{
		"calls": func(ctx context.Context) error {
			tools := []toolcall.Tool{{Name: "a", Strict: true, Schema: []byte(`{"type": "object", "properties": {"x": ` + text[Schema] + `}}`)}}
			_, err := f.Calls(ctx, "a", func(b *grammarbudget.Budget) (*grammar.Grammar, error) {
				return toolcall.Hermes.Grammar(b, tools, toolcall.CallConstraint{Required: true, Special: f.Special})
			})
			return err
		},
	}
	for kind, text := range text {
		all[string(kind)] = func(ctx context.Context) error {
			_, err := f.Format(ctx, kind, text)
			return err
		}
	}
	return all
}

func TestFormatsOfAllKindsAreBounded(t *testing.T) {
	sweep.NoRace(t)
	f := NewFormats(speller(t).Tokenizer)
	f.Share(structure.NewCache(structure.CacheOptions{Memory: 4 << 20, Largest: 1 << 20}))
	for kind, ask := range largeFormats(f) {
		var bound *grammarbudget.Error
		if err := ask(t.Context()); !errors.As(err, &bound) || !strings.Contains(err.Error(), "more than 1 MiB of memory") {
			t.Errorf("%s: %.100v, want its bound", kind, err)
		}
	}
	if st := f.cache.Stats(); st.Bytes != 0 || st.Refused != 5 {
		t.Errorf("%+v", st)
	}
}

func TestCompilingFormatsOfAllKindsEndsWithTheRequest(t *testing.T) {
	f := NewFormats(speller(t).Tokenizer)
	for kind, ask := range largeFormats(f) {
		f.Share(structure.NewCache(structure.DefaultCacheOptions()))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := ask(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want that the client has gone", kind, err)
		}
	}
	for kind, text := range map[Kind]string{Schema: `{"enum": [` + listed(20000, func(i int) string { return fmt.Sprint(i * i) }) + `]}`, Regex: strings.Repeat("(a|b)?c", 4000)} {
		whole := grammarbudget.Default()
		if _, err := compile(kind, text, whole); err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		b := grammarbudget.New(gone, grammarbudget.Steps, grammarbudget.Bytes, nil)
		b.OnRest(cancel) // after the first few thousand steps
		if _, err := compile(kind, text, b); !errors.Is(err, context.Canceled) || b.Spent() > whole.Spent()/2 {
			t.Errorf("%s: %.100v after %d steps, of %d", kind, err, b.Spent(), whole.Spent())
		}
	}
}

// full is an account that has no more than so many bytes.
type full struct{ left int64 }

func (f *full) Take(n int64) error {
	if f.left -= n; n > 0 && f.left < 0 {
		return structure.ErrBusy
	}
	return nil
}

func TestABudgetMayEndAnywhere(t *testing.T) {
	sweep.NoRace(t)
	every := grammar.NewVocabulary(256, func(id int32) []byte { return []byte{byte(id)} })
	tools := []toolcall.Tool{{Name: "a", Strict: true, Schema: []byte(`{"type": "object", "properties": {"x": {"type": "string", "pattern": "^[a-c]+$", "maxLength": 5}}}`)}}
	makers := map[string]func(b *grammarbudget.Budget) (*grammar.Grammar, error){
		"calls": func(b *grammarbudget.Budget) (*grammar.Grammar, error) {
			return toolcall.Hermes.Grammar(b, tools, toolcall.CallConstraint{Required: true})
		},
	}
	for kind, text := range map[Kind]string{
		Schema: `{"type": "object", "properties": {"a": {"type": "number", "multipleOf": 0.3, "minimum": 2}, "b": {"type": "array", "items": {"enum": [1, "x"]}},
			"c": {"type": "string", "format": "date"}, "d": {"not": {"type": "string", "pattern": "^x"}}}, "required": ["a"], "patternProperties": {"^z": {"oneOf": [{"type": "null"}, {"const": true}]}}}`,
		Regex:   `^(a|b)*c{2,5}(?=d)[^x]*$`,
		Choice:  Choices([]string{"one", "two", "three"}),
		Grammar: "root ::= x* (y \"b\"){2,3} .\nx ::= \"a\" | \"\"\ny ::= \"c\" root | [^d]",
	} {
		makers[string(kind)] = func(b *grammarbudget.Budget) (*grammar.Grammar, error) { return compile(kind, text, b) }
	}
	for kind, make := range makers {
		whole := grammarbudget.Default()
		if _, err := make(whole); err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		try := func(b *grammarbudget.Budget) error {
			g, err := make(b)
			for s := g; err == nil && s != nil; s = nil {
				at := g.Start()
				for i := 0; err == nil && i < 8 && !at.Ended(); i++ {
					mask := structure.New(g, every, nil).Start()
					if _, err = mask.Mask(nil); err == nil {
						_ = at.Forced()
						at, _, err = at.Read([]byte{`{"a": 3}`[i]})
					}
				}
			}
			return err
		}
		var bound *grammarbudget.Error
		for n := int64(0); n < whole.Spent(); n += max(1, whole.Spent()/150) {
			if err := try(grammarbudget.New(t.Context(), n, 1<<30, nil)); !errors.As(err, &bound) {
				t.Errorf("%s: %d steps of %d: %v", kind, n, whole.Spent(), err)
			}
		}
		for n := int64(0); n < whole.Held(); n += max(1, whole.Held()/150) {
			if err := try(grammarbudget.New(t.Context(), grammarbudget.Steps, n, nil)); !errors.As(err, &bound) {
				t.Errorf("%s: %d bytes of %d: %v", kind, n, whole.Held(), err)
			}
			if err := try(grammarbudget.New(t.Context(), grammarbudget.Steps, 1<<30, &full{left: n})); err != nil && !errors.Is(err, structure.ErrBusy) {
				t.Errorf("%s: an account of %d bytes of %d: %v", kind, n, whole.Held(), err)
			}
		}
	}
}

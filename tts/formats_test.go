package tts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	grammarbudget "github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/tts/structure"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// listed is n of what item makes, with commas between.
func listed(n int, item func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = item(i)
	}
	return strings.Join(parts, ",")
}

// largeFormats are formats of each kind that need more than a mebibyte.
func largeFormats(m *Model) map[string]func(ctx context.Context) error {
	word := func(i int) string { return fmt.Sprintf(`"%016x"`, uint64(i)*0x9e3779b97f4a7c15) } // no two end alike
	text := map[FormatKind]string{
		FormatSchema:  `{"enum": [` + listed(20000, word) + `]}`,
		FormatRegex:   strings.ReplaceAll(listed(1500, word), ",", "|"),
		FormatChoice:  Choices(strings.Split(listed(5000, word), ",")),
		FormatGrammar: "root ::= " + strings.ReplaceAll(listed(5000, word), ",", "|"),
	}
	all := map[string]func(ctx context.Context) error{
		"calls": func(ctx context.Context) error {
			c := Calling{Format: toolcall.Hermes, Tools: []toolcall.Tool{{Name: "a", Strict: true, Schema: []byte(`{"type": "object", "properties": {"x": ` + text[FormatSchema] + `}}`)}}}
			return c.Hold(ctx, &Request{}, m, true, "")
		},
	}
	for kind, text := range text {
		all[string(kind)] = func(ctx context.Context) error {
			_, err := m.Format(ctx, kind, text)
			return err
		}
	}
	return all
}

func TestFormatsOfAllKindsAreBounded(t *testing.T) {
	m := speller(t)
	m.ShareFormats(structure.NewCache(structure.CacheOptions{Memory: 4 << 20, Largest: 1 << 20}))
	for kind, ask := range largeFormats(m) {
		var bound *grammarbudget.Error
		if err := ask(t.Context()); !errors.As(err, &bound) || !strings.Contains(err.Error(), "more than 1 MiB of memory") {
			t.Errorf("%s: %.100v, want its bound", kind, err)
		}
	}
	if st := m.formats.cache.Stats(); st.Bytes != 0 || st.Refused != 5 {
		t.Errorf("%+v", st)
	}
}

func TestCompilingFormatsOfAllKindsEndsWithTheRequest(t *testing.T) {
	m := speller(t)
	for kind, ask := range largeFormats(m) {
		m.ShareFormats(structure.NewCache(structure.DefaultCacheOptions()))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := ask(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want that the client has gone", kind, err)
		}
	}
	for kind, text := range map[FormatKind]string{FormatSchema: `{"enum": [` + listed(20000, func(i int) string { return fmt.Sprint(i * i) }) + `]}`, FormatRegex: strings.Repeat("(a|b)?c", 4000)} {
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

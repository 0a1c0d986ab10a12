package tts

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/lutra-lm/lutra/grammar"
	grammarbudget "github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/grammar/gbnf"
	"github.com/lutra-lm/lutra/grammar/regex"
	"github.com/lutra-lm/lutra/grammar/schema"
	"github.com/lutra-lm/lutra/tts/structure"
)

// FormatKind is a language in which a format is written.
type FormatKind string

// The kinds.
const (
	FormatSchema  FormatKind = "schema"  // JSON Schema
	FormatRegex   FormatKind = "regex"   // a pattern that the whole answer matches
	FormatChoice  FormatKind = "choice"  // texts, each behind a zero byte
	FormatGrammar FormatKind = "grammar" // llama.cpp's GBNF

	formatCalls FormatKind = "calls" // of tools, see Calling.Hold
)

// formats are what a model's formats are made of.
type formats struct {
	cache      *structure.Cache
	vocabulary func() *grammar.Vocabulary
	special    func() map[string]bool // names of tokens that are no text
}

func newFormats(m *Model) *formats {
	return &formats{
		cache:      structure.NewCache(structure.DefaultCacheOptions()),
		vocabulary: sync.OnceValue(func() *grammar.Vocabulary { return structure.Vocabulary(m.Tokenizer) }),
		special: sync.OnceValue(func() map[string]bool {
			names := map[string]bool{}
			for id := range int32(m.Tokenizer.Size()) {
				if !m.Tokenizer.Plain(id) {
					names[m.Tokenizer.Token(id)] = true
				}
			}
			return names
		}),
	}
}

// Choices writes texts as FormatChoice wants them.
func Choices(texts []string) string { return "\x00" + strings.Join(texts, "\x00") }

// ShareFormats makes the model's formats those of a cache, of several models. It is called
// before the model is used.
func (m *Model) ShareFormats(c *structure.Cache) { m.formats.cache = c }

// Format is what answers of the model are held to. It is in use until ctx ends. An error
// says what is wrong with the text, or which bound it has met; or it is
// structure.ErrBusy or that of ctx.
func (m *Model) Format(ctx context.Context, kind FormatKind, text string) (*structure.Format, error) {
	return m.format(ctx, kind, text, func(b *grammarbudget.Budget) (*grammar.Grammar, error) { return compile(kind, text, b) })
}

// format is the format of a text, by the cache.
func (m *Model) format(ctx context.Context, kind FormatKind, text string, compile func(*grammarbudget.Budget) (*grammar.Grammar, error)) (*structure.Format, error) {
	f := m.formats
	key := structure.Key{Owner: f, Sum: sha256.Sum256([]byte(string(kind) + "\x00" + text))}
	return f.cache.Format(ctx, key, func(ctx context.Context, b *grammarbudget.Budget) (format *structure.Format, err error) {
		resting(ctx, func(rest func()) {
			b.OnRest(structure.Spaced(rest))
			var g *grammar.Grammar
			if g, err = compile(b); err == nil {
				format = structure.New(g, f.vocabulary(), structure.TokensOf(m.Tokenizer))
			}
		})
		return format, err
	})
}

func compile(kind FormatKind, text string, b *grammarbudget.Budget) (*grammar.Grammar, error) {
	switch kind {
	case FormatSchema:
		return schema.Compile([]byte(text), schema.Options{Listed: true, Budget: b})
	case FormatGrammar:
		return gbnf.Compile(text, b)
	case FormatChoice:
		arena := regex.Within(b)
		return grammar.Single(arena, arena.Literals(strings.Split(text, "\x00")[1:]))
	case FormatRegex:
		arena := regex.Within(b)
		e, err := arena.Match(text, regex.Raw)
		if err != nil {
			return nil, err
		}
		g, err := grammar.Single(arena, e)
		if err == nil && g.Start().Ended() {
			err = errors.New("no text matches it")
		}
		return g, err
	}
	return nil, fmt.Errorf("%q is no kind of format", kind)
}

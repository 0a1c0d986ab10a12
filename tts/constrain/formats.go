package constrain

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
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/structure"
)

// Kind is a language in which a format is written.
type Kind string

// The kinds.
const (
	Schema  Kind = "schema"  // JSON Schema
	Regex   Kind = "regex"   // a pattern that the whole answer matches
	Choice  Kind = "choice"  // texts, each after a zero byte
	Grammar Kind = "grammar" // llama.cpp's GBNF

	calls Kind = "calls" // of tools
)

// Formats has the formats of a model.
type Formats struct {
	cache      *structure.Cache
	tokens     structure.Tokens
	vocabulary func() *grammar.Vocabulary
	special    func() map[string]bool // names of tokens that are no text
}

// NewFormats returns the formats of a model with a tokenizer.
func NewFormats(t *tokenizer.Tokenizer) *Formats {
	return &Formats{
		cache:      structure.NewCache(structure.DefaultCacheOptions()),
		tokens:     structure.TokensOf(t),
		vocabulary: sync.OnceValue(func() *grammar.Vocabulary { return structure.Vocabulary(t) }),
		special: sync.OnceValue(func() map[string]bool {
			names := map[string]bool{}
			for id := range int32(t.Size()) {
				if !t.Plain(id) {
					names[t.Token(id)] = true
				}
			}
			return names
		}),
	}
}

// Choices writes texts as Choice wants them.
func Choices(texts []string) string { return "\x00" + strings.Join(texts, "\x00") }

// Share makes the formats use a cache of several models. It is called before the model is used.
func (f *Formats) Share(c *structure.Cache) { f.cache = c }

// Special reports whether a token that is no text has a name.
func (f *Formats) Special(name string) bool { return f.special()[name] }

// Format returns the format of a text, in use until ctx ends. An error says what is wrong with the text, or
// which bound it has met; or it is structure.ErrBusy or ctx's.
func (f *Formats) Format(ctx context.Context, kind Kind, text string) (*structure.Format, error) {
	return f.format(ctx, kind, text, func(b *grammarbudget.Budget) (*grammar.Grammar, error) { return compile(kind, text, b) })
}

// Calls is Format of calls of tools: key has all that compile depends on.
func (f *Formats) Calls(ctx context.Context, key string, compile func(*grammarbudget.Budget) (*grammar.Grammar, error)) (*structure.Format, error) {
	return f.format(ctx, calls, key, compile)
}

// format returns the format of a text, by the cache.
func (f *Formats) format(ctx context.Context, kind Kind, text string, compile func(*grammarbudget.Budget) (*grammar.Grammar, error)) (*structure.Format, error) {
	key := structure.Key{Owner: f, Sum: sha256.Sum256([]byte(string(kind) + "\x00" + text))}
	return f.cache.Format(ctx, key, func(ctx context.Context, b *grammarbudget.Budget) (*structure.Format, error) {
		var g *grammar.Grammar
		var err error
		withPauses(ctx, func(rest func()) {
			b.OnRest(structure.Spaced(rest))
			g, err = compile(b)
		})
		if err != nil {
			return nil, err
		}
		return structure.New(g, f.vocabulary(), f.tokens), nil // others may make the vocabulary
	})
}

func compile(kind Kind, text string, b *grammarbudget.Budget) (*grammar.Grammar, error) {
	switch kind {
	case Schema:
		return schema.Compile([]byte(text), schema.Options{Listed: true, Budget: b})
	case Grammar:
		return gbnf.Compile(text, b)
	}
	arena := regex.Within(b)
	e, err := expression(arena, kind, text)
	if err != nil {
		return nil, err
	}
	g, err := grammar.Single(arena, e)
	if err == nil && g.Start().Ended() {
		err = errors.New("no text matches it")
	}
	return g, err
}

// expression returns the expression of a kind that is one.
func expression(arena *regex.Arena, kind Kind, text string) (regex.Expr, error) {
	switch kind {
	case Choice:
		return arena.Literals(strings.Split(text, "\x00")[1:]), nil
	case Regex:
		return arena.Match(text, regex.Raw)
	}
	return regex.None, fmt.Errorf("%q is no kind of format", kind)
}

// Answer adds a symbol for answers that are held to a format, of any kind but Grammar.
func Answer(f *schema.Combined, kind Kind, text string) (grammar.Symbol, error) {
	if kind == Schema {
		return f.Value([]byte(text), schema.Options{Listed: true})
	}
	e, err := expression(f.Arena(), kind, text)
	if err != nil {
		return 0, err
	}
	return f.Match(e), nil
}

package tts

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/lutra-lm/lutra/grammar"
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

// mostFormats bounds the formats that a model remembers.
const mostFormats = 16

// formats are the formats that a model has been asked for of late, with what has
// been found out about them.
type formats struct {
	mu         sync.Mutex
	vocabulary func() *grammar.Vocabulary
	special    func() map[string]bool // names of tokens that are no text
	known      []knownFormat          // the latest last
}

type knownFormat struct {
	kind   FormatKind
	text   string
	format *structure.Format
}

func newFormats(m *Model) *formats {
	return &formats{
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

// Format is what answers of the model are held to. An error says what is wrong with
// the text, or that it is too complex.
func (m *Model) Format(kind FormatKind, text string) (*structure.Format, error) {
	return m.format(kind, text, func() (*grammar.Grammar, error) { return compile(kind, text) })
}

// format remembers what is made of a text.
func (m *Model) format(kind FormatKind, text string, compile func() (*grammar.Grammar, error)) (*structure.Format, error) {
	f := m.formats
	if format := f.find(kind, text); format != nil {
		return format, nil
	}
	g, err := compile()
	if err != nil {
		return nil, err
	}
	format := structure.New(g, f.vocabulary(), structure.TokensOf(m.Tokenizer))
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known) >= mostFormats {
		f.known = append(f.known[:0], f.known[1:]...)
	}
	f.known = append(f.known, knownFormat{kind, text, format})
	return format, nil
}

func (f *formats) find(kind FormatKind, text string) *structure.Format {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, k := range f.known {
		if k.kind == kind && k.text == text {
			f.known = append(f.known[:i], f.known[i+1:]...)
			if k.format.Worn() {
				return nil
			}
			f.known = append(f.known, k)
			return k.format
		}
	}
	return nil
}

func compile(kind FormatKind, text string) (*grammar.Grammar, error) {
	arena := regex.New()
	switch kind {
	case FormatSchema:
		return schema.Compile([]byte(text), schema.Options{Listed: true})
	case FormatGrammar:
		return gbnf.Compile(text)
	case FormatChoice:
		return grammar.Single(arena, arena.Literals(strings.Split(text, "\x00")[1:]))
	case FormatRegex:
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

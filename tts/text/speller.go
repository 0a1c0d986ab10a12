package text

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/models/tokenizer"
)

// Speller knows the texts of a model's tokens.
type Speller struct {
	Tokenizer *tokenizer.Tokenizer
	Vocab     int // token ids are 0 to Vocab-1

	// Between returns what the model puts its thoughts between; nil: nothing of its own.
	Between func() Marks

	longest int // bytes of the longest token
}

// NewSpeller returns the speller of a vocabulary of vocab tokens.
func NewSpeller(t *tokenizer.Tokenizer, vocab int) Speller {
	s := Speller{Tokenizer: t, Vocab: vocab}
	for id := range int32(t.Size()) {
		s.longest = max(s.longest, len(s.Bytes(id)))
	}
	return s
}

// LeastTokens returns the fewest tokens that a text can have.
func (s *Speller) LeastTokens(text string) int { return len(text) / max(s.longest, 1) }

// Decode returns the text of tokens, without special ones, as valid UTF-8.
func (s *Speller) Decode(ids []int32) string { return characters(s.Tokenizer.Decode(ids, false)) }

// Spell returns the text of tokens with the names of special ones, as valid UTF-8.
func (s *Speller) Spell(ids []int32) string { return characters(s.Tokenizer.Decode(ids, true)) }

// Bytes returns a token's text, for listing tokens one by one, or its name where a
// special token has no text.
func (s *Speller) Bytes(id int32) []byte { return Piece(s.Tokenizer, id) }

// Hidden reports whether a token adds nothing to a text, so that Bytes is its name.
func (s *Speller) Hidden(id int32) bool {
	return len(s.Tokenizer.Piece(id)) == 0 && len(s.Mark(id)) == 0
}

// Mark returns the text of a token that some vocabularies hide though it divides
// the thoughts from the answer; empty for all others.
func (s *Speller) Mark(id int32) []byte {
	name := s.Tokenizer.Token(id)
	if Think.has(name) || Channel.has(name) || s.Between != nil && s.Between().has(name) {
		return []byte(name)
	}
	return nil
}

// Special returns a special token's name, empty where ok says that there is no such token.
func (s *Speller) Special(id int32, ok bool) string {
	if !ok {
		return ""
	}
	return s.Tokenizer.Token(id)
}

// Holding lists the tokens that hold one of stops.
func (s *Speller) Holding(stops []string) []int32 {
	var ids []int32
	for id := range int32(s.Vocab) {
		piece := s.Tokenizer.Piece(id)
		if slices.ContainsFunc(stops, func(stop string) bool { return bytes.Contains(piece, []byte(stop)) }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// characters returns text with U+FFFD for each byte that belongs to no character.
func characters(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range text {
		b.WriteRune(r)
	}
	return b.String()
}

// Piece returns a token's text, or its name where a special token has no text.
func Piece(t *tokenizer.Tokenizer, id int32) []byte {
	if piece := t.Piece(id); len(piece) > 0 {
		return piece
	}
	return []byte(t.Token(id))
}

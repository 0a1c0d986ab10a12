package tokenizer

import (
	"errors"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

func TestVocabulariesAreTheSameTokenForToken(t *testing.T) {
	of := func(tokens ...string) *Tokenizer {
		scores := make([]float32, len(tokens))
		tok, err := New(gguf.Metadata{
			"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.scores": scores,
		})
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	a := of("<unk>", "<s>", "</s>", "a", "b")
	if err := a.Same(of("<unk>", "<s>", "</s>", "a", "b")); err != nil {
		t.Errorf("equal vocabularies: %v", err)
	}
	for want, other := range map[string]*Tokenizer{
		`token 4 is "b" and "c"`: of("<unk>", "<s>", "</s>", "a", "c"),
		"5 tokens and 6":         of("<unk>", "<s>", "</s>", "a", "b", "c"),
	} {
		if err := a.Same(other); !errors.Is(err, ErrVocabulary) || !strings.Contains(err.Error(), want) {
			t.Errorf("Same = %v, want %s", err, want)
		}
	}
}

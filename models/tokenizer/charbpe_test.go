package tokenizer

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

// tinyCharacters is a vocabulary as Gemma 4's files have it, of a few merges.
func tinyCharacters() gguf.Metadata {
	tokens, types := []string{"<pad>", "<bos>", "<turn|>", "<unk>"}, []int32{3, 3, 3, 2}
	for b := range 256 {
		tokens, types = append(tokens, fmt.Sprintf("<0x%02X>", b)), append(types, 6)
	}
	tokens = append(tokens, "▁", "a", "b", "c", "t", "h", "e", "é", "\n", "\n\n", "x", "th", "the", "▁the", "ab", "▁▁", "▁▁a", "abc", "c▁", "éa")
	return gguf.Metadata{
		"tokenizer.ggml.model": "gemma4", "tokenizer.ggml.tokens": tokens,
		"tokenizer.ggml.token_type":   append(types, make([]int32, len(tokens)-len(types))...),
		"tokenizer.ggml.merges":       []string{"t h", "th e", "▁ the", "a b", "▁ ▁", "▁▁ a", "ab c", "c ▁", "é a", "\n \n"},
		"tokenizer.ggml.bos_token_id": uint32(1), "tokenizer.ggml.unknown_token_id": uint32(3),
	}
}

// The ids come from Hugging Face's tokenizers 0.23 (BPE with byte_fallback, after a
// normalizer that writes ▁ for spaces) with the same vocabulary.
func TestCharactersMergeWhereAFileIsGemma4s(t *testing.T) {
	tok, err := New(tinyCharacters())
	if err != nil || len(tok.Warnings()) > 0 {
		t.Fatalf("New gives %v and warnings %q", err, tok.Warnings())
	}
	for text, want := range map[string][]int32{
		"the cat":            {272, 260, 263, 261, 264},
		" the  abc thé":      {273, 275, 277, 260, 271, 267},
		"ab\n\nc\nx  ab":     {274, 269, 263, 268, 270, 275, 274},
		"abc the\n\n\nzß€ab": {277, 273, 269, 268, 126, 199, 163, 230, 134, 176, 274},
		"c the c  a":         {263, 273, 260, 263, 276},
		"   a":               {275, 260, 261},
	} {
		got := tok.Encode(nil, text, Options{})
		if !slices.Equal(got, want) {
			t.Errorf("Encode(%q) = %v, want %v", text, got, want)
		}
		if back := tok.Decode(got, false); back != text {
			t.Errorf("%v decodes to %q, want %q", got, back, text)
		}
	}
	if got := tok.Encode(nil, "a<turn|>", Options{AddSpecial: true, ParseSpecial: true}); !slices.Equal(got, []int32{1, 261, 2}) || !tok.EOG(2) {
		t.Errorf("special tokens give %v, ended by <turn|>: %t", got, tok.EOG(2))
	}
}

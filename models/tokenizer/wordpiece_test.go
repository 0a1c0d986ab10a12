package tokenizer

import (
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

// wordPieces is a tokenizer of few pieces. What whole texts become is in tts/embed.
func wordPieces(t *testing.T, change func(md gguf.Metadata)) *Tokenizer {
	t.Helper()
	md := gguf.Metadata{
		"tokenizer.ggml.model":      "bert",
		"tokenizer.ggml.tokens":     []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁un", "able", "▁cafe", "▁!", "▁a", "b"},
		"tokenizer.ggml.token_type": []int32{3, 3, 3, 3, 1, 1, 1, 1, 1, 1}, "tokenizer.ggml.cls_token_id": uint32(2),
		"tokenizer.ggml.seperator_token_id": uint32(3), "tokenizer.ggml.unknown_token_id": uint32(1),
	}
	if change != nil {
		change(md)
	}
	tok, err := New(md)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestWordsAreDividedIntoTheLongestPieces(t *testing.T) {
	tok := wordPieces(t, nil)
	for text, want := range map[string][]int32{
		"UnAble Café!":                 {2, 4, 5, 6, 7, 3},
		"":                             {2, 3},
		"un able":                      {2, 4, 1, 3}, // a word must begin with a piece that begins one
		"[SEP]":                        {2, 1, 1, 1, 3},
		"a\u0300\u0301b \x00\xff ab":   {2, 8, 9, 8, 9, 3},
		"ab\u2028ab\u2029ab":           {2, 8, 9, 8, 9, 8, 9, 3},
		"ab\u0378":                     {2, 1, 3}, // a character that is not assigned is one of its word
		"a" + strings.Repeat("b", 99):  append([]int32{2, 8}, append(slices.Repeat([]int32{9}, 99), 3)...),
		"a" + strings.Repeat("b", 1e5): {2, 1, 3},
	} {
		if got := tok.Encode(nil, text, Options{AddSpecial: true}); !slices.Equal(got, want) {
			t.Errorf("%.20q is %v, want %v", text, got, want)
		}
	}
	if got := tok.Encode(nil, "a[SEP]b", Options{ParseSpecial: true}); !slices.Equal(got, []int32{8, 3, 1}) {
		t.Errorf("with special tokens: %v", got)
	}
	if got := tok.Decode([]int32{4, 5, 6, 7}, false); got != "unable cafe !" {
		t.Errorf("decoded: %q", got)
	}
}

func TestAFileMayKeepCaseAndAccents(t *testing.T) {
	tok := wordPieces(t, func(md gguf.Metadata) {
		md["tokenizer.ggml.tokens"] = []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁Un", "able", "▁café", "▁!", "▁a", "b"}
		md["tokenizer.ggml.normalizer.lowercase"] = false
	})
	if got := tok.Encode(nil, "Unable café unable", Options{}); !slices.Equal(got, []int32{4, 5, 6, 1}) {
		t.Errorf("encoded: %v", got)
	}
}

func TestOddFilesOfWordPiecesEncodeWithoutFault(t *testing.T) {
	for name, change := range map[string]func(md gguf.Metadata){
		"no ids": func(md gguf.Metadata) {
			for _, key := range []string{"cls", "seperator", "unknown"} {
				delete(md, "tokenizer.ggml."+key+"_token_id")
			}
		},
		"ids out of range": func(md gguf.Metadata) { md["tokenizer.ggml.cls_token_id"] = uint32(4e9) },
		"control alone":    func(md gguf.Metadata) { md["tokenizer.ggml.token_type"] = slices.Repeat([]int32{3}, 10) },
	} {
		tok := wordPieces(t, change)
		for _, text := range awkward {
			for _, id := range tok.Encode(nil, text, Options{AddSpecial: true, ParseSpecial: true}) {
				if id < 0 || int(id) >= tok.Size() {
					t.Errorf("%s: %q gives token %d", name, text, id)
				}
			}
		}
	}
}

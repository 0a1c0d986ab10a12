package tokenizer

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

// unigrams is the file of a tokenizer of few tokens. What whole texts become beside
// transformers is in tts/embed.
func unigrams() gguf.Metadata {
	return gguf.Metadata{
		"tokenizer.ggml.model":  "t5",
		"tokenizer.ggml.tokens": []string{"<s>", "<pad>", "</s>", "<unk>", "▁", "▁a", "b", "ab", "▁abab", "\"x"},
		"tokenizer.ggml.scores": []float32{0, 0, 0, 0, -1, -2, -3, -2.5, -9, -1}, "tokenizer.ggml.token_type": []int32{3, 3, 3, 2, 1, 1, 1, 1, 1, 1},
		"tokenizer.ggml.bos_token_id": uint32(0), "tokenizer.ggml.eos_token_id": uint32(2), "tokenizer.ggml.unknown_token_id": uint32(3),
	}
}

// newTokenizer makes the tokenizer of a file after changes.
func newTokenizer(t *testing.T, md, changes gguf.Metadata) *Tokenizer {
	t.Helper()
	maps.Copy(md, changes)
	tok, err := New(md)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestWordsAreDividedIntoTheLikeliestTokens(t *testing.T) {
	tok := newTokenizer(t, unigrams(), nil)
	for text, want := range map[string][]int32{
		"ab":          {0, 4, 7, 2},    // -3.5; as ▁a b it is -5
		"abab":        {0, 4, 7, 7, 2}, // -6; as one token -9
		"  ab  a\t b": {0, 4, 7, 5, 4, 6, 2},
		"":            {0, 2},
		" ":           {0, 2},
		"zz b":        {0, 4, 3, 4, 6, 2}, // unknown characters that follow one another are one token
		"z\xffa":      {0, 4, 3, 2},
		"</s>":        {0, 4, 3, 2},
	} {
		if got := tok.Encode(nil, text, Options{AddSpecial: true}); !slices.Equal(got, want) {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
	if got := tok.Encode(nil, "ab</s>ab", Options{ParseSpecial: true}); !slices.Equal(got, []int32{4, 7, 2, 4, 7}) {
		t.Errorf("with special tokens: %v", got)
	}
	if got := tok.Decode([]int32{4, 7, 5}, false); got != "ab a" {
		t.Errorf("decoded: %q", got)
	}
	if sep, ok := tok.Separator(); !ok || sep != 2 {
		t.Errorf("the separator is %d, %t", sep, ok)
	}
}

func TestPlaceHoldersDoNotMakeUnknownCharactersWorse(t *testing.T) {
	tok := newTokenizer(t, unigrams(), gguf.Metadata{
		"tokenizer.ggml.tokens":     []string{"<s>", "<pad>", "</s>", "<unk>", "▁", "ba", "b", "ax", "[PAD8]"},
		"tokenizer.ggml.scores":     []float32{0, 0, 0, 0, -1, -1, -12, -14, -10000},
		"tokenizer.ggml.token_type": []int32{3, 3, 3, 2, 1, 1, 1, 1, 5},
	})
	if got := tok.Encode(nil, "bax", Options{}); !slices.Equal(got, []int32{4, 5, 3}) { // -26; by b and ax it is -27
		t.Errorf("encoded: %v", got)
	}
}

func TestAFileOfUnigramsMayKeepItsSpaces(t *testing.T) {
	tok := newTokenizer(t, unigrams(), gguf.Metadata{
		"tokenizer.ggml.remove_extra_whitespaces": false, "tokenizer.ggml.add_space_prefix": false, "tokenizer.ggml.add_eos_token": false,
	})
	if got := tok.Encode(nil, "ab  a", Options{AddSpecial: true}); !slices.Equal(got, []int32{0, 7, 4, 5}) {
		t.Errorf("encoded: %v", got)
	}
}

func TestALongTextOfUnigramsComesInRuns(t *testing.T) {
	tok, text := newTokenizer(t, unigrams(), nil), strings.Repeat("ab zz ", 5000)+strings.Repeat("b", 1<<19)
	var runs []int32
	n := 0
	for run := range tok.Runs(text, Options{}) {
		runs = append(runs, run...)
		n++
	}
	if whole := tok.Encode(nil, text, Options{}); n < 3 || !slices.Equal(runs, whole) {
		t.Errorf("%d runs of %d tokens, want the %d of the whole text", n, len(runs), len(whole))
	}
}

func TestScoresThatAreNoNumbersAreTheWorst(t *testing.T) {
	md := unigrams()
	zero := float32(0)
	md["tokenizer.ggml.scores"].([]float32)[7] = zero / zero
	if got := newTokenizer(t, md, nil).Encode(nil, "ab", Options{}); !slices.Equal(got, []int32{5, 6}) {
		t.Errorf("encoded: %v", got)
	}
	delete(md, "tokenizer.ggml.scores")
	newTokenizer(t, md, nil).Encode(nil, "ab", Options{})
}

// rulesOf returns the rules of normalisation in a file.
func rulesOf(t testing.TB) []byte {
	t.Helper()
	f, err := gguf.Open("../../tts/embed/testdata/reference/xlm-roberta.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	raw, err := bytesOf(f.Metadata, "tokenizer.ggml.precompiled_charsmap")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestTextsAreNormalisedByTheLongestRule(t *testing.T) {
	c, err := readCharsmap(gguf.Metadata{"tokenizer.ggml.precompiled_charsmap": rulesOf(t)})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"\uff21\uff42c": "Abc", "\ufb01sh": "fish", "a\u00a0b": "a b", "e\u0301e": "\u00e9e", "e": "e", "\u2153": "1/3", "": "", "\x00a": "\x00a", "\xff": "\ufffd",
	} {
		if got := c.normalise(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestRulesThatAreNoneAreRefused(t *testing.T) {
	sized := func(n uint32, more ...byte) []uint8 { return append(binary.LittleEndian.AppendUint32(nil, n), more...) }
	for want, rules := range map[string]any{
		"is no array of bytes":            "rules",
		"has 2 bytes, too few":            []uint8{1, 2},
		"has 4 bytes and an array of 8":   sized(8, 0, 0, 0, 0),
		"has 4 bytes and an array of 3":   sized(3, 0, 0, 0, 0),
		"has a rule that writes 300 byte": sized(0, slices.Repeat([]byte("a"), 300)...),
		"at most 16777216 are allowed":    make([]int8, maxCharsmap+1),
	} {
		md := unigrams()
		md["tokenizer.ggml.precompiled_charsmap"] = rules
		if _, err := New(md); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}

// FuzzRules holds arrays of any content against any text: nothing is read beyond them.
func FuzzRules(f *testing.F) {
	f.Add(rulesOf(f), "\uff21e\u0301\u2153")
	f.Add([]byte{4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 'a', 0}, "ab")
	f.Add([]byte{0, 0, 0, 0, 'a'}, "ab")
	f.Fuzz(func(t *testing.T, rules []byte, text string) {
		md := unigrams()
		md["tokenizer.ggml.precompiled_charsmap"] = rules
		if tok, err := New(md); err == nil {
			tok.Encode(nil, text, Options{AddSpecial: true})
		}
	})
}

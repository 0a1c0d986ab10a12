package tokenizer

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

var awkward = []string{
	"", " ", "\n", "a", "I'll we've DON'T 'tis", "  two\n\n\ttabs \r\n end  ", "x  \n  y\n \n", "12345 1,000", "日本語テスト é ½ ²™",
	"\xff\xfe\x00", "a\xc3", "…!?… -- ''s", "\u00a0nbsp\u2003em\u200b", "<|im_start|>user<|im_end|>", "ABCdef'LL 'Ve", "🙂👍🏽 \u0301", "\u2028\u0085\v\f", " \u3000a",
}

func FuzzBytesSurviveARoundTrip(f *testing.F) {
	for _, s := range awkward {
		f.Add(s)
	}
	var toks []*Tokenizer
	for pre := range preTokenizers {
		_, md := readTiny(f)
		md["tokenizer.ggml.pre"], md[keyNFC] = pre, false // composed text is other text
		tok, err := New(md)
		if err != nil {
			f.Fatal(err)
		}
		toks = append(toks, tok)
	}
	spm, err := New(tinySPM())
	if err != nil {
		f.Fatal(err)
	}
	toks = append(toks, spm)
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, spaceMark) {
			return // SentencePiece cannot tell ▁ from a space
		}
		for _, tok := range toks {
			ids := tok.Encode(nil, text, Options{})
			if got := tok.Decode(ids, false); got != text {
				t.Fatalf("%q came back as %q", text, got)
			}
			var pieces []byte
			for _, id := range ids {
				pieces = append(pieces, tok.Piece(id)...)
			}
			if got := strings.TrimPrefix(string(pieces), " "); got != strings.TrimPrefix(text, " ") && got != text {
				t.Fatalf("the pieces of %q are %q", text, got)
			}
			special := tok.Encode(nil, text, Options{AddSpecial: true, ParseSpecial: true})
			for _, id := range special {
				if id < 0 || int(id) >= tok.Size() {
					t.Fatalf("%q gave the id %d", text, id)
				}
			}
		}
	})
}

// The scanners stand for these patterns.
var scanned = []struct {
	name  string
	scan  scanner
	match regex
}{
	{"gpt2", nextGPT2, pattern(gpt2Words)},
	{"llama3", nextLlama3, pattern(llama3Words)},
	{"qwen2", nextQwen2, pattern(qwen2Words)},
}

func splitAll(s splitter, text string) (words []string) {
	s.split(text, func(w string) { words = append(words, w) })
	return words
}

func FuzzScannersSplitAsTheirPatternsDo(f *testing.F) {
	for _, s := range awkward {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range scanned {
			if got, want := splitAll(c.scan, text), splitAll(c.match, text); !slices.Equal(got, want) {
				t.Fatalf("%s: %q was split into %q, want %q", c.name, text, got, want)
			}
		}
	})
}

func TestScannersSplitShortTextsAsTheirPatternsDo(t *testing.T) {
	// All texts of up to four of these characters: each class and each
	// character that a pattern names.
	letters := []string{"a", "S", "'", "l", "1", " ", "\n", "\t", "!", "é"}
	var all func(prefix string, n int)
	all = func(prefix string, n int) {
		for _, c := range scanned {
			if got, want := splitAll(c.scan, prefix), splitAll(c.match, prefix); !slices.Equal(got, want) {
				t.Fatalf("%s: %q was split into %q, want %q", c.name, prefix, got, want)
			}
		}
		if n > 0 {
			for _, l := range letters {
				all(prefix+l, n-1)
			}
		}
	}
	n := 4
	if testing.Short() {
		n = 3
	}
	all("", n)
}

func FuzzNewSurvivesHostileMetadata(f *testing.F) {
	f.Add("gpt2", "qwen2", `["a","b","ab","<|im_end|>"]`, `["a b"]`, `[1,1,1,3]`, `[0]`, 0, 3, "ab<|im_end|>")
	f.Add("llama", "", `["<unk>","<s>","<0x41>","▁","▁a"]`, `[]`, `[2,3,6,1,1]`, `[0,0,0,-1,-2]`, 1, -5, "a A")
	f.Add("t5", "", `["<s>","<pad>","</s>","<unk>","▁","▁a","ab","b"]`, `[]`, `[3,3,3,2,1,1,1,1]`, `[0,0,0,0,-1,-2,-3,-4]`, 0, 2, "ab  a")
	f.Add("gpt2", "nope", `["","a","a"]`, `["a","  ","nope x"]`, `[]`, `[]`, 99, 1, " a\xff")
	f.Fuzz(func(t *testing.T, model, pre, tokens, merges, types, scores string, bos, eos int, text string) {
		md := gguf.Metadata{"tokenizer.ggml.model": model, "tokenizer.ggml.pre": pre, "tokenizer.ggml.bos_token_id": int64(bos), "tokenizer.ggml.eos_token_id": int64(eos)}
		read := func(data string, v any) bool { return json.Unmarshal([]byte(data), v) == nil }
		var list []string
		if read(tokens, &list) {
			md["tokenizer.ggml.tokens"] = list
		}
		var pairs []string
		if read(merges, &pairs) {
			md["tokenizer.ggml.merges"] = pairs
		}
		var kinds []int32
		if read(types, &kinds) {
			md["tokenizer.ggml.token_type"] = kinds
		}
		var ranks []float32
		if read(scores, &ranks) {
			md["tokenizer.ggml.scores"] = ranks
		}
		tok, err := New(md)
		if err != nil {
			return
		}
		for _, opt := range []Options{{}, {AddSpecial: true, ParseSpecial: true}} {
			for _, id := range tok.Encode(nil, text, opt) {
				if id < 0 || int(id) >= tok.Size() {
					t.Fatalf("Encode gave the id %d of %d", id, tok.Size())
				}
				if !opt.ParseSpecial && tok.isControl(id) {
					t.Fatalf("plain text gave the control token %q", tok.Token(id))
				}
			}
		}
		for id := range int32(tok.Size()) {
			tok.Piece(id)
		}
		tok.Decode([]int32{-1, int32(tok.Size()), 0}, true)
	})
}

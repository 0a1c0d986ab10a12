package tokenizer

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestRunsAreThePartsOfWhatEncodeGives(t *testing.T) {
	spm, err := New(tinySPM())
	if err != nil {
		t.Fatal(err)
	}
	for _, tok := range []*Tokenizer{tinyTokenizer(t), spm} {
		text := strings.Repeat(strings.Join(awkward, " hello "), 200)
		want := tok.Encode(nil, text, Options{AddSpecial: true, ParseSpecial: true})
		var got []int32
		runs := 0
		for run := range tok.Runs(text, Options{AddSpecial: true, ParseSpecial: true}) {
			got = append(got, run...)
			runs++
		}
		if !slices.Equal(got, want) || runs < 2 {
			t.Errorf("%d runs hold %d ids, want several with all %d", runs, len(got), len(want))
		}
		for range tok.Runs(text, Options{}) {
			break // the rest is not encoded
		}
	}
}

func TestAnEndlessWordTakesLittleMemoryAndComesBackWhole(t *testing.T) {
	spm, err := New(tinySPM())
	if err != nil {
		t.Fatal(err)
	}
	for name, tok := range map[string]*Tokenizer{"BPE": tinyTokenizer(t), "SentencePiece": spm} {
		for _, text := range []string{strings.Repeat("a", 3*longestWord+1), strings.Repeat("é", longestWord)} {
			var b strings.Builder
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for run := range tok.Runs(text, Options{}) {
				for _, id := range run {
					b.Write(tok.Piece(id))
				}
			}
			runtime.ReadMemStats(&after)
			if got := strings.TrimPrefix(b.String(), " "); got != text {
				t.Errorf("%s: %d bytes came back as %d", name, len(text), len(got))
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 200*longestWord {
				t.Errorf("%s: %d bytes of text took %d bytes of memory in all", name, len(text), used)
			}
		}
	}
}

func TestSentencePieceWordsDoNotMergeAcrossSpaces(t *testing.T) {
	whole, err := New(tinySPM())
	if err != nil {
		t.Fatal(err)
	}
	divided, err := New(tinySPM())
	if err != nil {
		t.Fatal(err)
	}
	if !divided.enc.(*spm).divides {
		t.Fatal("no token has a space behind a letter, and yet words are not divided")
	}
	whole.enc.(*spm).divides = false
	for _, text := range append(awkward, "hello hello  hello   lo", "hel▁lo ▁ hello", strings.Repeat(" ", 99)+"hello ") {
		if got, want := divided.Encode(nil, text, Options{}), whole.Encode(nil, text, Options{}); !slices.Equal(got, want) {
			t.Errorf("%q word by word is %v, want %v as in one piece", text, got, want)
		}
	}
	md := tinySPM()
	tokens, _ := md.Strings("tokenizer.ggml.tokens")
	scores := append(md["tokenizer.ggml.scores"].([]float32), -1)
	md["tokenizer.ggml.tokens"], md["tokenizer.ggml.scores"] = append(slices.Clone(tokens), "o▁h"), scores
	md["tokenizer.ggml.token_type"] = append(slices.Clone(md["tokenizer.ggml.token_type"].([]int32)), 1)
	crossing, err := New(md)
	if err != nil {
		t.Fatal(err)
	}
	if crossing.enc.(*spm).divides {
		t.Error("a token spans two words, and yet words are divided")
	}
}

func TestBlocksOfALongTextAreSplitAsTheWhole(t *testing.T) {
	var b strings.Builder
	for i := 0; b.Len() < longestBlock+100; i++ {
		fmt.Fprintf(&b, "%s line %d, it's 12345!  \n\nx=%d;\nnext\r\n", awkward[i%len(awkward)], i, i)
	}
	text := b.String()
	p := pattern(gpt2Words)
	var want []string
	splitRegex(p(), text, func(w string) { want = append(want, w) })
	if got := splitAll(p, text); !slices.Equal(got, want) {
		t.Errorf("in blocks the text has %d words, as a whole %d", len(got), len(want))
	}
}

package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/gguf"
)

// tiny is the vocabulary of the embedded models with reference ids.
type tiny struct {
	Tokens, Merges []string
	Types          []int32
	Pre            string
	BOS, EOS, Pad  uint32
	Cases          []struct {
		Text string
		IDs  []int32
	}
}

func readTiny(t testing.TB) (tiny, gguf.Metadata) {
	t.Helper()
	data, err := os.ReadFile("testdata/tiny.json")
	if err != nil {
		t.Fatal(err)
	}
	var v tiny
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v, gguf.Metadata{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": v.Pre, "tokenizer.ggml.tokens": v.Tokens,
		"tokenizer.ggml.token_type": v.Types, "tokenizer.ggml.merges": v.Merges, "tokenizer.ggml.bos_token_id": v.BOS,
		"tokenizer.ggml.eos_token_id": v.EOS, "tokenizer.ggml.padding_token_id": v.Pad, "tokenizer.ggml.add_bos_token": false,
	}
}

func tinyTokenizer(t testing.TB) *Tokenizer {
	t.Helper()
	_, md := readTiny(t)
	tok, err := New(md)
	if err != nil {
		t.Fatal(err)
	}
	if w := tok.Warnings(); len(w) > 0 {
		t.Fatalf("warnings %q", w)
	}
	return tok
}

// tinySPM is a SentencePiece vocabulary of a few pieces and all bytes.
func tinySPM() gguf.Metadata {
	tokens := []string{"<unk>", "<s>", "</s>"}
	types := []int32{2, 3, 3}
	for b := range 256 {
		tokens = append(tokens, "<0x"+strings.ToUpper(string("0123456789abcdef"[b>>4])+string("0123456789abcdef"[b&15]))+">")
		types = append(types, 6)
	}
	scores := make([]float32, len(tokens))
	for i, piece := range []string{"▁h", "el", "lo", "▁hel", "▁hello", "▁", "h", "e", "l", "o", "s", "<", ">", "<s", "<s>x"} {
		tokens, types, scores = append(tokens, piece), append(types, 1), append(scores, -float32(i))
	}
	return gguf.Metadata{
		"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types, "tokenizer.ggml.scores": scores,
	}
}

func TestTheEmbeddedModelsTokenizeAsTheyWereTrained(t *testing.T) {
	v, md := readTiny(t)
	tok, err := New(md)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Cases {
		ids := tok.Encode(nil, c.Text, Options{AddSpecial: true, ParseSpecial: true})
		if !slices.Equal(ids, c.IDs) {
			t.Errorf("Encode(%q) = %v, want %v", c.Text, ids, c.IDs)
		}
		if text := tok.Decode(c.IDs, true); text != c.Text {
			t.Errorf("Decode(%v) = %q, want %q", c.IDs, text, c.Text)
		}
	}
	if got := tok.EOGs(); !slices.Equal(got, []int32{1021, 1023}) || !tok.EOG(1023) || tok.EOG(1022) || tok.EOG(-1) {
		t.Errorf("EOGs = %v, want <|endoftext|> and <|im_end|>", got)
	}
	if id := tok.ids["<|im_start|>"]; id != 1022 || !tok.isControl(id) || tok.Token(id) != "<|im_start|>" || len(tok.Piece(id)) != 0 {
		t.Errorf("<|im_start|> is %d, control %v, %q with text %q", id, tok.isControl(id), tok.Token(id), tok.Piece(id))
	}
	bos, _ := tok.BOS()
	eos, _ := tok.EOS()
	if bos != 1021 || eos != 1023 || tok.Size() != 1024 {
		t.Errorf("bos %d, eos %d, size %d", bos, eos, tok.Size())
	}
}

// isControl reports whether the token steers the model and gives no text.
func (v *vocab) isControl(id int32) bool { return v.kinds[id]&control != 0 }

func TestEncodeAppends(t *testing.T) {
	tok := tinyTokenizer(t)
	dst := []int32{7}
	if got := tok.Encode(dst, "hello", Options{}); !slices.Equal(got, []int32{7, 258, 273, 111}) {
		t.Errorf("Encode onto [7] = %v", got)
	}
}

func TestControlTokensComeOnlyWhenAskedFor(t *testing.T) {
	tok := tinyTokenizer(t)
	spm, err := New(tinySPM())
	if err != nil {
		t.Fatal(err)
	}
	const text = "<|im_start|>a<|im_end|><s>x</s>"
	for _, tok := range []*Tokenizer{tok, spm} {
		for _, id := range tok.Encode(nil, text, Options{}) {
			if tok.isControl(id) {
				t.Errorf("plain text gave the control token %q", tok.Token(id))
			}
		}
		if got := tok.Decode(tok.Encode(nil, text, Options{}), false); got != text {
			t.Errorf("plain text came back as %q", got)
		}
	}
	if got := tok.Encode(nil, "<|im_start|><|im_end|>", Options{ParseSpecial: true}); !slices.Equal(got, []int32{1022, 1023}) {
		t.Errorf("special tokens were read as %v", got)
	}
}

func TestTheLongestSpecialTokenWins(t *testing.T) {
	_, md := readTiny(t)
	v, _ := readTiny(t)
	md["tokenizer.ggml.tokens"] = append(v.Tokens, "<a>", "<a><b>", "<c")
	md["tokenizer.ggml.token_type"] = append(v.Types, 4, 4, 3)
	tok, err := New(md)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int32{
		"<a><b><a>": {1025, 1024}, "<a><a><b>": {1024, 1025}, "<a><b": {1024, 60, 98}, "<c<a>": {60, 99, 1024},
	} {
		if got := tok.Encode(nil, text, Options{}); !slices.Equal(got, want) {
			t.Errorf("Encode(%q) = %v, want %v", text, got, want)
		}
	}
	if got := tok.Encode(nil, "<c<a>", Options{ParseSpecial: true}); !slices.Equal(got, []int32{1026, 1024}) {
		t.Errorf("with special tokens parsed: %v", got)
	}
	if got := string(tok.Piece(1025)); got != "<a><b>" {
		t.Errorf("the piece of a user-defined token is %q", got)
	}
}

func TestSentencePieceMergesByScoreAndFallsBackToBytes(t *testing.T) {
	tok, err := New(tinySPM())
	if err != nil {
		t.Fatal(err)
	}
	name := func(ids []int32) (out []string) {
		for _, id := range ids {
			out = append(out, tok.Token(id))
		}
		return out
	}
	for text, want := range map[string][]string{
		"hello":  {"▁hello"},
		"hel lo": {"▁hel", "▁", "lo"},
		"é":      {"▁", "<0xC3>", "<0xA9>"},
		"\xff":   {"▁", "<0xFF>"},
		"":       nil,
	} {
		if got := name(tok.Encode(nil, text, Options{})); !slices.Equal(got, want) {
			t.Errorf("Encode(%q) = %q, want %q", text, got, want)
		}
	}
	if got := name(tok.Encode(nil, "hello</s>hello", Options{AddSpecial: true, ParseSpecial: true})); !slices.Equal(got, []string{"<s>", "▁hello", "</s>", "▁hello"}) {
		t.Errorf("with special tokens: %q", got)
	}
}

func TestSentencePieceKeepsToTheFlagsOfTheFile(t *testing.T) {
	md := tinySPM()
	md["tokenizer.ggml.add_space_prefix"] = false
	md["tokenizer.ggml.remove_extra_whitespaces"] = true
	md["tokenizer.ggml.add_bos_token"] = false
	md["tokenizer.ggml.add_eos_token"] = true
	tok, err := New(md)
	if err != nil {
		t.Fatal(err)
	}
	ids := tok.Encode(nil, "  lo   hel  ", Options{AddSpecial: true})
	if got := tok.Decode(ids, true); got != "lo hel</s>" {
		t.Errorf("came back as %q", got)
	}
}

func TestNewRefusesOrRepairsHostileFiles(t *testing.T) {
	v, _ := readTiny(t)
	change := func(key string, value any) gguf.Metadata {
		_, md := readTiny(t)
		if value == nil {
			delete(md, "tokenizer.ggml."+key)
		} else {
			md["tokenizer.ggml."+key] = value
		}
		return md
	}
	for name, md := range map[string]gguf.Metadata{
		"no metadata":    nil,
		"no model":       change("model", nil),
		"no tokens":      change("tokens", nil),
		"empty tokens":   change("tokens", []string{}),
		"numeric tokens": change("tokens", []int32{1, 2}),
		"few types":      change("token_type", v.Types[:5]),
		"few scores":     change("scores", []float32{1}),
		"no merges":      change("merges", nil),
		"long token":     change("tokens", append(slices.Clone(v.Tokens[:1023]), strings.Repeat("x", maxToken+1))),
		"many tokens":    change("tokens", make([]string, maxTokens+1)),
		"long merge":     change("merges", []string{"a " + strings.Repeat("x", 2*maxToken)}),
		"many merges":    change("merges", make([]string, maxMerges+1)),
	} {
		if _, err := New(md); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, model := range []string{"rwkv", "plamo2", "no such thing"} {
		if _, err := New(change("model", model)); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), model) {
			t.Errorf("model %s: %v, want %v with its name", model, err, ErrUnsupported)
		}
	}
	for name, md := range map[string]gguf.Metadata{
		"ids out of range": change("bos_token_id", uint32(4e9)),
		"missing merges":   change("merges", append(slices.Clone(v.Merges), "nope nada", "x", "", " ", "  ", "a b c")),
		"duplicate tokens": change("tokens", append(slices.Clone(v.Tokens[:1000]), v.Tokens[:24]...)),
		"negative types":   change("token_type", make([]int32, 1024)),
	} {
		tok, err := New(md)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		tok.Encode(nil, "some text é <|im_end|>", Options{AddSpecial: true, ParseSpecial: true})
	}
	for _, pre := range []string{"from the future", "gemma4", "granite-embed-multi-311m", "sarvam-moe", "whitespace"} {
		if _, err := New(change("pre", pre)); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), `"`+pre+`" is not known`) {
			t.Errorf("pre-tokenizer %s: %v, want %v with its name", pre, err, ErrUnsupported)
		}
	}
}

func TestAFileWithoutAPreTokenizerIsReadByItsTokens(t *testing.T) {
	v, md := readTiny(t)
	const text = "x1234'S\r\n\r\ny" // digits in threes, contractions of any case, line ends together
	for want, extra := range map[string][]string{
		"default":   nil,
		"llama-bpe": {"<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"},
	} {
		md["tokenizer.ggml.tokens"] = append(slices.Clone(v.Tokens), extra...)
		md["tokenizer.ggml.token_type"] = append(slices.Clone(v.Types), make([]int32, len(extra))...)
		md["tokenizer.ggml.pre"] = want
		named, err := New(md)
		if err != nil {
			t.Fatal(err)
		}
		delete(md, "tokenizer.ggml.pre")
		guessed, err := New(md)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := guessed.Encode(nil, text, Options{}), named.Encode(nil, text, Options{}); !slices.Equal(got, want) {
			t.Errorf("%q becomes %v, want %v", text, got, want)
		}
		if w := guessed.Warnings(); len(w) != 1 || !strings.Contains(w[0], want) {
			t.Errorf("warnings %q, want one about %s", w, want)
		}
	}
}

func TestOnlyBytesThatTextsHaveAreMissed(t *testing.T) {
	v, md := readTiny(t)
	chars, _ := byteAlphabet()
	without := func(bytes ...byte) []string {
		t.Helper()
		tokens := slices.Clone(v.Tokens)
		for _, b := range bytes {
			i := slices.Index(tokens, chars[b])
			if i < 0 {
				t.Fatalf("the vocabulary has no %#x", b)
			}
			tokens[i] = fmt.Sprintf("gone %d", b)
		}
		md["tokenizer.ggml.tokens"] = tokens
		tok, err := New(md)
		if err != nil {
			t.Fatal(err)
		}
		return tok.Warnings()
	}
	if got := without(0x04, 0x1d, 0x7f, 0xc0, 0xc1, 0xf1, 0xf2, 0xf5, 0xff); len(got) > 0 {
		t.Errorf("without bytes of no text: %q", got)
	}
	if got := without(0x04, '#', 0xc3, 0xf0); len(got) != 1 || !strings.Contains(got[0], "lacks 3 bytes: characters with them are neither read nor written") {
		t.Errorf("without three bytes of texts: %q", got)
	}
}

func TestReadersOfRoBERTasFamilySplitTextsAsGPT2Does(t *testing.T) {
	_, md := readTiny(t)
	var want []int32
	for _, pre := range []string{"gpt-2", "roberta-bpe", "jina-v1-en", "jina-v2-code", "modern-bert"} {
		md["tokenizer.ggml.pre"] = pre
		tok, err := New(md)
		if err != nil || len(tok.Warnings()) > 0 {
			t.Fatalf("%s: %v, warnings %q", pre, err, tok.Warnings())
		}
		got := tok.Encode(nil, "it's 12345 cats, aren't they?", Options{})
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", pre, got, want)
		}
	}
}

func TestLongRunsTakeNearlyLinearTime(t *testing.T) {
	sweep.Full(t)
	n := sweep.Of(t, 1<<14, 1<<16) // quadratic work on all of this would take minutes
	v, md := readTiny(t)
	merges := slices.Clone(v.Merges)
	tokens := slices.Clone(v.Tokens)
	types := slices.Clone(v.Types)
	for i, run := 0, "a"; i < 8; i, run = i+1, run+run { // aa, aaaa, ... up to 256
		merges, tokens, types = append(merges, run+" "+run), append(tokens, run+run), append(types, 1)
	}
	md["tokenizer.ggml.tokens"], md["tokenizer.ggml.token_type"], md["tokenizer.ggml.merges"] = tokens, types, merges
	for _, pre := range []string{"qwen2", "gpt-2", "default", "deepseek-llm", "deepseek-v3", "gpt-4o", "tiny_aya", "superbpe", "kimi-k2", "jais-2", "exaone-moe"} {
		md["tokenizer.ggml.pre"] = pre
		tok, err := New(md)
		if err != nil {
			t.Fatal(err)
		}
		for _, unit := range []string{"a", " ", "A1", "7"} {
			text := strings.Repeat(unit, n) + "\x01"
			if got := tok.Decode(tok.Encode(nil, text, Options{}), false); got != text {
				t.Errorf("%s: %d × %q came back changed", pre, n, unit)
			}
		}
	}
}

func TestATokenizerMayBeUsedByManyAtOnce(t *testing.T) {
	tok := tinyTokenizer(t)
	text := strings.Repeat("Anna has 12 apples and buys 30 more. ", 20)
	want := tok.Encode(nil, text, Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got := tok.Encode(nil, text, Options{}); !slices.Equal(got, want) {
					t.Error("Encode differs between goroutines")
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkEncode(b *testing.B) {
	tok := tinyTokenizer(b)
	text := strings.Repeat("Anna has 12 apples and buys 30 more; how many are there now?\n", 1000)
	b.SetBytes(int64(len(text)))
	var ids []int32
	for b.Loop() {
		ids = tok.Encode(ids[:0], text, Options{})
	}
}

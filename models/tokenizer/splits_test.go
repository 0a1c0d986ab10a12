package tokenizer

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/gguf"
)

// splits is the output of testdata/splits.py.
type splits struct {
	Texts  []string              `json:"texts"`
	Splits map[string][][]string `json:"splits"` // by pre-tokenizer, of each text
	NFC    []string              `json:"nfc"`    // of each text
}

func readSplits(t *testing.T) (s splits) {
	t.Helper()
	raw, err := os.ReadFile("testdata/splits.json")
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil || len(s.Texts) == 0 || len(s.NFC) != len(s.Texts) {
		t.Fatalf("%d texts: %v", len(s.Texts), err)
	}
	return s
}

func TestTextsAreSplitAsByPublishedPatterns(t *testing.T) {
	s := readSplits(t)
	for name, want := range s.Splits {
		pre, ok := preTokenizers[name]
		if !ok {
			t.Errorf("%s is not known", name)
			continue
		}
		for i, text := range s.Texts {
			var got []string
			pre.split(text, func(word string) { got = append(got, word) })
			if !slices.Equal(got, want[i]) {
				t.Errorf("%s: %q was split into\n%q, want\n%q", name, text, got, want[i])
			}
		}
	}
}

func TestFalconEIsReadAsFalcon3WithABeginning(t *testing.T) {
	v, md := readTiny(t)
	md["tokenizer.ggml.tokens"] = v.Tokens
	encode := func(pre string) []int32 {
		md["tokenizer.ggml.pre"] = pre
		md["tokenizer.ggml.bos_token_id"] = uint32(0)
		delete(md, "tokenizer.ggml.add_bos_token")
		tok, err := New(md)
		if err != nil {
			t.Fatal(err)
		}
		return tok.Encode(nil, "It'S 123456\r\n\r\nx", Options{AddSpecial: true})
	}
	got := encode("falcon_e")
	if want := encode("falcon3"); !slices.Equal(got, want) || got[0] != 0 {
		t.Errorf("falcon_e gives %v, falcon3 %v; want the same, after token 0", got, want)
	}
}

func TestTextsAreComposedAsTheModelsOwnTokenizersDo(t *testing.T) {
	s := readSplits(t)
	_, md := readTiny(t)
	encoders := map[string]*Tokenizer{}
	for _, pre := range []string{"qwen2", "qwen35", "modern-bert", "llama-bpe", "gpt-2", "kormo"} {
		md["tokenizer.ggml.pre"] = pre
		tok, err := New(md)
		if err != nil {
			t.Fatal(err)
		}
		encoders[pre] = tok
	}
	md["tokenizer.ggml.pre"], md[keyNFC] = "qwen2", false
	plain, err := New(md)
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for i, text := range s.Texts {
		if s.NFC[i] != text {
			changed++
		}
		for pre, tok := range encoders {
			want := text
			if slices.Contains([]string{"qwen2", "qwen35", "modern-bert"}, pre) {
				want = s.NFC[i]
			}
			if got := tok.Decode(tok.Encode(nil, text, Options{}), false); got != want {
				t.Errorf("%s: %q is read as %q, want %q", pre, text, got, want)
			}
		}
		if got := plain.Decode(plain.Encode(nil, text, Options{}), false); got != text {
			t.Errorf("with %s false %q is read as %q", keyNFC, text, got)
		}
	}
	if changed < 2 {
		t.Errorf("%d texts are not composed, want more", changed)
	}
}

func TestLongRunsOfMarksAreComposedInLinearTimeAndNothingIsAdded(t *testing.T) {
	times := sweep.Of(t, 1<<16, 1<<18)
	for _, mark := range []string{"\u0301", "\u0323", "\u0301\u0323", "\u0344", "\u0f73"} {
		text := "x e\u0301 " + "a" + strings.Repeat(mark, times) + "e\u0301"
		got := compose(norm.NFC, text) // quadratic work would take minutes
		if strings.Contains(got, joiner) || !utf8.ValidString(got) || !strings.HasPrefix(got, "x é ") {
			t.Errorf("%q repeated: a joiner or a broken character, or a text that begins with %.9q", mark, got)
		}
		if n := utf8.RuneCountInString(got); n < times/2 || n > 4*times {
			t.Errorf("%q repeated: %d characters", mark, n)
		}
	}
	if text := "a" + joiner + "e\u0301" + joiner; compose(norm.NFC, text) != "a"+joiner+"é"+joiner {
		t.Errorf("a joiner of the text itself: %q", compose(norm.NFC, text))
	}
	if text := "e\u0301\xff\xcc e\u0301"; compose(norm.NFC, text) != "é\xff\xcc é" {
		t.Errorf("bytes that are no UTF-8: %q", compose(norm.NFC, text))
	}
}

func TestAFileMayAskForCompatibilityForms(t *testing.T) {
	for _, c := range []struct {
		key, text, want string
	}{
		{keyNFKC, "\ufb01\u2460e\u0301", "fi1\u00e9"},
		{keyNFC, "\ufb01\u2460e\u0301", "\ufb01\u2460\u00e9"},
	} {
		if got := composer(gguf.Metadata{c.key: true}, false)(c.text); got != c.want {
			t.Errorf("%s makes %q of %q, want %q", c.key, got, c.text, c.want)
		}
	}
	if composer(gguf.Metadata{}, false) != nil {
		t.Error("a file that asks for no form has its texts changed")
	}
}

func TestPatternsAreKnownWithLineEndsSpelledOutOrNot(t *testing.T) {
	raw := strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(deepseekV3Words)
	for _, words := range []string{deepseekV3Words, raw} {
		if name, ok := PreTokenizer([]string{`\p{N}{1,3}`, "[一-龥\u3040-ゟ゠-ヿ]+", words}, false); !ok || name != "deepseek-v3" {
			t.Errorf("the rules of DeepSeek V3 with %q are %q, %t", words, name, ok)
		}
	}
}

package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/lutra-lm/lutra/models/gguf"
)

// goldenDir is the folder of reference data, which is too large for the
// repository.
func goldenDir(t *testing.T) string {
	dir := os.Getenv("LUTRA_GOLDEN")
	if dir == "" {
		t.Skip("LUTRA_GOLDEN does not name the folder of reference data")
	}
	return dir
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func openVocab(t *testing.T, path string) (*Tokenizer, error) {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return New(f.Metadata)
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, _ := filepath.Glob(pattern)
	if len(paths) == 0 {
		t.Fatalf("no file matches %s", pattern)
	}
	return paths
}

func TestPublishedVocabulariesEncodeAndDecodeAsTheReferenceDoes(t *testing.T) {
	dir := goldenDir(t)
	for _, path := range glob(t, filepath.Join(dir, "tokenizer", "*.json")) {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			var want struct {
				Texts         []string
				IDs           [][]int32 `json:"ids"`
				Special       [][]int32 `json:"ids_add_special_parse_special"`
				Text          []string  `json:"detok_of_ids"`
				TextOfSpecial []string  `json:"detok_of_ids_add_special_parse_special_removed"`
			}
			readJSON(t, path, &want)
			tok, err := openVocab(t, filepath.Join(dir, "vocab", "ggml-vocab-"+name+".gguf"))
			if err != nil {
				t.Fatal(err)
			}
			tok.compose = nil // the reference composes nothing
			pieces := name == "bert-bge"
			for i, text := range want.Texts {
				if pieces && strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Hangul, unicode.Devanagari) }) {
					continue // the reference keeps the first of the letters that one is made of; BERT's own tokeniser keeps all
				}
				ids := tok.Encode(nil, text, Options{})
				if !slices.Equal(ids, want.IDs[i]) {
					t.Errorf("Encode(%q) = %v, want %v", text, ids, want.IDs[i])
				}
				special := tok.Encode(nil, text, Options{AddSpecial: true, ParseSpecial: true})
				if !slices.Equal(special, want.Special[i]) {
					t.Errorf("Encode(%q) with special tokens = %v, want %v", text, special, want.Special[i])
				}
				if pieces {
					continue // models with such vocabularies write no text
				}
				if got := tok.Decode(want.IDs[i], false); got != want.Text[i] {
					t.Errorf("Decode(%v) = %q, want %q", want.IDs[i], got, want.Text[i])
				}
				if got := tok.Decode(want.Special[i], false); got != want.TextOfSpecial[i] {
					t.Errorf("Decode(%v) = %q, want %q", want.Special[i], got, want.TextOfSpecial[i])
				}
			}
		})
	}
}

func TestPublishedVocabulariesEncodeTheirTestRecords(t *testing.T) {
	dir := goldenDir(t)
	for _, path := range glob(t, filepath.Join(dir, "vocab", "*.gguf")) {
		in, err := os.ReadFile(path + ".inp")
		if err != nil {
			continue // published without records
		}
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			tok, err := openVocab(t, path)
			if err != nil {
				t.Fatal(err)
			}
			out, err := os.ReadFile(path + ".out")
			if err != nil {
				t.Fatal(err)
			}
			const end = "\n__ggml_vocab_test__\n"
			records := strings.Split(strings.TrimSuffix(string(in), end), end)
			lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
			if len(records) != len(lines) {
				t.Fatalf("%d records and %d lines of ids", len(records), len(lines))
			}
			for i, text := range records {
				var want []int32
				for _, field := range strings.Fields(lines[i]) {
					id, err := strconv.Atoi(field)
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, int32(id))
				}
				if ids := tok.Encode(nil, text, Options{}); !slices.Equal(ids, want) {
					t.Errorf("Encode(%q) = %v, want %v", text, ids, want)
				}
			}
		})
	}
}

func TestGoldenModelsTokenizeTheirCases(t *testing.T) {
	dir := goldenDir(t)
	n := 0
	for _, path := range glob(t, filepath.Join(dir, "models", "*", "golden.json")) {
		var want struct {
			Tokenizer struct {
				AddSpecial   bool `json:"add_special"`
				ParseSpecial bool `json:"parse_special"`
				Cases        []struct {
					Text string
					IDs  []int32
				}
			}
		}
		readJSON(t, path, &want)
		if len(want.Tokenizer.Cases) == 0 {
			continue
		}
		tok, err := openVocab(t, filepath.Join(filepath.Dir(path), "model.gguf"))
		if err != nil {
			t.Fatal(err)
		}
		opt := Options{AddSpecial: want.Tokenizer.AddSpecial, ParseSpecial: want.Tokenizer.ParseSpecial}
		for _, c := range want.Tokenizer.Cases {
			n++
			if ids := tok.Encode(nil, c.Text, opt); !slices.Equal(ids, c.IDs) {
				t.Errorf("%s: Encode(%q) = %v, want %v", path, c.Text, ids, c.IDs)
			}
		}
	}
	if n == 0 {
		t.Error("no model has tokenizer cases")
	}
	t.Logf("%d cases", n)
}

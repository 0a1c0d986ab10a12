package reference

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/lutra-lm/lutra/models"
)

// realModel returns the path of a file in the folder that LUTRA_REAL names, which `.ci/real` fills with
// public models; without it the test is skipped.
func realModel(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("LUTRA_REAL")
	if dir == "" {
		t.Skip("LUTRA_REAL names no folder of public models; .ci/real makes one")
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// recorded reads a file of testdata/real, whose make.py says how it was made.
func recorded(t testing.TB, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "real", name))
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(name) == ".gz" {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if _, err := text.ReadFrom(r); err != nil {
			t.Fatal(err)
		}
		data = text.Bytes()
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// withReal loads a public model and gives it to f.
func withReal(t testing.TB, r Options, f func(b *models.Bundle, score Scorer)) {
	t.Helper()
	if r.KVType == "" {
		r.KVType = "f16"
	}
	if r.Context == 0 {
		r.Context = 1024
	}
	err := With(t.Context(), &r, func(b *models.Bundle, score Scorer) error {
		f(b, score)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAPublicModelKeepsItsPerplexityByTypeAndAnImatrixHelps(t *testing.T) {
	dir := os.Getenv("LUTRA_REAL")
	if dir == "" {
		t.Skip("LUTRA_REAL names no folder of public models; .ci/real makes one")
	}
	scratch := t.TempDir()
	var texts []struct{ Text string }
	if err := json.Unmarshal(must(os.ReadFile("../reference/testdata/real/texts.json")), &texts); err != nil {
		t.Fatal(err)
	}
	var held []string
	for _, text := range texts {
		held = append(held, text.Text)
	}
	file := func(name, text string) string {
		path := filepath.Join(scratch, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	train, test := file("train.txt", document(t, "architecture.md")), file("test.txt", strings.Join(held, "\n\n"))
	perplexity := func(model string) float64 {
		var r struct{ Perplexity float64 }
		if err := json.Unmarshal([]byte(mustLutra(t, "perplexity", "--model", model, "--file", test, "--context", "256", "--json")), &r); err != nil {
			t.Fatal(err)
		}
		return r.Perplexity
	}
	base, imatrix := filepath.Join(dir, "smollm2.gguf"), filepath.Join(scratch, "imatrix.gguf")
	mustLutra(t, "imatrix", "--model", base, "--file", train, "--context", "256", "--out", imatrix)
	stored := perplexity(base)
	ratio := func(typ string, more ...string) float64 {
		out := filepath.Join(scratch, "quantised.gguf")
		mustLutra(t, append(append([]string{"quantize", "--allow-requantize"}, more...), base, out, typ)...)
		r := perplexity(out) / stored
		t.Logf("%s %v: %.4f times the perplexity of the file, %.2f", typ, more[:min(1, len(more))], r, stored)
		return r
	}
	for typ, most := range map[string]float64{"Q8_0": 1.02, "Q4_K_M": 1.15} {
		if r := ratio(typ); r > most {
			t.Errorf("%s: the perplexity grows to %.3f, want at most %.3f", typ, r, most)
		}
	}
	if with, without := ratio("Q4_0", "--imatrix", imatrix), ratio("Q4_0"); with >= without {
		t.Errorf("Q4_0 by an importance matrix: %.4f times the perplexity, %.4f without", with, without)
	}
}

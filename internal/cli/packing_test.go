package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestAPackingIsChosenByFlagAndByConfiguration(t *testing.T) {
	tokens, out := filepath.Join(t.TempDir(), "ids"), filepath.Join(t.TempDir(), "logits")
	if err := os.WriteFile(tokens, []byte("1 2 3 4"), 0o600); err != nil {
		t.Fatal(err)
	}
	logits := func(packing string) string {
		mustLutra(t, "logits", "--model", "lutra-tiny-s", "--tokens", tokens, "--out", out, "--packing", packing)
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if logits("i1") != logits("i2") || logits("auto") == logits("stored") {
		t.Error("packings with the same arithmetic differ, or those with another one do not")
	}
	if _, err := lutra(t, "logits", "--model", "lutra-tiny-s", "--tokens", tokens, "--out", out, "--packing", "i3"); err == nil || !strings.Contains(err.Error(), `"i3" is none of auto, i1, i2, stored`) {
		t.Errorf("an unknown packing: error %v", err)
	}

	for packing, want := range map[string]string{"stored": "stored", "": "", "i1": "i1"} {
		f := pflag.NewFlagSet("test", pflag.ContinueOnError)
		var m modelFlags
		m.register(f)
		args := []string{"--model", "lutra-tiny-s"}
		if packing != "" {
			args = append(args, "--packing", packing)
		}
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		c, err := m.load(f)
		if err != nil || len(c.Models) != 1 || c.Models[0].Packing != want {
			t.Errorf("with --packing %q: %+v, %v", packing, c.Models, err)
		}
	}
}

package schema

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/grammar/grammartest"
)

// TestNoTextOfMaskBenchComesToADeadEnd walks through the schemas in the folder that
// LUTRA_MASKBENCH names, such as maskbench/data: as often as LUTRA_WALKS says, or once.
func TestNoTextOfMaskBenchComesToADeadEnd(t *testing.T) {
	dir := os.Getenv("LUTRA_MASKBENCH")
	if dir == "" {
		t.Skip("LUTRA_MASKBENCH names no folder")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no schemas in %s: %v", dir, err)
	}
	times := 1
	if n := os.Getenv("LUTRA_WALKS"); n != "" {
		if err := json.Unmarshal([]byte(n), &times); err != nil {
			t.Fatal(err)
		}
	}
	walks, ends, checked := 0, 0, 0
	for i, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var f struct{ Schema json.RawMessage }
		if err := json.Unmarshal(text, &f); err != nil {
			t.Fatal(err)
		}
		g, err := Compile(f.Schema, Options{Listed: i%2 == 0})
		if err != nil {
			continue
		}
		valid, fault := validates(string(f.Schema))
		r := rand.New(rand.NewPCG(9, uint64(i)))
		for range times {
			out, ended, err := grammartest.Walk(g, grammartest.Bytes(), r, 10+r.IntN(60), closing)
			walks++
			if bound := (*budget.Error)(nil); err != nil && !errors.As(err, &bound) {
				t.Errorf("%s: %v", filepath.Base(name), err)
			}
			if err != nil || !ended {
				continue
			}
			ends++
			if fault == nil {
				checked++
				if err := valid(out); err != nil {
					t.Errorf("%s: %.300q: %v", filepath.Base(name), out, err)
				}
			}
		}
	}
	t.Logf("%d walks, %d of them to an end, %d of these texts checked", walks, ends, checked)
}

package mixtures

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/npu"
	"github.com/lutra-lm/lutra/internal/npu/planning"
)

var update = flag.Bool("update", false, "rewrite the table of docs/mixtures.md")

// tiersTable is the tiers of the paper's models, as the Neural Engine has them.
func tiersTable(t *testing.T) string {
	t.Helper()
	ultra, err := planning.NamedDevice("m2-ultra")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| model | experts, chosen | B | `C_base` | r = 1 | r = 2 | r = 4 |\n|---|---|---|---|---|---|---|\n")
	for _, name := range []string{"phi-3.5-moe", "qwen3-30b-a3b"} {
		m, ok := npu.ShapeMixture(name)
		if !ok {
			t.Fatalf("no shape %s", name)
		}
		for _, chunk := range Chunks() {
			var cells []string
			base := 0
			for _, r := range []float64{1, 2, 4} {
				var tiers []int
				base, _, tiers = planning.Tiers(chunk, m.Shape.Chosen, m.Shape.Experts, r, ultra.Rows)
				cells = append(cells, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(tiers)), ", "), "[]"))
			}
			fmt.Fprintf(&b, "| %s | %d, %d | %d | %d | %s |\n", name, m.Shape.Experts, m.Shape.Chosen, chunk, base, strings.Join(cells, " | "))
		}
	}
	return b.String()
}

func TestTheGuidesTiersAreWhatTheProgramComputes(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "mixtures.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- table tiers -->\n", "<!-- end -->"
	guide, want := strings.ReplaceAll(string(text), "\r\n", "\n"), tiersTable(t)
	before, rest, found := strings.Cut(guide, begin)
	got, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatal("docs/mixtures.md has no table of tiers")
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+"\n"+want+"\n"+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("docs/mixtures.md (go test ./internal/npu/mixtures -run Guide -update rewrites it): has\n%s\nthe program computes\n%s", got, want)
	}
}

package mixtures

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/lab/npu"
	"github.com/lutra-lm/lutra/lab/npu/planning"
)

var update = flag.Bool("update", false, "rewrite the tables and a drawing of docs/mixtures.md")

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

var theirs = sync.OnceValues(Figures)

// figures returns Figures, computed once.
func figures(t *testing.T) []npu.Figure {
	t.Helper()
	list, err := theirs()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// papersTable is what `lutra-lab npu papers` prints of NPUMoE.
func papersTable(t *testing.T) string {
	t.Helper()
	list := figures(t)
	var b strings.Builder
	for i, row := range npu.FigureTable(list) {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString("|---|---|---|---|---|---|\n")
		}
	}
	fmt.Fprintf(&b, "\n%s.\n", npu.Fit(list))
	return b.String()
}

func TestTheGuidesTablesAreWhatTheProgramComputes(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "mixtures.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	guide := strings.ReplaceAll(string(text), "\r\n", "\n")
	for name, want := range map[string]string{"tiers": tiersTable(t), "papers": papersTable(t)} {
		begin, end := "<!-- table "+name+" -->\n", "<!-- end -->"
		before, rest, found := strings.Cut(guide, begin)
		got, after, ended := strings.Cut(rest, end)
		switch {
		case !found || !ended:
			t.Fatalf("docs/mixtures.md has no table %s", name)
		case *update:
			guide = before + begin + "\n" + want + "\n" + end + after
		case strings.TrimSpace(got) != strings.TrimSpace(want):
			t.Errorf("docs/mixtures.md, table %s (go test -C lab ./npu/mixtures -run Guide -update rewrites it): has\n%s\nthe program computes\n%s", name, got, want)
		}
	}
	if !*update {
		return
	}
	x, _ := npu.ShapeMixture("phi-3.5-moe")
	r, err := Place(x, nil, DefaultPlacementOptions())
	if err != nil {
		t.Fatal(err)
	}
	var drawing bytes.Buffer
	if err := r.SVG(&drawing); err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string][]byte{path: []byte(guide), filepath.Join(filepath.Dir(path), "placements.svg"): drawing.Bytes()} {
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

package mixtures

import (
	"bytes"
	"encoding/csv"
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

var update = flag.Bool("update", false, "rewrite the tables in docs/data and a drawing of docs/mixtures.md")

// tiers returns the capacities that the rules give the paper's models on a Neural Engine.
func tiers(t *testing.T) [][]string {
	t.Helper()
	ultra, err := planning.NamedDevice("m2-ultra")
	if err != nil {
		t.Fatal(err)
	}
	rows := [][]string{{"model", "experts", "chosen", "chunk", "C_base", "tiers, r = 1", "tiers, r = 2", "tiers, r = 4"}}
	for _, name := range []string{"phi-3.5-moe", "qwen3-30b-a3b"} {
		m, ok := npu.ShapeMixture(name)
		if !ok {
			t.Fatalf("no shape %s", name)
		}
		for _, chunk := range Chunks() {
			var cells []string
			base := 0
			for _, r := range []float64{1, 2, 4} {
				var sizes []int
				base, _, sizes = planning.Tiers(chunk, m.Shape.Chosen, m.Shape.Experts, r, ultra.Rows)
				cells = append(cells, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(sizes)), ", "), "[]"))
			}
			rows = append(rows, append([]string{name, fmt.Sprint(m.Shape.Experts), fmt.Sprint(m.Shape.Chosen), fmt.Sprint(chunk), fmt.Sprint(base)}, cells...))
		}
	}
	return rows
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

func TestTheGuidesTablesAreWhatTheProgramComputes(t *testing.T) {
	docs := filepath.Join("..", "..", "..", "docs")
	for name, rows := range map[string][][]string{"npu-mixture-tiers.csv": tiers(t), "npu-papers-mixtures.csv": npu.FigureTable(figures(t))} {
		var want bytes.Buffer
		if err := csv.NewWriter(&want).WriteAll(rows); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(docs, "data", name)
		if *update {
			if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.ReplaceAll(string(got), "\r\n", "\n") != want.String() {
			t.Errorf("docs/data/%s (go test -C lab ./npu/mixtures -run Guide -update rewrites it) has\n%s\nthe program computes\n%s", name, got, &want)
		}
	}
	guide, err := os.ReadFile(filepath.Join(docs, "mixtures.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{npu.Counts(figures(t)), npu.Fit(figures(t))} {
		if !strings.Contains(strings.Join(strings.Fields(string(guide)), " "), want) {
			t.Errorf("docs/mixtures.md does not say %q", want)
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
	if err := os.WriteFile(filepath.Join(docs, "placements.svg"), drawing.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

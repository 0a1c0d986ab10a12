package npu

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the tables and the drawing of docs/npu.md")

// table is rows as Markdown has them, the head first.
func table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	return b.String()
}

// guideTables are the tables of docs/npu.md that the program computes, by name.
func guideTables(t *testing.T) map[string]string {
	tables := map[string]string{}
	for _, name := range Ablations() {
		a := ablate(t, name)
		tables[name] = table(append([][]string{a.Head}, a.Rows...))
	}
	figures, err := Figures()
	if err != nil {
		t.Fatal(err)
	}
	tables["papers"] = table(FigureTable(figures)) + "\n" + Fit(figures) + ".\n"
	bounds := [][]string{{"SoC", "prefill", "batch 1", "2", "4", "8", "16", "J/token, batch 1", "16"}}
	for _, c := range plan(t, named(t, "bitnet-2b"), DefaultOptions()).Chips {
		row := []string{c.Name, fmt.Sprintf("%.0f", c.Prefill.TokensPerSecond)}
		joules := map[int]string{}
		for _, b := range c.Decode {
			joules[b.Tokens] = fmt.Sprintf("%.3f", b.JoulesPerToken)
			if b.Tokens != 12 {
				row = append(row, fmt.Sprintf("%.0f", b.TokensPerSecond))
			}
		}
		bounds = append(bounds, append(row, joules[1], joules[16]))
	}
	tables["bounds"] = table(bounds)
	return tables
}

// Tables stand between <!-- table NAME --> and <!-- end -->.
func TestTheGuidesTablesAreWhatTheProgramComputes(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "npu.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	guide := strings.ReplaceAll(string(text), "\r\n", "\n")
	for name, want := range guideTables(t) {
		begin, end := "<!-- table "+name+" -->\n", "<!-- end -->"
		before, rest, found := strings.Cut(guide, begin)
		got, after, ended := strings.Cut(rest, end)
		switch {
		case !found || !ended:
			t.Errorf("docs/npu.md has no table %s", name)
		case *update:
			guide = before + begin + "\n" + want + "\n" + end + after
		case strings.TrimSpace(got) != strings.TrimSpace(want):
			t.Errorf("docs/npu.md, table %s (go test -C lab ./npu -run Guide -update rewrites it): has\n%s\nthe program computes\n%s", name, got, want)
		}
	}
	if !*update {
		return
	}
	var drawing bytes.Buffer
	if err := plan(t, named(t, "bitnet-2b"), DefaultOptions()).SVG(&drawing); err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string][]byte{path: []byte(guide), filepath.Join(filepath.Dir(path), "npu.svg"): drawing.Bytes()} {
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

package npu

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the tables in docs/data and the drawing of docs/npu.md")

var docs = filepath.Join("..", "..", "docs")

// markdown writes rows as a table of Markdown, the head first.
func markdown(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	return b.String()
}

// dataTables returns the tables of docs/data that the program computes, by file.
func dataTables(t *testing.T, figures []Figure) map[string][][]string {
	tables := map[string][][]string{"npu-papers.csv": FigureTable(figures)}
	for _, name := range Ablations() {
		a := ablate(t, name)
		tables["npu-ablation-"+name+".csv"] = append([][]string{a.Head}, a.Rows...)
	}
	return tables
}

// bounds is the table in docs/npu.md of what BitNet-2B is modelled to take on each chip.
func bounds(p *Plan) string {
	rows := [][]string{{"SoC", "prompt", "batch 1", "2", "4", "8", "16", "J/token, batch 1", "16"}}
	for _, c := range p.Chips {
		row := []string{c.Name, fmt.Sprintf("%.0f", c.Prefill.TokensPerSecond)}
		joules := map[int]string{}
		for _, b := range c.Decode {
			joules[b.Tokens] = fmt.Sprintf("%.3f", b.JoulesPerToken)
			if b.Tokens != 12 {
				row = append(row, fmt.Sprintf("%.0f", b.TokensPerSecond))
			}
		}
		rows = append(rows, append(row, joules[1], joules[16]))
	}
	return markdown(rows)
}

func TestTheGuidesTablesAreWhatTheProgramComputes(t *testing.T) {
	figures, err := Figures()
	if err != nil {
		t.Fatal(err)
	}
	for name, rows := range dataTables(t, figures) {
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
			t.Errorf("docs/data/%s (go test -C lab ./npu -run Guide -update rewrites it) has\n%s\nthe program computes\n%s", name, got, &want)
		}
	}
	text, err := os.ReadFile(filepath.Join(docs, "npu.md"))
	if err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	o.Context = tmanContext // as executed
	p := plan(t, named(t, "bitnet-2b"), o)
	guide := strings.Join(strings.Fields(string(text)), " ")
	for _, want := range []string{bounds(p), Counts(figures), Fit(figures)} {
		if !strings.Contains(guide, strings.Join(strings.Fields(want), " ")) {
			t.Errorf("docs/npu.md does not say\n%s", want)
		}
	}
	if *update {
		var drawing bytes.Buffer
		if err := p.SVG(&drawing); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(docs, "npu.svg"), drawing.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

package docs_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMeasurementsAreTablesWithTheirOrigin reads docs/data. Each CSV file has rows of one length, and its machine,
// command and date stand in comments at its top or in a row of docs/data/README.md.
func TestMeasurementsAreTablesWithTheirOrigin(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, "docs", "data", "*.csv"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	rows := documents(t)["docs/data/README.md"]
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)\A# .+\n# machine: .+\n# command: .+\n# date: \d{4}-\d{2}-\d{2}\n`).Match(text) && !strings.Contains(rows, "| `"+filepath.Base(file)+"` |") {
			t.Errorf("%s does not say what it is, its machine, command and date, nor has it a row", filepath.Base(file))
		}
		r := csv.NewReader(strings.NewReader(string(text)))
		r.Comment = '#'
		if rows, err := r.ReadAll(); err != nil || len(rows) < 2 {
			t.Errorf("%s: %d rows, %v", filepath.Base(file), len(rows), err)
		}
	}
}

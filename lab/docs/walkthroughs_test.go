package docs_test

import (
	"encoding/csv"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestTheTableOfFirstMinutesIsOfTheScripts holds docs/data/first-minutes.csv, seconds apart, to the scripts that
// .ci/walkthroughs/run types.
func TestTheTableOfFirstMinutesIsOfTheScripts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, ".ci", "walkthroughs", "*.walk"))
	if err != nil || len(files) != 12 {
		t.Fatalf("%d walks, %v, want 12", len(files), err)
	}
	table := csv.NewReader(strings.NewReader(shipped(t, "docs/data/first-minutes.csv")))
	table.Comment = '#'
	rows, err := table.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		text := shipped(t, ".ci/walkthroughs/"+name)
		said := func(word string) string {
			m := regexp.MustCompile(`(?m)^# ` + regexp.QuoteMeta(word) + `: (.*)$`).FindStringSubmatch(text)
			if m == nil {
				t.Fatalf("%s does not say %s", name, word)
			}
			return m[1]
		}
		typed := len(regexp.MustCompile(`(?m)^typed ['"]`).FindAllString(text, -1))
		if seen := len(regexp.MustCompile(`(?m)^seen ['"]`).FindAllString(text, -1)); typed == 0 || seen == 0 {
			t.Errorf("%s types %d commands and looks for %d things", name, typed, seen)
		}
		want := []string{said("who"), said("does"), said("model"), strconv.Itoa(typed), "SECONDS", said("ollama"), said("llama.cpp")}
		if !slices.ContainsFunc(rows, func(row []string) bool {
			return slices.Equal(slices.Concat(row[:4], want[4:5], row[5:]), want)
		}) {
			t.Errorf("first-minutes.csv has no row %q", want)
		}
	}
}

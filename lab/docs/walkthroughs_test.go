package docs_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheTableOfFirstMinutesIsOfTheScripts holds the table of docs/first-steps.md, seconds apart, to the
// scripts that .ci/walkthroughs/run types.
func TestTheTableOfFirstMinutesIsOfTheScripts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, ".ci", "walkthroughs", "*.walk"))
	if err != nil || len(files) != 12 {
		t.Fatalf("%d walks, %v, want 12", len(files), err)
	}
	document := documents(t)["docs/first-steps.md"]
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
		row := fmt.Sprintf("| %s | %s | %s | %d | SECONDS | %s | %s |", said("who"), said("does"), said("model"), typed, said("ollama"), said("llama.cpp"))
		if !regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(row), "SECONDS", `\d+\.\d`)).MatchString(document) {
			t.Errorf("docs/first-steps.md has no row\n%s", row)
		}
	}
}

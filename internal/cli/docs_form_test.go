package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// How documents look: width of prose, shape and length of decisions.

const (
	proseColumns = 100
	mostADRWords = 400
)

// wrapped are the lines of a document that have a width, and their numbers: not those
// of blocks and tables, nor single words that are too long for any line.
func wrapped(text string) map[int]string {
	lines, fenced := map[int]string{}, false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		words := strings.Fields(strings.TrimLeft(line, "-* "))
		if !fenced && !strings.HasPrefix(line, "|") && len(words) > 1 {
			lines[i+1] = line
		}
	}
	return lines
}

func TestProseIsWrapped(t *testing.T) {
	docs := documents(t)
	for _, name := range sortedNames(docs) {
		if name == "CONTRIBUTING.md" { // its trips are lists of files, a line each
			continue
		}
		for number, line := range wrapped(docs[name]) {
			if n := utf8.RuneCountInString(line); n > proseColumns {
				t.Errorf("%s:%d has %d columns, more than %d", name, number, n, proseColumns)
			}
		}
	}
}

// words counts what has a letter or a digit.
func words(text string) (n int) {
	for _, w := range strings.Fields(text) {
		if strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

func TestDecisionsAreShortAndHaveTheSameParts(t *testing.T) {
	docs := documents(t)
	number := 0
	for _, name := range sortedNames(docs) {
		if !strings.HasPrefix(name, "docs/adr/") {
			continue
		}
		number++
		text := docs[name]
		var parts []string
		for _, m := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(text, -1) {
			parts = append(parts, m[1])
		}
		if want := []string{"Context", "Decision", "Consequences"}; !slices.Equal(parts, want) {
			t.Errorf("%s has the parts %q, want %q", name, parts, want)
		}
		if n := words(text); n > mostADRWords {
			t.Errorf("%s has %d words, more than %d", name, n, mostADRWords)
		}
		digits := strings.TrimLeft(filepath.Base(name)[:4], "0")
		if !strings.HasPrefix(text, "# "+digits+". ") {
			t.Errorf("%s does not begin with its number", name)
		}
	}
	if number < 20 {
		t.Errorf("%d decisions: the test has lost sight of them", number)
	}
}

// TestEveryLibraryHasAReason holds the tables of libraries, of all and of the chart's tests,
// against what each go.mod requires directly: a line of it without // indirect.
func TestEveryLibraryHasAReason(t *testing.T) {
	var required []string
	for _, mod := range []string{"go.mod", "kernels/_gen/go.mod", "deploy/helm/test/go.mod"} {
		text, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(mod)))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			m := regexp.MustCompile(`^(?:require )?\s*(\S+\.\S+/\S+) v\S+\s*(// indirect)?`).FindStringSubmatch(line)
			if m == nil || m[2] != "" || m[1] == "github.com/lutra-lm/lutra" {
				continue
			}
			name := strings.TrimPrefix(m[1], "github.com/")
			required = append(required, regexp.MustCompile(`/v\d+$`).ReplaceAllString(name, ""))
		}
	}
	table := documents(t)["docs/adr/0002-dependencies.md"] + documents(t)["docs/adr/0055-chart.md"]
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(table, -1) {
		owner := ""
		for _, name := range strings.Split(regexp.MustCompile(`\([^)]*\)| v\d+`).ReplaceAllString(m[1], ""), ",") {
			name = strings.TrimSpace(name)
			if at := strings.LastIndexByte(name, '/'); at >= 0 {
				owner = name[:at+1]
			} else {
				name = owner + name // prometheus/client_golang, client_model
			}
			listed[name] = true
		}
	}
	for _, name := range required {
		if !listed[name] {
			t.Errorf("neither docs/adr/0002-dependencies.md nor 0055-chart.md has a reason for %s", name)
		}
	}
	for name := range listed {
		if strings.Contains(name, "/") && !slices.Contains(required, name) {
			t.Errorf("docs/adr/0002-dependencies.md or 0055-chart.md has a reason for %s, which no go.mod requires", name)
		}
	}
}

package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// hop is a line of a path in the architecture: | 1 | `file` | `Function` | what it does |
var hop = regexp.MustCompile("^\\| (\\d+) \\| `([^`]+)` \\| `([^`]+)` \\|")

func TestThePathsInTheArchitectureLeadThroughFunctionsThatAreThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	hops, most := 0, 0
	for line := range strings.Lines(string(text)) {
		m := hop.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		hops++
		n, _ := strconv.Atoi(m[1])
		most = max(most, n)
		source, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(m[2])))
		if err != nil {
			t.Errorf("hop %s: %v", m[1], err)
			continue
		}
		name, receiver := m[3], ""
		if typ, method, ok := strings.Cut(m[3], "."); ok {
			name, receiver = method, `\(\w+ \*?`+typ+`\) `
		}
		declared := regexp.MustCompile(`(?m)^func ` + receiver + name + `\(`)
		if !declared.Match(source) {
			t.Errorf("hop %s: %s has no %s", m[1], m[2], m[3])
		}
	}
	if hops < 20 || most > 15 {
		t.Errorf("%d hops, the longest path of %d; want paths of 15 at most", hops, most)
	}
}

// TestEveryDocumentIsReachedFromTheREADME follows links, as a reader does.
func TestEveryDocumentIsReachedFromTheREADME(t *testing.T) {
	docs := documents(t)
	seen := map[string]bool{"README.md": true}
	for queue := []string{"README.md"}; len(queue) > 0; queue = queue[1:] {
		for _, m := range links.FindAllStringSubmatch(docs[queue[0]], -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if name := path.Join(path.Dir(queue[0]), target); docs[name] != "" && !seen[name] {
				seen[name] = true
				queue = append(queue, name)
			}
		}
	}
	for name := range docs {
		if !seen[name] {
			t.Errorf("no link leads to %s", name)
		}
	}
}

package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

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

// TestEveryLibraryHasAReason holds the tables of libraries, of all, of the chart's tests and of releases,
// against what each go.mod requires directly: a line of it without // indirect.
func TestEveryLibraryHasAReason(t *testing.T) {
	var required []string
	for _, mod := range []string{"go.mod", "lab/go.mod", "kernels/_gen/go.mod", "deploy/helm/test/go.mod", "tools/release/go.mod"} {
		text, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(mod)))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			m := regexp.MustCompile(`^(?:require )?\s*(\S+\.\S+/\S+) v\S+\s*(// indirect)?`).FindStringSubmatch(line)
			if m == nil || m[2] != "" || strings.HasPrefix(m[1]+"/", "github.com/lutra-lm/lutra/") {
				continue
			}
			name := strings.TrimPrefix(m[1], "github.com/")
			required = append(required, regexp.MustCompile(`/v\d+$`).ReplaceAllString(name, ""))
		}
	}
	table := documents(t)["docs/adr/0002-dependencies.md"] + documents(t)["docs/adr/0055-chart.md"] + documents(t)["docs/adr/0073-releases.md"] + documents(t)["docs/adr/0083-image.md"]
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
			t.Errorf("none of docs/adr/0002-dependencies.md, 0055-chart.md, 0073-releases.md and 0083-image.md has a reason for %s", name)
		}
	}
	for name := range listed {
		if strings.Contains(name, "/") && !slices.Contains(required, name) {
			t.Errorf("docs/adr/0002-dependencies.md, 0055-chart.md, 0073-releases.md or 0083-image.md has a reason for %s, which no go.mod requires", name)
		}
	}
}

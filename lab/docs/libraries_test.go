package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// libraryTable is the document whose table has a reason for each library.
const libraryTable = "docs/adr/0002-dependencies.md"

// TestEveryLibraryHasAReason compares the table of libraries with the lines of each go.mod that have no // indirect.
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
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(documents(t)[libraryTable], -1) {
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
			t.Errorf("%s has no reason for %s", libraryTable, name)
		}
	}
	for name := range listed {
		if strings.Contains(name, "/") && !slices.Contains(required, name) {
			t.Errorf("%s has a reason for %s, which no go.mod requires", libraryTable, name)
		}
	}
}

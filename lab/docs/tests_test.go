package docs_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// testedRow is a line of the map of tests: | behaviour | `where`, `where` |
var testedRow = regexp.MustCompile("^\\| ([^|]+) \\| (`[^|]*`) \\|$")

func TestTheMapOfTestsLeadsToTestsAndLeavesNoPackageOut(t *testing.T) {
	n := &naming{}
	n.paths, n.sources = repositoryFiles(t)
	var packages []string // with tests
	for folder := range n.sources {
		if slices.ContainsFunc(n.paths, func(p string) bool { return path.Dir(p) == folder && strings.HasSuffix(p, "_test.go") }) {
			packages = append(packages, folder)
		}
	}
	_, section, _ := strings.Cut(documents(t)["docs/testing.md"], "## What is tested where")
	section, _, _ = strings.Cut(section, "\n## ")
	var named []string
	rows := 0
	for line := range strings.Lines(section) {
		m := testedRow.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		rows++
		for _, span := range codeSpans.FindAllStringSubmatch(m[2], -1) {
			where, below := strings.CutSuffix(span[1], "/...")
			named = append(named, span[1])
			switch {
			case testName.MatchString(where):
				at := slices.IndexFunc(packages, func(p string) bool { return strings.Contains(n.sources[p], "func "+where+"(") })
				if at < 0 {
					t.Errorf("%s: there is no %s", m[1], where)
					continue
				}
				named = append(named, packages[at])
			case slices.Contains(n.paths, where): // a file
				named = append(named, path.Dir(where))
			case !slices.Contains(n.paths, where+"/"):
				t.Errorf("%s: there is no %s", m[1], where)
			case below && !slices.ContainsFunc(packages, func(p string) bool { return p == where || strings.HasPrefix(p, where+"/") }):
				t.Errorf("%s: nothing below %s has tests", m[1], where)
			}
		}
	}
	if rows < 20 {
		t.Fatalf("%d rows: the test has lost sight of them", rows)
	}
	for _, p := range packages {
		if !slices.ContainsFunc(named, func(name string) bool {
			above, below := strings.CutSuffix(name, "/...")
			return name == p || below && (above == p || strings.HasPrefix(p, above+"/"))
		}) {
			t.Errorf("docs/testing.md does not say what the tests of %s are for", p)
		}
	}
}

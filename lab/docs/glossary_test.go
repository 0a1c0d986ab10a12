package docs_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// glossaryRow is a line of docs/glossary.md: | words | meaning | `where`, `where` |
var glossaryRow = regexp.MustCompile("^\\| ([a-z ,]+) \\| .* \\| (`.*`) \\|$")

// used returns the source that a place of the glossary names: of a package, of the packages
// that declare a Go name, or of all that say a metric or a setting; "": there is none.
func (n *naming) used(where string) string {
	if source := n.sources[where]; source != "" {
		return source
	}
	if m := qualified.FindStringSubmatch(where); m != nil {
		source := ""
		for folder, text := range n.sources {
			if path.Base(folder) == m[1] && n.declare[folder][m[2]] {
				source += text
			}
		}
		return source
	}
	if settingKey.MatchString(where) && slices.Contains(n.keys, where) ||
		metric.MatchString(where) && n.check("docs/glossary.md", where) == nil {
		return n.all
	}
	return ""
}

func TestTheGlossarysWordsAreUsedWhereItSays(t *testing.T) {
	n := newNaming(t)
	rows := 0
	for line := range strings.Lines(documents(t)["docs/glossary.md"]) {
		m := glossaryRow.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		rows++
		for _, place := range codeSpans.FindAllStringSubmatch(m[2], -1) {
			source := n.used(place[1])
			if source == "" {
				t.Errorf("%s: there is no %s", m[1], place[1])
				continue
			}
			for _, word := range strings.Split(m[1], ", ") {
				if !regexp.MustCompile(`(?i)\b` + word + `s?\b`).MatchString(source) {
					t.Errorf("%s: %s does not say it", word, place[1])
				}
			}
		}
	}
	if rows < 40 {
		t.Errorf("%d words: the test has lost sight of them", rows)
	}
}

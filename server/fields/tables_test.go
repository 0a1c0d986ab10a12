package fields

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts/scaling"
)

//go:generate go test . -run TestTheTablesOfTheReferenceAreTheRows -update

var update = flag.Bool("update", false, "rewrite the tables of "+reference)

const reference = "../../docs/api.md"

// TestTheTablesOfTheReferenceAreTheRows holds the first tables after some headings to the rows
// that requests are read by. With -update it writes them.
func TestTheTablesOfTheReferenceAreTheRows(t *testing.T) {
	raw, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	now := string(raw)
	for _, table := range []struct{ heading, text string }{
		{"### Sampling", samplingTable()},
		{"### Settings of a search", planTable("")}, {"### Checks", planTable("verify")}, {"### Critiques", planTable("judge")},
		{"### Candidates in rounds", planTable("adaptive")}, {"### Answers that end early", planTable("deepconf")}, {"### Particles", planTable("particles")},
		{"### Refused", groupTable("refused", Refused)}, {"### Ignored", groupTable("ignored", Ignored)},
	} {
		before, section, found := strings.Cut(now, "\n"+table.heading+"\n")
		from := strings.Index(section, "\n|")
		if !found || from < 0 {
			t.Fatalf("%s has no heading %q with a table", reference, table.heading)
		}
		to := from + 1 + strings.Index(section[from+1:], "\n\n")
		now = before + "\n" + table.heading + "\n" + section[:from+1] + table.text + section[to+1:]
	}
	if now == string(raw) {
		return
	}
	if !*update {
		t.Fatalf("the tables of %s are not of the rows: go generate ./server/fields", reference)
	}
	if err := os.WriteFile(reference, []byte(now), 0o644); err != nil {
		t.Fatal(err)
	}
}

func samplingTable() string {
	var b strings.Builder
	b.WriteString("| field | values | |\n|---|---|---|\n")
	for i := range sampling.Fields {
		f := &sampling.Fields[i]
		values, more := f.Range(), ""
		if f.MinusOne {
			more = ", as is -1"
		}
		is := "off"
		if f.Qualifies {
			is = "default"
		}
		values += fmt.Sprintf("; %s: %v%s", is, f.Off, more)
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, values, f.Doc)
	}
	for _, r := range Sampled {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.Names, r.Range, r.Doc)
	}
	return b.String()
}

// planTable lists the settings of a section, or without one the settings of all sections that have no table.
func planTable(section string) string {
	own := []string{"verify", "judge", "adaptive", "deepconf", "particles"}
	var b strings.Builder
	b.WriteString("| field | values | default | |\n|---|---|---|---|\n")
	for i := range scaling.Settings {
		s := &scaling.Settings[i]
		in, _, nested := strings.Cut(s.Key, ".")
		if nested && in == section || section == "" && (!nested || !slices.Contains(own, in)) {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Key, s.Range(), s.Default, s.Doc)
		}
	}
	return b.String()
}

func groupTable(what string, groups []Group) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | |\n|---|---|\n", what)
	for _, g := range groups {
		fmt.Fprintf(&b, "| %s | `%s` |\n", g.Of, strings.Join(slices.Sorted(maps.Keys(g.Fields)), "`, `"))
	}
	return b.String()
}

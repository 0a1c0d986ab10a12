package manual

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"path"
	"slices"
	"strings"
)

// decisions is the document that lists the decisions.
const decisions = "docs/adr/README.md"

// groups are the contents: what a reader wants to do, and the documents for that, in order. Decisions
// are listed by their own index; what fixtures say of themselves is found by links.
var groups = []struct {
	Title string
	names []string
}{
	{"Begin", []string{start, "docs/first-steps.md", "docs/install.md", "docs/models.md", "docs/command-line.md", "docs/web.md", "CHANGELOG.md"}},
	{"Call it", []string{"docs/clients.md", "docs/api.md", "docs/test-time-scaling.md", "docs/examples"}},
	{"Run it for others", []string{"docs/serving.md", "docs/metrics.md", "docs/fleet.md", "docs/soak.md", "deploy/helm/lutra/README.md"}},
	{"Mixtures and NPUs", []string{"docs/mixtures.md", "docs/npu.md", "docs/npu-selftest.md"}},
	{"Measure", []string{"docs/performance.md", "docs/evaluation.md", "docs/test-time-scaling-results.md", "docs/data/README.md"}},
	{"Change it", []string{"CONTRIBUTING.md", "docs/architecture.md", "docs/glossary.md", "docs/testing.md", decisions, "docs/considered.md", "tools/train/README.md"}},
}

var page = template.Must(template.ParseFS(assets, "assets/page.html"))

// entry is a line of the contents.
type entry struct {
	Title, Path string
	Here        bool
}

// finish writes the pages of all documents, with the contents beside each, and what is common to
// them.
func (b *builder) finish() error {
	titles := map[string]string{}
	for _, d := range b.documents {
		titles[d.name] = d.title
	}
	listed := map[string]bool{}
	for _, g := range groups {
		for _, name := range g.names {
			listed[name] = true
			if titles[name] == "" {
				return fmt.Errorf("the contents list %s, which no link leads to", name)
			}
		}
	}
	for _, d := range b.documents {
		if !listed[d.name] && !isDecision(d.name) && !strings.Contains(d.name, "/testdata/") {
			return fmt.Errorf("the contents do not list %s", d.name)
		}
		var out bytes.Buffer
		if err := page.Execute(&out, shown(d, titles)); err != nil {
			return err
		}
		if err := b.put(target(d.name), out.Bytes()); err != nil {
			return err
		}
	}
	for _, name := range []string{"manual.css", "manual.js", "icon.svg"} {
		data, err := assets.ReadFile("assets/" + name)
		if err == nil {
			err = b.put(name, data)
		}
		if err != nil {
			return err
		}
	}
	index, err := b.index()
	if err != nil {
		return err
	}
	return b.put("search.js", index)
}

// isDecision tells whether a document is one of those.
func isDecision(name string) bool { return path.Dir(name) == path.Dir(decisions) && name != decisions }

// shown returns what the template shows of a document.
func shown(d *document, titles map[string]string) map[string]any {
	at := target(d.name)
	type group struct {
		Title   string
		Entries []entry
	}
	var contents []group
	for _, g := range groups {
		in := group{Title: g.Title}
		for _, name := range g.names {
			here := name == d.name || name == decisions && isDecision(d.name)
			in.Entries = append(in.Entries, entry{titles[name], relative(at, target(name)), here})
		}
		contents = append(contents, in)
	}
	var sections []entry
	for _, s := range d.sections {
		if s.level == 2 {
			sections = append(sections, entry{Title: s.heading, Path: "#" + s.anchor})
		}
	}
	root := strings.Repeat("../", strings.Count(at, "/"))
	return map[string]any{"Title": d.title, "Root": root, "Body": d.body, "Contents": contents, "Sections": sections}
}

// found is a page in the search's form: its address, title, whether it is a decision, and its sections.
// Each section has an anchor, a heading, a text and a line for each name that its tables explain.
type found struct {
	Path     string      `json:"path"`
	Title    string      `json:"title"`
	Decision bool        `json:"decision,omitempty"`
	Sections [][4]string `json:"sections"`
}

// index returns the script that hands the text of all pages to the search. It is a script, not JSON,
// since pages that a browser reads from a folder may load nothing else.
func (b *builder) index() ([]byte, error) {
	var order []string // of the contents: of equally good sections the first is shown first
	for _, g := range groups {
		order = append(order, g.names...)
	}
	place := func(d *document) int {
		if i := slices.Index(order, d.name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(b.documents, func(x, y *document) int {
		return cmp.Or(place(x)-place(y), strings.Compare(x.name, y.name))
	})
	var pages []found
	for _, d := range b.documents {
		p := found{Path: target(d.name), Title: d.title, Decision: path.Dir(d.name) == path.Dir(decisions)}
		for _, s := range d.sections {
			p.Sections = append(p.Sections, [4]string{s.anchor, s.heading, s.text, strings.Join(s.names, "\n")})
		}
		pages = append(pages, p)
	}
	list, err := json.Marshal(pages)
	return slices.Concat([]byte("searchable("), list, []byte(");\n")), err
}

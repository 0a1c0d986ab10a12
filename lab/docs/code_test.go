package docs_test

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/huggingface"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// What documents say of the code itself: identifiers, tests to run, routes.

var (
	firstWord = regexp.MustCompile(`^\w+`)
	qualified = regexp.MustCompile(`^([a-z]\w*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?$`)
	member    = regexp.MustCompile(`^([A-Z]\w+|[a-z]\w*[A-Z]\w*)\.([A-Za-z]\w*)$`)
	camelCase = regexp.MustCompile(`^[A-Za-z]\w*[a-z][A-Z]\w*$`)
	exported  = regexp.MustCompile(`^[A-Z][a-z]\w*$`)
	header    = regexp.MustCompile(`^(X-[A-Za-z-]+)`)
	modelKey  = regexp.MustCompile(`^lutra\.[a-z_.]+`)
	plan      = regexp.MustCompile(`^(?:lutra-tiny-[ls])?\+?([a-z]+\d+(?:x\d+)?|[a-z_]+(?:;[a-z_.]+=[^;]*)+)(;.*)?$`)
	goTest    = regexp.MustCompile(`\bgo test((?: [^;&|\x60]+)?)`)
	routes    = regexp.MustCompile(`(?:\.(?:Get|Post\w*)\(|\.Method\(http\.Method\w+, |Path: +)"(/[^"]*)"`)
)

// foreignNames lists names of other languages.
var foreignNames = []string{"None", "True"}

// isModelType tells whether a name is an architecture's or a model_type, some of which look like search plans.
func isModelType(name string) bool {
	for arch, types := range huggingface.ModelTypes() {
		if name == arch || slices.Contains(types, name) {
			return true
		}
	}
	return false
}

// notPlans look like search plans.
var notPlans = []string{"i1", "i2", "avx2", "avx512", "ipv4", "ipv6", "base64", "arm64"}

// aboutCode are the documents whose words with a capital inside are the code's, not values
// of a chart.
func aboutCode(doc string) bool {
	return strings.HasSuffix(doc, "/README.md") && !strings.HasPrefix(doc, "deploy/") || strings.HasPrefix(doc, "docs/adr/") ||
		slices.Contains([]string{"docs/architecture.md", "docs/performance.md", "docs/considered.md", "docs/testing.md", "CONTRIBUTING.md"}, doc)
}

// inPackages are the names that the packages of that name declare; nil: there is none.
func (n *naming) inPackages(name string) (names map[string]bool) {
	for folder, source := range n.sources {
		if path.Base(folder) == name && strings.Contains(source, "\npackage ") {
			if names == nil {
				names = map[string]bool{}
			}
			maps.Copy(names, n.declare[folder])
		}
	}
	return names
}

// declares tells whether any source declares a name.
func (n *naming) declares(name string) bool {
	for _, names := range n.declare {
		if names[name] {
			return true
		}
	}
	return false
}

// declared returns the names that lines of a source declare, or begin with, as lines of
// fields and of grouped constants do.
func declared(source string) map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		for _, keyword := range []string{"func ", "type ", "var ", "const "} {
			if rest, ok := strings.CutPrefix(line, keyword); ok {
				if line = rest; strings.HasPrefix(line, "(") { // a receiver
					_, line, _ = strings.Cut(line, ") ")
				}
				break
			}
		}
		names[firstWord.FindString(line)] = true
	}
	return names
}

// identified says what is wrong with a name of the code, if span is one.
func (n *naming) identified(doc, span string) error {
	if m := qualified.FindStringSubmatch(span); m != nil {
		if names := n.inPackages(m[1]); names != nil && !names[m[2]] {
			return fmt.Errorf("package %s declares no %s", m[1], m[2])
		} else if names != nil && m[3] != "" && !n.declares(m[3]) { // perhaps of a type that is embedded
			return fmt.Errorf("nothing declares %s", m[3])
		}
		return nil
	}
	switch {
	case modelKey.MatchString(span):
		if key := modelKey.FindString(span); !strings.Contains(n.all, `"`+key) {
			return fmt.Errorf("no model file has a key %s", key)
		}
		return nil
	case header.MatchString(span):
		if name := header.FindString(span); !strings.Contains(n.all, `"`+name+`"`) {
			return fmt.Errorf("the server knows no header %s", name)
		}
		return nil
	case plan.MatchString(span) && !slices.Contains(notPlans, span) && !isModelType(span):
		m := plan.FindStringSubmatch(span)
		p, err := scaling.Parse(m[1] + m[2])
		if err == nil && !p.Unchosen() && !slices.Contains(scaling.Methods(), p.Method) {
			err = fmt.Errorf("there is no method %s", p.Method)
		}
		if err != nil {
			return fmt.Errorf("no search plan: %w", err)
		}
		return nil
	case slices.Contains(foreignNames, span):
		return nil
	}
	var names []string
	if m := member.FindStringSubmatch(span); m != nil && aboutCode(doc) {
		names = m[1:]
	} else if (camelCase.MatchString(span) || exported.MatchString(span)) && aboutCode(doc) {
		names = []string{span}
	}
	for _, name := range names {
		if !n.declares(name) {
			return fmt.Errorf("nothing declares %s", name)
		}
	}
	return nil
}

// runs says what is wrong with the arguments of a go test command: packages that
// are not there, or names that no test or benchmark in them has.
func (n *naming) runs(arguments string) error {
	words := strings.Fields(strings.ReplaceAll(arguments, "'", ""))
	var sources []string
	module := ""
	for i, w := range words {
		folder, ok := strings.CutPrefix(w, "./")
		if !ok {
			switch {
			case w == "go": // the next command
				module = ""
			case w == "-C" && i+1 < len(words):
				module = words[i+1]
			}
			continue
		}
		folder = path.Join(module, folder)
		below := strings.HasSuffix(folder, "...")
		folder = strings.TrimSuffix(strings.TrimSuffix(folder, "..."), "/")
		found := folder == ""
		for at, text := range n.sources {
			if at == folder || below && (folder == "" || strings.HasPrefix(at, folder+"/")) {
				sources, found = append(sources, text), true
			}
		}
		if !found {
			return fmt.Errorf("there is no package ./%s", folder)
		}
	}
	for i, w := range words[:max(0, len(words)-1)] {
		kind := map[string]string{"-run": "Test", "-bench": "Benchmark"}[w]
		name, _, _ := strings.Cut(words[i+1], "/") // a subtest, or a case of a benchmark, is behind it
		if kind == "" || name == "XXX" || len(sources) == 0 {
			continue
		}
		declared := regexp.MustCompile(`(?m)^func ` + kind + `\w*` + name)
		if !slices.ContainsFunc(sources, declared.MatchString) {
			return fmt.Errorf("%s has no %s of the name %s", arguments, kind, name)
		}
	}
	return nil
}

func TestTestsAndBenchmarksThatDocumentsRunAreThere(t *testing.T) {
	n := &naming{}
	n.paths, n.sources = repositoryFiles(t)
	docs := documents(t)
	seen := 0
	for _, name := range sortedNames(docs) {
		for _, m := range goTest.FindAllStringSubmatch(docs[name], -1) {
			seen++
			if err := n.runs(m[1]); err != nil {
				t.Errorf("%s: go test%s: %v", name, m[1], err)
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d commands: the test has lost sight of them", seen)
	}
}

func TestEveryRouteIsDocumented(t *testing.T) {
	_, sources := repositoryFiles(t)
	var found [][]string
	for folder, source := range sources {
		if folder == "server" || strings.HasPrefix(folder, "server/") {
			found = append(found, routes.FindAllStringSubmatch(source, -1)...)
		}
	}
	if len(found) < 40 {
		t.Fatalf("%d routes: the test has lost sight of them", len(found))
	}
	api := documents(t)["docs/api.md"] + documents(t)["docs/clients.md"]
	for _, m := range found {
		if route := strings.TrimSuffix(m[1], "*"); route != "/" && !strings.Contains(api, route) {
			t.Errorf("neither docs/api.md nor docs/clients.md lists %s", m[1])
		}
	}
}

// TestPathsInCommandsAreThere looks at the words of shell blocks that begin with a
// folder of the repository.
func TestPathsInCommandsAreThere(t *testing.T) {
	n := &naming{}
	n.paths, n.sources = repositoryFiles(t)
	docs := documents(t)
	for _, name := range sortedNames(docs) {
		for _, block := range blocks(name, docs[name]) {
			if block.lang != "sh" {
				continue
			}
			for line := range strings.Lines(block.text) {
				_, module, _ := strings.Cut(line, "go run -C ")
				module, _, _ = strings.Cut(module, " ")
				for _, word := range strings.Fields(line) {
					file := strings.TrimSuffix(strings.TrimPrefix(word, "./"), "/...")
					if strings.HasPrefix(word, "./") {
						file = path.Join(module, file)
					}
					top, _, ok := strings.Cut(file, "/")
					if ok && slices.Contains(n.paths, top+"/") && !slices.Contains(n.paths, file) && !slices.Contains(n.paths, file+"/") {
						t.Errorf("%s: there is no %s", block.where, word)
					}
				}
			}
		}
	}
}

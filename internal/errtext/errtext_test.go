package errtext

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestErrorsAreSaidWithoutNamesOfPackages(t *testing.T) {
	leaf := errors.New("kernels: out of memory")
	for want, err := range map[string]error{
		"out of memory": leaf,
		"model m: cannot run: blk.0: out of memory": fmt.Errorf("model m: %w", fmt.Errorf("%w: blk.0: %w", errors.New("models: cannot run"), leaf)),
		"no such thing":                                  errors.New("models: gguf: no such thing"),
		"one\ntwo":                                       errors.Join(errors.New("tts: one"), errors.New("server: two")),
		"c.yaml:3: server: found a list":                 fmt.Errorf("c.yaml:3: %w", Keyed(errors.New("server: found a list"))),
		"server.presets: test_time_scaling: bad":         Keyed(fmt.Errorf("server.presets: %w", errors.New("tts: test_time_scaling: bad"))),
		"the prompt says tts: hello":                     errors.New("the prompt says tts: hello"),
		"port: 80":                                       errors.New("port: 80"),
		"models: text that only looks like an error's":   Keyed(errors.New("models: text that only looks like an error's")),
		"a wrapped key stays: kv: found 3, want a size.": fmt.Errorf("a wrapped key stays: %w.", Keyed(errors.New("kv: found 3, want a size"))),
	} {
		if got := Text(err); got != want {
			t.Errorf("%q is said as %q, want %q", err, got, want)
		}
	}
	if Keyed(nil) != nil {
		t.Error("no error has a key")
	}
	if err := Keyed(leaf); !errors.Is(err, leaf) {
		t.Error("a key hides the error")
	}
}

// TestEveryPackageThatNamesItselfInErrorsIsKnown reads the source: texts that begin with
// the name of a package of this module.
func TestEveryPackageThatNamesItselfInErrorsIsKnown(t *testing.T) {
	module := map[string]bool{}
	begins := map[string]string{} // first words of texts, and a file that has it
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "_gen" || d.Name() == "docs" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		module[f.Name.Name] = true
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				text, _ := strconv.Unquote(l.Value)
				if word, _, ok := strings.Cut(text, ": "); ok && !strings.ContainsAny(word, " \n%") {
					begins[word] = path
				}
			}
			return true
		})
		return nil
	})
	if err != nil || len(module) < 30 {
		t.Fatalf("%d packages, %v", len(module), err)
	}
	for word, path := range begins {
		if module[word] && !slices.Contains(packages, word) {
			t.Errorf("%s: an error begins with %q, which is missing among the packages", path, word+": ")
		}
	}
	for _, name := range packages {
		if !module[name] {
			t.Errorf("there is no package %s", name)
		}
	}
}

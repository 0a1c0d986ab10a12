package batcher

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
)

// TestFilesCallOnlyThoseBelow holds the files to the order that doc.go gives.
func TestFilesCallOnlyThoseBelow(t *testing.T) {
	sweep.NoRace(t)
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(doc), "// Files call only those below them:\n//\n")
	list, _, _ = strings.Cut(list, "\n//\n")
	order := []string{"doc"}
	for line := range strings.Lines(list) {
		names, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "//")), "  ")
		order = append(order, strings.Split(names, ", ")...)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range order {
		f, err := parser.ParseFile(fset, name+".go", nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if all, _ := filepath.Glob("*.go"); len(slices.DeleteFunc(all, func(name string) bool { return strings.HasSuffix(name, "_test.go") })) != len(files) {
		t.Errorf("doc.go orders %d files, and there are others", len(files))
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, err := (&types.Config{Importer: exported(t, fset)}).Check("batcher", fset, files, info)
	if err != nil {
		t.Fatal(err)
	}
	at := func(p token.Pos) int {
		return slices.Index(order, strings.TrimSuffix(filepath.Base(fset.Position(p).Filename), ".go"))
	}
	arrows := 0
	for id, o := range info.Uses {
		if v, ok := o.(*types.Var); o.Pkg() != pkg || ok && !v.IsField() && o.Parent() != pkg.Scope() {
			continue
		}
		if from, to := at(id.Pos()), at(o.Pos()); to < from {
			t.Errorf("%s: %s is above it, in %s.go", fset.Position(id.Pos()), o.Name(), order[to])
		} else if to > from {
			arrows++
		}
	}
	if arrows < 100 {
		t.Errorf("%d references between files: the test has lost sight of them", arrows)
	}
}

// exported reads what the packages that this one imports export, as the compiler wrote it.
func exported(t *testing.T, fset *token.FileSet) types.Importer {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
}

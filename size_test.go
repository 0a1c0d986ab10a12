package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Bounds of what a reader keeps in mind at once.
const (
	mostMethods    = 20 // of a type
	mostFields     = 20 // of a struct that is not plain data
	mostComplexity = 25 // of a function: its branches, loops, cases and && and ||, and one
)

// manyMethods has the types of more than mostMethods methods, by folder and name. It only gets shorter.
var manyMethods = map[string]int{
	"kernels/_gen/grouped gfni": 26,
	"kernels/_gen/grouped tile": 82,
}

// manyFields has the structs of more than mostFields fields, by folder and name. It only gets shorter.
var manyFields = map[string]int{}

// complexFunctions has the functions over mostComplexity, by folder and name. It only gets shorter.
var complexFunctions = map[string]int{}

func TestNoTypeGetsMoreMethodsOrFieldsAndNoFunctionMoreBranches(t *testing.T) {
	methods, fields, complexity := map[string]int{}, map[string]int{}, map[string]int{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.TypeSpec); ok {
				if of, ok := spec.Type.(*ast.StructType); ok {
					fields[folder+" "+spec.Name.Name] = fieldsOf(of)
				}
			}
			return true
		})
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := folder + " " + f.Name.Name
			if f.Recv != nil {
				receiver := folder + " " + receiverOf(f.Recv.List[0].Type)
				methods[receiver]++
				name = receiver + "." + f.Name.Name
			}
			complexity[name] = max(complexity[name], branches(f)) // of one file for each system, the largest
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	hold(t, "methods", methods, mostMethods, manyMethods)
	hold(t, "fields", fields, mostFields, manyFields)
	hold(t, "complexity", complexity, mostComplexity, complexFunctions)
}

// hold compares the counts over most with the ones that are recorded.
func hold(t *testing.T, what string, counts map[string]int, most int, recorded map[string]int) {
	t.Helper()
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n <= most })
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[name]; n > recorded[name] {
			t.Errorf("%s: %s %d, at most %d: divide it into owners or steps", name, what, n, max(most, recorded[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		if n := counts[name]; n < recorded[name] {
			t.Errorf("%s: %s fell from %d to %d: record that (nothing at all if it is at most %d)", name, what, recorded[name], n, most)
		}
	}
}

// fieldsOf counts the fields of a struct. One whose fields are all exported is plain data, of which there may be any number.
func fieldsOf(s *ast.StructType) int {
	n, plain := 0, true
	for _, f := range s.Fields.List {
		n += max(1, len(f.Names))
		for _, name := range f.Names {
			plain = plain && name.IsExported()
		}
	}
	if plain {
		return 0
	}
	return n
}

// receiverOf returns the name of a receiver's type.
func receiverOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverOf(e.X)
	case *ast.IndexExpr:
		return receiverOf(e.X)
	case *ast.IndexListExpr:
		return receiverOf(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// branches returns the cyclomatic complexity of a function, the functions within it included.
func branches(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// Command types checks packages for another system as its compiler would, and makes no code
// of them: compiling everything that they import takes fifty times as long.
//
//	types GOOS/GOARCH [-tags TAGS] PACKAGE...
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) < 3 || !strings.Contains(os.Args[1], "/") {
		fmt.Fprintln(os.Stderr, "usage: types GOOS/GOARCH [-tags TAGS] PACKAGE...")
		os.Exit(2)
	}
	system, arch, _ := strings.Cut(os.Args[1], "/")
	n, err := check(system, arch, os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%s: %d packages hold\n", os.Args[1], n)
}

// listed is a package in the output of go list.
type listed struct {
	ImportPath, Dir string
	GoFiles, SFiles []string
	ImportMap       map[string]string
	DepOnly         bool
	Module          *struct{ GoVersion string }
}

// check returns how many packages it has checked, of those that go list's arguments name.
func check(system, arch string, args []string) (n int, err error) {
	list := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,SFiles,ImportMap,DepOnly,Module"}, args...)...)
	list.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return 0, fmt.Errorf("%v: %w", list, err)
	}
	done := map[string]*types.Package{"unsafe": types.Unsafe}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); { // what is imported comes first
		var p listed
		if err := d.Decode(&p); err != nil {
			return 0, err
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		var wrong []error
		done[p.ImportPath], wrong = p.check(done, types.SizesFor("gc", arch))
		if !p.DepOnly {
			n++
			err = errors.Join(append([]error{err}, wrong...)...)
		}
	}
	return n, err
}

// check returns a package, and all that is wrong with it. Of packages that others import it reads
// declarations alone.
func (p *listed) check(done map[string]*types.Package, sizes types.Sizes) (pkg *types.Package, wrong []error) {
	report := func(err error) { wrong = append(wrong, err) }
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			report(err)
			continue
		}
		files = append(files, f)
		for _, d := range f.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Body == nil && len(p.SFiles) == 0 {
				report(fmt.Errorf("%v: %s has no body, and no assembly here", fset.Position(f.Pos()), f.Name.Name))
			}
		}
	}
	conf := types.Config{Sizes: sizes, IgnoreFuncBodies: p.DepOnly, Error: report, Importer: imports(func(path string) (*types.Package, error) {
		if to := p.ImportMap[path]; to != "" {
			path = to
		}
		if done[path] == nil {
			return nil, fmt.Errorf("%s is not there", path)
		}
		return done[path], nil
	})}
	if p.Module != nil && p.Module.GoVersion != "" {
		conf.GoVersion = "go" + p.Module.GoVersion
	}
	pkg, _ = conf.Check(p.ImportPath, fset, files, nil) // report has the error
	return pkg, wrong
}

type imports func(path string) (*types.Package, error)

func (f imports) Import(path string) (*types.Package, error) { return f(path) }

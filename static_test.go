package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// staticBuild is how README says to build: with a C compiler at hand, plain
// `go build` would link the C library's resolver, dynamically, into package net.
const staticBuild = "CGO_ENABLED=0 go build ."

func TestTheBuildThatREADMENamesIsStatic(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "\n"+staticBuild+"\n") {
		t.Errorf("README.md does not say %s", staticBuild)
	}
	// What makes Go's linker link dynamically: C, or a symbol that a source imports.
	for _, p := range builtPackages(t) {
		if len(p.CgoFiles) > 0 {
			t.Errorf("%s is built with C: %v", p.ImportPath, p.CgoFiles)
		}
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(text, []byte("\n//go:cgo_import_dynamic ")) {
				t.Errorf("%s imports symbols of libraries: the binary would be linked dynamically", filepath.Join(p.Dir, name))
			}
		}
	}
	if sweep.All(t) {
		buildsStatically(t)
	}
}

func buildsStatically(t *testing.T) {
	env, command, _ := strings.Cut(staticBuild, " ")
	args := strings.Fields(command)
	binary := filepath.Join(t.TempDir(), "lutra")
	build := exec.Command(args[0], "build", "-ldflags=-w", "-o", binary, args[2]) // what debuggers read takes half the time
	build.Env = append(os.Environ(), env, "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the binary has a segment %v: it is linked dynamically", p.Type)
		}
	}
	if libraries, err := f.ImportedLibraries(); err == nil && len(libraries) > 0 {
		t.Errorf("the binary needs %q", libraries)
	}
}

// builtPackage is what go list tells of a package.
type builtPackage struct {
	ImportPath, Dir                               string
	GoFiles, CgoFiles, SFiles, HFiles, EmbedFiles []string
	Module                                        *struct{ Main bool }
}

// builtPackages are the packages of the program that staticBuild builds.
func builtPackages(t *testing.T) []builtPackage {
	t.Helper()
	packages, err := listBuilt()
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 100 {
		t.Fatalf("the program has %d packages: the test has lost sight of them", len(packages))
	}
	return packages
}

var listBuilt = sync.OnceValues(func() (packages []builtPackage, err error) {
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,CgoFiles,SFiles,HFiles,EmbedFiles,Module", ".")
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", list, err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p builtPackage
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
})

// TestEveryStepOfTheGateIsATargetOfMake runs no step, and reads the table of CONTRIBUTING.md.
// The folder hexagon is no reason to leave out the step of its name.
func TestEveryStepOfTheGateIsATargetOfMake(t *testing.T) {
	clienttest.Programs(t, "make")
	gate, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range regexp.MustCompile(`(?m)^step_(\w+)\(\)`).FindAllStringSubmatch(string(gate), -1) {
		list = append(list, m[1])
	}
	if len(list) < 10 {
		t.Fatalf(".ci/run has the steps %q: the test has lost sight of them", list)
	}
	contributing, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range list {
		if !strings.Contains(string(contributing), "\n| `"+step+"` |") {
			t.Errorf("CONTRIBUTING.md does not say what %s checks", step)
		}
		if out, err := exec.Command("make", "-n", step).CombinedOutput(); strings.TrimSpace(string(out)) != ".ci/run "+step {
			t.Errorf("make %s does %s %v", step, out, err)
		}
	}
}

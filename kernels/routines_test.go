package kernels

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
)

// A routine of assembly whose row is missing in its room's table would never run,
// and no test of products could tell.
func TestEveryRoutineOfAssemblyIsCalled(t *testing.T) {
	sweep.Full(t)
	sweep.NoEmulator(t)
	stub := regexp.MustCompile(`(?m)^//go:noescape\nfunc (\w+)\(`)
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	tiles, _ := filepath.Glob("../hexagon/hmx/tiles/*.go")
	if files = append(files, tiles...); len(tiles) == 0 {
		t.Skip("the sources are not beside this test binary")
	}
	routines, callers := map[string][]string{}, map[string]string{} // by folder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		room := filepath.Dir(file)
		found := stub.FindAllSubmatch(text, -1)
		for _, m := range found {
			routines[room] = append(routines[room], string(m[1]))
		}
		if len(found) == 0 {
			callers[room] += string(text)
		}
	}
	if len(routines) == 0 {
		t.Fatal("no routines were found")
	}
	for room, names := range routines {
		for _, name := range names {
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(callers[room]) {
				t.Errorf("nothing calls %s of %s", name, room)
			}
		}
	}
}

// Package clienttest finds what tests run clients with: a Python and its packages, and
// what a machine may lack. LUTRA_EXAMPLES=all says that nothing may be missing.
package clienttest

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// All reports whether every example must run, in full length and with all clients.
func All() bool { return os.Getenv("LUTRA_EXAMPLES") == "all" }

// Missing skips a test for want of what, or fails it where nothing may be missing.
func Missing(t testing.TB, what string) {
	t.Helper()
	if All() {
		t.Fatalf("LUTRA_EXAMPLES=all, and there is no %s", what)
	}
	t.Skipf("no %s", what)
}

// Programs sees that the named programs are there; where one is not, the test ends as
// Missing says.
func Programs(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			Missing(t, name)
		}
	}
}

// packagesOf says of a Python and a package, [2]string, whether it has it: starting one
// takes a tenth of a second.
var packagesOf sync.Map

// Python returns LUTRA_PYTHON or python3, which has the packages. Without them the test is
// skipped, or fails as Missing says.
func Python(t testing.TB, packages ...string) string {
	t.Helper()
	python := cmp.Or(os.Getenv("LUTRA_PYTHON"), "python3")
	for _, name := range packages {
		there, asked := packagesOf.Load([2]string{python, name})
		if !asked {
			there = installed(t.Context(), python, name, t.TempDir())
			packagesOf.Store([2]string{python, name}, there)
		}
		if !there.(bool) {
			Missing(t, "Python package "+name)
		}
	}
	return python
}

// installed reports whether a Python has a package. It asks in an empty folder and apart from the
// environment, since Python takes any folder that it sees there, such as one of Go code, for a package
// of that name.
func installed(ctx context.Context, python, name, empty string) bool {
	cmd := exec.CommandContext(ctx, python, "-I", "-c", `import sys
from importlib.util import find_spec
found = find_spec(sys.argv[1])
sys.exit(found is None or found.origin is None)`, name)
	cmd.Dir = empty
	return cmd.Run() == nil
}

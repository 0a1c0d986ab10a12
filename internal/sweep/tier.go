package sweep

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func full() bool {
	return os.Getenv("LUTRA_TESTS") == "all" || os.Getenv("LUTRA_SWEEPS") == "all"
}

// Full skips t unless LUTRA_TESTS=all, as the gate sets it: t takes long, and quicker tests run the same code.
func Full(t testing.TB) {
	t.Helper()
	if !full() {
		t.Skip("LUTRA_TESTS is not all")
	}
}

// Quick tells whether tests that say Full are left out.
func Quick() bool { return !full() }

// Cases returns all where tests that say Full run, and some elsewhere: of cases that are much alike, some
// reach all the code. Unlike Of, it returns all in each step of the gate, under emulators too.
func Cases(some, all int) int {
	if full() {
		return all
	}
	return some
}

// Hexagon skips t where Full does or a program is missing that builds for Hexagon or emulates it.
// LUTRA_REQUIRE=hexagon, as the gate's step hexagon sets it, says that t runs and that no program may be missing.
func Hexagon(t testing.TB, programs ...string) {
	t.Helper()
	required := strings.Contains(os.Getenv("LUTRA_REQUIRE"), "hexagon")
	if !required {
		Full(t)
	}
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil && required {
			t.Fatal(err)
		} else if err != nil {
			t.Skipf("there is no %s (Debian: qemu-user clang-19 lld-19 make gcc)", name)
		}
	}
}

// NoRace skips t where the race detector is on: t adds no meeting of goroutines to what other tests have.
func NoRace(t testing.TB) {
	t.Helper()
	if race {
		t.Skip("not for the race detector")
	}
}

// NoEmulator skips t where LUTRA_EMULATED is set: t computes nothing that kernels of another processor compute otherwise.
func NoEmulator(t testing.TB) {
	t.Helper()
	if os.Getenv("LUTRA_EMULATED") != "" {
		t.Skip("not for an emulated processor")
	}
}

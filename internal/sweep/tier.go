package sweep

import (
	"os"
	"testing"
)

// Full skips t unless LUTRA_TESTS=all, as the gate sets it: t takes long, and quicker tests run the same code.
func Full(t testing.TB) {
	t.Helper()
	if os.Getenv("LUTRA_TESTS") != "all" && os.Getenv("LUTRA_SWEEPS") != "all" {
		t.Skip("LUTRA_TESTS is not all")
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

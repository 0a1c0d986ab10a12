// Package sweep says which tests run where, and how far they go. Tests that walk more cases than a change
// is likely to need (mutations of files, histories) walk a part that reaches all the code; the gate walks
// them all (.ci/fresh). Tests that take long run in the gate alone, or not under its race detector and emulators.
package sweep

import (
	"os"
	"runtime/debug"
	"sync"
	"testing"
)

// What tests make is soon let go of. Collecting it as often as a program does takes a fifth of the work, and of some
// packages half.
func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// All tells whether LUTRA_SWEEPS=all; where not, t walks a Part.
func All(t testing.TB) bool {
	t.Helper()
	if os.Getenv("LUTRA_SWEEPS") == "all" {
		return true
	}
	Part(t, "LUTRA_SWEEPS is not all")
	return false
}

// Of returns all where All, and some elsewhere.
func Of(t testing.TB, some, all int) int {
	t.Helper()
	if some == all || All(t) {
		return all
	}
	return some
}

var said sync.Map // by [2]string, a test and why

// Part has t's log say, once, that t leaves cases out, and why. The gate reads it
// (.ci/skipped), to know what it has yet to walk.
func Part(t testing.TB, why string) {
	t.Helper()
	if _, before := said.LoadOrStore([2]string{t.Name(), why}, true); !before {
		t.Log("walks a part:", why)
	}
}

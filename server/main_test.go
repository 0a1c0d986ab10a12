package server

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/lutra-lm/lutra/internal/cpulimit"
)

// TestMain collects garbage less often than a program would: what a test makes is soon let go of.
func TestMain(m *testing.M) {
	cpulimit.OnWait = func() { panic("something is waited for within a place of cpulimit") }
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

package server

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often than a program would: what a test makes is soon let go of.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

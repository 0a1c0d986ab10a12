package jinja

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often than a program would: texts that end at their limit
// take half of the work otherwise.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

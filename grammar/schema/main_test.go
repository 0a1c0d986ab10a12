package schema

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often than a program would: grammars take a fifth of the work
// otherwise.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

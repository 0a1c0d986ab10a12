package tokenizer

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often than a program would: texts of a million tokens take a
// fifth of the work otherwise.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

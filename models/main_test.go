package models

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often than a program would: the models that tests make are soon
// let go of.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

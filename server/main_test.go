package server

import (
	"os"
	"testing"

	"github.com/lutra-lm/lutra/internal/cpulimit"
)

func TestMain(m *testing.M) {
	cpulimit.OnWait = func() { panic("something is waited for within a place of cpulimit") }
	os.Exit(m.Run())
}

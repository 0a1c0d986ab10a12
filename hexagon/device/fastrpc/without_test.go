//go:build !fastrpc

package fastrpc

import (
	"strings"
	"testing"
)

func TestWithoutItsTagOpenSaysHowToBuild(t *testing.T) {
	if _, err := Open(Options{}); err == nil || !strings.Contains(err.Error(), "-tags fastrpc") {
		t.Error(err)
	}
}

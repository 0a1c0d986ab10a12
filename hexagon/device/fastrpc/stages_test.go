//go:build fastrpc

package fastrpc

import (
	"strings"
	"testing"
)

func TestAStartThatFailsOnTheDSPNamesItsPart(t *testing.T) {
	for code, want := range map[int32]string{4<<16 | 2: "starting: having TCM and the tile unit failed with 0x40002 (AEE_ENOMEMORY)", 2: "starting failed with 0x2 (AEE_ENOMEMORY)"} {
		if err := check(StepStart, code); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%#x is %v, not %q", code, err, want)
		}
	}
}

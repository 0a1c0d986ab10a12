package cpu

import (
	"encoding/hex"
	"testing"
)

// The bytes are as the SDM has them (vol. 1, §18.2): palette, 16-bit widths from 16 on, rows from 48 on.
func TestSizesOfTilesLieWhereTheProcessorReadsThem(t *testing.T) {
	var s TileSizes
	s.Set(0, 16, 64)
	s.Set(7, 3, 32)
	const want = "01000000000000000000000000000000" + "40000000000000000000000000002000" + "00000000000000000000000000000000" + "10000000000000030000000000000000"
	if got := hex.EncodeToString(s[:]); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

package hexagon

import (
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
)

func TestWhatIsReservedLiesInOneMapping(t *testing.T) {
	a := arena{end: device.TCMBytes}
	for _, n := range []int{1, device.MappingBytes - device.TCMBytes - 2*device.Align, 100, 300, device.MappingBytes, 5} {
		at := uint64(a.reserve(n))
		if at%device.Align != 0 || at/device.MappingBytes != (at+uint64(n)-1)/device.MappingBytes || at+uint64(n) > a.end {
			t.Errorf("%d bytes at %#x of %#x", n, at, a.end)
		}
	}
	if want := uint64(3*device.MappingBytes + device.Align); a.end != want || a.largest != device.MappingBytes {
		t.Errorf("it ends at %#x, want %#x; the largest part has %d bytes", a.end, want, a.largest)
	}
}

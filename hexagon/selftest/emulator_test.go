package selftest_test

import (
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/device/qemu"
	"github.com/lutra-lm/lutra/hexagon/selftest"
	"github.com/lutra-lm/lutra/internal/sweep"
)

func TestTheEmulatedChipPasses(t *testing.T) {
	sweep.Hexagon(t, "qemu-hexagon")
	r := run(t, selftest.Options{Backend: "hexagon-qemu", Open: func(bytes int, step func(string)) (device.Device, error) {
		step("starting")
		return qemu.Open(qemu.Options{Memory: bytes})
	}})
	if !r.Verdict.OK {
		t.Fatalf("%q: %q", r.Verdict.Text, r.Verdict.Faults)
	}
	if _, counted := r.Time(selftest.Lookups, 0); !counted || r.Device.Source == "" || r.Device.Contexts != qemu.DefaultWorkers {
		t.Errorf("%+v, %+v", r.Device, r.Times)
	}
}

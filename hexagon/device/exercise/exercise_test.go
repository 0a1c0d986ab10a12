package exercise

import (
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/kernels/cpu"
)

func TestEveryPacketIsTakenAndWritesItsOwnOperands(t *testing.T) {
	memory := cpu.Aligned[uint8](Memory)
	for _, op := range device.Ops() {
		g := New(uint64(op), memory)
		for range 40 {
			p := g.Of(op)
			if p.Op != op || p.Check(memory) != device.StatusOK {
				t.Fatalf("%v: %v is refused with %d", op, p, p.Check(memory))
			}
			tcm, ddr := g.Ends()
			if tcm > 4<<20 {
				t.Errorf("%v: operands reach to %d in TCM", op, tcm)
			}
			for _, w := range Written(p) {
				if op != device.OpExpTable && (w[0] < device.TCMBytes && w[0]+w[1] > int(tcm) || w[0] >= device.TCMBytes && w[0]+w[1] > int(ddr)) {
					t.Errorf("%v: %v writes %v, after its operands at %d and %d", op, p, w, tcm, ddr)
				}
			}
			if len(Written(p)) == 0 && op != device.OpPing {
				t.Errorf("%v writes nothing", op)
			}
		}
	}
}

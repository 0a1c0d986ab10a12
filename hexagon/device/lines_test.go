package device_test

import (
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/device/exercise"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// All that packets touch after TCM lies in the lines that Touched names, however many packets there are. Only streamed operands lie
// in lines that are streamed. No part lies in two mappings or meets another of its kind.
func TestTouchedNamesEachLineOfEveryPacket(t *testing.T) {
	const size = 2*device.MappingBytes + exercise.Memory
	g := exercise.New(3, make([]byte, exercise.Memory))
	for _, n := range []int{1, 3, 40, 256} {
		for range sweep.Cases(5, 20) {
			packets := make([]device.Packet, n)
			for i := range packets {
				packets[i] = g.Packet()
				operands, _ := packets[i].Operands(size)
				for _, o := range operands { // each somewhere else, in any mapping
					at := slices.Index(packets[i].Args[:], o.Offset)
					if moved := packets[i]; at >= 0 && o.Offset >= device.TCMBytes {
						moved.Args[at] += uint32(g.IntN(3))*device.MappingBytes + uint32(g.IntN(1<<20))&^(1<<17-1)
						if _, status := moved.Operands(size); status == device.StatusOK {
							packets[i] = moved
						}
					}
				}
			}
			lines := device.Touched(packets, size)
			if len(lines) > device.MaxLines {
				t.Fatalf("%d packets touch %d parts", n, len(lines))
			}
			for i, l := range lines {
				if l.From%device.LineBytes != 0 || l.End%device.LineBytes != 0 || l.From >= l.End || l.From < device.TCMBytes || l.End > size || l.From/device.MappingBytes != (l.End-1)/device.MappingBytes {
					t.Fatalf("a part is from %#x to %#x", l.From, l.End)
				}
				if i > 0 && lines[i-1].Streamed == l.Streamed && lines[i-1].End > l.From {
					t.Fatalf("parts meet at %#x", l.From)
				}
			}
			for _, p := range packets {
				operands, _ := p.Operands(size)
				for _, o := range operands {
					if o.Offset < device.TCMBytes {
						continue
					}
					from, end := int(o.Offset), int(uint64(o.Offset)+o.Size())
					for _, l := range lines {
						if l.Streamed == (o.Rule&device.Streamed != 0) && l.From <= from && from < l.End {
							from = l.End
						}
					}
					if from < end {
						t.Fatalf("of %d packets, %v's %q from %#x to %#x is not touched at %#x", n, p.Op, o.Name, o.Offset, end, from)
					}
				}
			}
		}
	}
}

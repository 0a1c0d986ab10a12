package exercise

import "github.com/lutra-lm/lutra/hexagon/device"

// memory is the largest that packets address: what Check takes lies in it.
const memory = 1<<32 - device.Align

// Written says where a packet that Check takes may write: offsets and sizes, scratch first.
func Written(p device.Packet) [][2]int { return append(Scratch(p), written(p, 0)...) }

// Scratch is what a packet that Check takes leaves undefined: offsets and sizes.
func Scratch(p device.Packet) [][2]int { return written(p, device.Scratch) }

func written(p device.Packet, scratch device.Rule) (of [][2]int) {
	operands, _ := p.Operands(memory)
	for _, o := range operands {
		if o.Rule&device.Writes == 0 || o.Rule&device.Scratch != scratch {
			continue
		}
		for i := range o.Rows {
			of = append(of, [2]int{int(o.Offset) + int(i*o.Stride), int(o.Bytes)})
		}
	}
	return of
}

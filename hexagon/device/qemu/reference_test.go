package qemu

import (
	"encoding/binary"

	"github.com/lutra-lm/lutra/hexagon/device"
)

// scratchAt is where the scratch of multiplications lies, behind what tests have in TCM.
const scratchAt = 4 << 20

// multiplication makes an OpGEMV of tiles of some strips and columns.
func multiplication(y, codes, tables, n, scales, offsets, m, k, bits, group, a, b uint32) device.Packet {
	tile := (m/128*7 + k/256*5 + bits + group/32) % 4
	return packet(device.OpGEMV, y, codes, tables, n, scales, offsets, m, k, bits, group, a, b, scratchAt, device.GEMVTiles(int(1+tile%3), 5), 256*(1+tile/2))
}

// arena hands out operands.
type arena struct {
	memory []byte
	next   uint32
}

func (a *arena) alloc(bytes, align int) uint32 {
	at := (a.next + uint32(align) - 1) &^ (uint32(align) - 1)
	a.next = at + uint32(bytes)
	return at
}

func (a *arena) int16s(v []int16) uint32 {
	at := a.alloc(2*len(v), device.Align)
	copy(device.View[int16](a.memory, at, len(v)), v)
	return at
}

func (a *arena) uint16s(v []uint16) uint32 {
	at := a.alloc(2*len(v), device.Align)
	copy(device.View[uint16](a.memory, at, len(v)), v)
	return at
}

func (a *arena) bytes(v []byte, align int) uint32 {
	at := a.alloc(len(v), align)
	copy(a.memory[at:], v)
	return at
}

// packet makes one of its arguments.
func packet(op device.Op, args ...uint32) device.Packet {
	p := device.Packet{Op: op}
	copy(p.Args[:], args)
	return p
}

// decode reads a packet from bytes, as fuzzers have them.
func decode(b []byte) device.Packet {
	var p device.Packet
	var words [64]byte
	copy(words[:], b)
	p.Op = device.Op(binary.LittleEndian.Uint32(words[:]))
	for i := range p.Args {
		p.Args[i] = binary.LittleEndian.Uint32(words[4+4*i:])
	}
	return p
}

func encode(p device.Packet) []byte {
	return device.AppendRequest(nil, 0, 0, 0, []device.Packet{p})[16:]
}

package qemu

import (
	"encoding/binary"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
)

// define runs a packet that Check takes as hexagon/ref defines it.
func define(memory []byte, p device.Packet) {
	a := p.Args
	n := func(i int) int { return int(a[i]) }
	matrix := func(rows, codes, scales, offsets, k, bits, group int) *ref.Matrix {
		w := &ref.Matrix{K: n(k), Bits: n(bits), Group: n(group)}
		w.Codes = memory[a[codes]:][:rows*w.K*w.Bits/8]
		if w.Group != w.K {
			w.Scales = device.View[int16](memory, a[scales], rows*w.K/w.Group)
			if a[offsets] != 0 {
				w.Offsets = device.View[int16](memory, a[offsets], rows*w.K/w.Group)
			}
		}
		return w
	}
	switch p.Op {
	case device.OpCopy:
		copy(memory[a[0]:][:a[2]], memory[a[1]:][:a[2]])
	case device.OpCollect:
		for i, from := range device.View[uint32](memory, a[1], n(2)) {
			copy(memory[a[0]+uint32(i)*a[5]:][:a[3]], memory[from+a[4]:])
		}
	case device.OpPrecompute:
		make := ref.Precompute
		if a[4] == 1 {
			make = ref.PrecomputeBytes
		}
		for i := range a[1] {
			tables, sums := tables(memory, a[0], i, n(3), a[4] == 1)
			make(tables, sums, device.View[int16](memory, a[2]+2*i*a[3], n(3)))
		}
	case device.OpGEMV:
		w := matrix(n(6), 1, 4, 5, 7, 8, 9)
		if w.InBytes = p.InBytes(); w.InBytes && n(8) == 4 {
			w.Values = memory[a[11]:][:16]
		}
		for i := range a[3] {
			tables, sums := tables(memory, a[2], i, n(7), w.InBytes)
			ref.GEMV(device.View[int32](memory, a[0]+4*i*a[6], n(6)), w, tables, sums, int32(a[10]), int32(a[11]))
		}
	case device.OpDequant:
		w, v := matrix((n(5)+p.DequantStrips())*layout.Strip, 1, 2, 3, 8, 9, 10), []uint16(nil)
		if w.InBytes = p.InBytes(); n(9) < 8 {
			v = device.View[uint16](memory, a[4], 1<<a[9])
		}
		for i := range p.DequantStrips() {
			ref.Dequant(device.View[uint16](memory, a[0]+uint32(i*n(7)*8*2048), n(7)*8*1024), w, v, n(5)+i, n(6), n(7))
		}
	case device.OpVLUT16:
		ref.VLUT16(device.View[uint16](memory, a[0], n(2)*256), memory[a[1]:][:n(2)*layout.SuperGroupBytes], device.View[uint16](memory, a[3], 16))
	case device.OpTileMul:
		runs := []ref.Run{{Act: device.View[uint16](memory, a[1], n(7)*n(3)*1024), Wgt: device.View[uint16](memory, a[2], n(8)*n(3)*1024), K: n(3)}}
		if a[6] > 0 {
			runs = append(runs, ref.Run{Act: device.View[uint16](memory, a[4], n(7)*n(6)*1024), Wgt: device.View[uint16](memory, a[5], n(8)*n(6)*1024), K: n(6)})
		}
		ref.TileMul(device.View[uint16](memory, a[0], n(7)*n(8)*1024), runs, n(7), n(8), layout.F32(uint16(a[9])))
	case device.OpByteTiles:
		ref.ByteTiles(memory[a[0]:][:n(2)*4*layout.TileBytes], memory[a[1]:][:n(2)*layout.BlockBytes(n(3))], n(2), n(3))
	case device.OpTileMulBytes:
		ref.TileMulBytes(memory[a[0]:], memory[a[1]:], memory[a[2]:], n(3), n(4), n(5))
	case device.OpExpTable:
		ref.ExpTable(device.View[uint16](memory, a[0], 1<<15))
	case device.OpSoftmax:
		ref.Softmax(device.View[uint16](memory, a[0], n(4)*n(5)*1024), device.View[uint16](memory, a[1], 1<<15),
			device.View[uint32](memory, a[2], n(4)*32*ref.StateWords), device.View[uint16](memory, a[3], n(4)*1024), n(4), n(5))
	case device.OpSoftCap:
		ref.SoftCap(device.View[uint16](memory, a[0], n(2)*1024), device.View[uint16](memory, a[1], 1<<15))
	default:
		device.RunRows(p, func(offset uint32, n int) []byte { return memory[offset:][:n] })
	}
}

// tables returns those of row i of an OpPrecompute, and its sums.
func tables(memory []byte, at, i uint32, k int, bytes bool) ([]int16, []int32) {
	at += i * uint32(device.TableStride(k, bytes))
	size := device.TableBytes(k, bytes)
	return device.View[int16](memory, at, size/2), device.View[int32](memory, at+uint32(size), k/32)
}

// scratch is what a packet that Check takes leaves undefined: offsets and sizes.
func scratch(p device.Packet) [][2]int {
	n := func(i int) int { return int(p.Args[i]) }
	switch p.Op {
	case device.OpGEMV:
		strips, workers := p.GEMVTiles()
		return [][2]int{{n(12), device.GEMVScratch(n(3), n(6), n(7), n(8), n(9), n(5) != 0, strips, n(14), workers)}}
	case device.OpTileMul:
		return [][2]int{{n(10), device.ColumnsBytes}}
	case device.OpTileMulBytes:
		return [][2]int{{n(6), device.ByteColumnsBytes}}
	}
	return nil
}

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

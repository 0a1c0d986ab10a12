package device

import (
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
)

// Define runs a packet that Check takes over the whole memory, TCM included, as hexagon/ref defines it:
// slowly, and obviously right. Devices are held against it.
func Define(memory []byte, p Packet) {
	a := p.Args
	n := func(i int) int { return int(a[i]) }
	matrix := func(rows, codes, scales, offsets, k, bits, group int) *ref.Matrix {
		w := &ref.Matrix{K: n(k), Bits: n(bits), Group: n(group)}
		w.Codes = memory[a[codes]:][:rows*w.K*w.Bits/8]
		if w.Group != w.K {
			w.Scales = View[int16](memory, a[scales], rows*w.K/w.Group)
			if a[offsets] != 0 {
				w.Offsets = View[int16](memory, a[offsets], rows*w.K/w.Group)
			}
		}
		return w
	}
	switch p.Op {
	case OpCopy:
		copy(memory[a[0]:][:a[2]], memory[a[1]:][:a[2]])
	case OpCollect:
		for i, from := range View[uint32](memory, a[1], n(2)) {
			copy(memory[a[0]+uint32(i)*a[5]:][:a[3]], memory[from+a[4]:])
		}
	case OpPrecompute:
		make := ref.Precompute
		if a[4] == 1 {
			make = ref.PrecomputeBytes
		}
		for i := range a[1] {
			tables, sums := rowTables(memory, a[0], i, n(3), a[4] == 1)
			make(tables, sums, View[int16](memory, a[2]+2*i*a[3], n(3)))
		}
	case OpGEMV:
		w := matrix(n(6), 1, 4, 5, 7, 8, 9)
		if w.InBytes = p.InBytes(); w.InBytes && n(8) == 4 {
			w.Values = memory[a[11]:][:16]
		}
		for i := range a[3] {
			tables, sums := rowTables(memory, a[2], i, n(7), w.InBytes)
			ref.GEMV(View[int32](memory, a[0]+4*i*a[6], n(6)), w, tables, sums, int32(a[10]), int32(a[11]))
		}
	case OpDequant:
		w, v := matrix((n(5)+p.DequantStrips())*layout.Strip, 1, 2, 3, 8, 9, 10), []uint16(nil)
		if w.InBytes = p.InBytes(); n(9) < 8 {
			v = View[uint16](memory, a[4], 1<<a[9])
		}
		for i := range p.DequantStrips() {
			ref.Dequant(View[uint16](memory, a[0]+uint32(i*n(7)*8*2048), n(7)*8*1024), w, v, n(5)+i, n(6), n(7))
		}
	case OpVLUT16:
		ref.VLUT16(View[uint16](memory, a[0], n(2)*256), memory[a[1]:][:n(2)*layout.SuperGroupBytes], View[uint16](memory, a[3], 16))
	case OpTileMul:
		runs := []ref.Run{{Act: View[uint16](memory, a[1], n(7)*n(3)*1024), Wgt: View[uint16](memory, a[2], n(8)*n(3)*1024), K: n(3)}}
		if a[6] > 0 {
			runs = append(runs, ref.Run{Act: View[uint16](memory, a[4], n(7)*n(6)*1024), Wgt: View[uint16](memory, a[5], n(8)*n(6)*1024), K: n(6)})
		}
		ref.TileMul(View[uint16](memory, a[0], n(7)*n(8)*1024), runs, n(7), n(8), layout.F32(uint16(a[9])))
	case OpByteTiles:
		ref.ByteTiles(memory[a[0]:][:n(2)*4*layout.TileBytes], memory[a[1]:][:n(2)*layout.BlockBytes(n(3))], n(2), n(3))
	case OpTileMulBytes:
		ref.TileMulBytes(memory[a[0]:], memory[a[1]:], memory[a[2]:], n(3), n(4), n(5))
	case OpExpTable:
		ref.ExpTable(View[uint16](memory, a[0], 1<<15))
	case OpSoftmax:
		ref.Softmax(View[uint16](memory, a[0], n(4)*n(5)*1024), View[uint16](memory, a[1], 1<<15),
			View[uint32](memory, a[2], n(4)*32*ref.StateWords), View[uint16](memory, a[3], n(4)*1024), n(4), n(5))
	case OpSoftCap:
		ref.SoftCap(View[uint16](memory, a[0], n(2)*1024), View[uint16](memory, a[1], 1<<15))
	default:
		RunRows(p, func(offset uint32, n int) []byte { return memory[offset:][:n] })
	}
}

// rowTables returns the tables of row i of an OpPrecompute, and its sums.
func rowTables(memory []byte, at, i uint32, k int, bytes bool) ([]int16, []int32) {
	at += i * uint32(TableStride(k, bytes))
	size := TableBytes(k, bytes)
	return View[int16](memory, at, size/2), View[int32](memory, at+uint32(size), k/32)
}

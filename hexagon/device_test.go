package hexagon

import (
	"context"
	"unsafe"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
)

// refDevice computes with the definitions of the operations, one packet after the
// other. It is slow and obviously right.
type refDevice struct {
	mem []byte
}

func newRefDevice(bytes int) (device.Device, error) {
	return &refDevice{mem: alignedBytes(bytes)}, nil
}

func newGoDevice(bytes int) (device.Device, error) { return device.NewGo(nil, bytes) }

func alignedBytes(n int) []byte {
	b := make([]byte, n+device.Align)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (device.Align - 1)
	return b[skip : skip+n]
}

func (d *refDevice) Name() string   { return "ref" }
func (d *refDevice) Memory() []byte { return d.mem }
func (d *refDevice) Close() error   { return nil }

func (d *refDevice) Run(ctx context.Context, packets []device.Packet) (device.Counts, error) {
	for i := range packets {
		p := &packets[i]
		if s := p.Check(d.mem); s != device.StatusOK {
			return device.Counts{}, &device.PacketError{Index: i, Op: p.Op, Status: s}
		}
		d.compute(p)
	}
	return device.Counts{}, ctx.Err()
}

func numbers[T int16 | uint16 | int32 | uint32](mem []byte, at uint32, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(&mem[at])), n)
}

func (d *refDevice) compute(p *device.Packet) {
	a, m := &p.Args, d.mem
	n := func(i int) int { return int(a[i]) }
	matrix := func(codes, scales, offsets, rows, k, bits, group int) *ref.Matrix {
		w := &ref.Matrix{Codes: m[codes:][:rows*k*bits/8], K: k, Bits: bits, Group: group}
		if group != k {
			w.Scales = numbers[int16](m, uint32(scales), rows*k/group)
			if offsets != 0 {
				w.Offsets = numbers[int16](m, uint32(offsets), rows*k/group)
			}
		}
		return w
	}
	tables := func(at, row uint32, k int, bytes bool) ([]int16, []int32) {
		at += row * uint32(device.TableStride(k, bytes))
		size := device.TableBytes(k, bytes)
		return numbers[int16](m, at, size/2), numbers[int32](m, at+uint32(size), k/32)
	}
	tiles := func(at uint32, n int) []uint16 { return numbers[uint16](m, at, n*1024) }
	switch p.Op {
	case device.OpCopy:
		copy(m[a[0]:][:a[2]], m[a[1]:])
	case device.OpCollect:
		for i, from := range numbers[uint32](m, a[1], n(2)) {
			copy(m[a[0]+uint32(i)*a[5]:][:a[3]], m[from+a[4]:])
		}
	case device.OpPrecompute:
		make := ref.Precompute
		if a[4] == 1 {
			make = ref.PrecomputeBytes
		}
		for i := range a[1] {
			tables, sums := tables(a[0], i, n(3), a[4] == 1)
			make(tables, sums, numbers[int16](m, a[2]+2*i*a[3], n(3)))
		}
	case device.OpGEMV:
		w := matrix(n(1), n(4), n(5), n(6), n(7), n(8), n(9))
		if w.InBytes = p.InBytes(); w.InBytes && n(8) == 4 {
			w.Values = m[a[11]:][:16]
		}
		for i := range a[3] {
			tables, sums := tables(a[2], i, n(7), w.InBytes)
			ref.GEMV(numbers[int32](m, a[0]+4*i*a[6], n(6)), w, tables, sums, int32(a[10]), int32(a[11]))
		}
	case device.OpDequant:
		w := matrix(n(1), n(2), n(3), (n(5)+p.DequantStrips())*layout.Strip, n(8), n(9), n(10))
		v := []uint16(nil)
		if w.InBytes = p.InBytes(); n(9) < 8 {
			v = numbers[uint16](m, a[4], 1<<n(9))
		}
		for i := range p.DequantStrips() {
			ref.Dequant(tiles(a[0]+uint32(i*8*n(7)*layout.TileBytes), 8*n(7)), w, v, n(5)+i, n(6), n(7))
		}
	case device.OpVLUT16:
		ref.VLUT16(numbers[uint16](m, a[0], 256*n(2)), m[a[1]:], numbers[uint16](m, a[3], 16))
	case device.OpTileMul:
		rows, cols := n(7), n(8)
		runs := []ref.Run{{Act: tiles(a[1], rows*n(3)), Wgt: tiles(a[2], cols*n(3)), K: n(3)}}
		if a[6] > 0 {
			runs = append(runs, ref.Run{Act: tiles(a[4], rows*n(6)), Wgt: tiles(a[5], cols*n(6)), K: n(6)})
		}
		ref.TileMul(tiles(a[0], rows*cols), runs, rows, cols, layout.F32(uint16(a[9])))
	case device.OpByteTiles:
		ref.ByteTiles(m[a[0]:][:n(2)*4*layout.TileBytes], m[a[1]:], n(2), n(3))
	case device.OpTileMulBytes:
		ref.TileMulBytes(m[a[0]:], m[a[1]:], m[a[2]:], n(3), n(4), n(5))
	case device.OpExpTable:
		ref.ExpTable(numbers[uint16](m, a[0], 1<<15))
	case device.OpSoftmax:
		rows := n(4)
		ref.Softmax(tiles(a[0], rows*n(5)), numbers[uint16](m, a[1], 1<<15), numbers[uint32](m, a[2], rows*32*ref.StateWords), tiles(a[3], rows), rows, n(5))
	case device.OpSoftCap:
		ref.SoftCap(tiles(a[0], n(2)), numbers[uint16](m, a[1], 1<<15))
	}
}

package device

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/layout"
)

// Packets of a layer of 1024×1024 weights, on one core.
func BenchmarkPackets(b *testing.B) {
	d, err := NewGo(nil, TCMBytes+8<<20)
	if err != nil {
		b.Fatal(err)
	}
	const m, k = 1024, 1024
	tcm, ddr := new(uint32), new(uint32)
	*tcm, *ddr = ExpTableBytes, TCMBytes
	copy(View[uint16](d.memory, 0, ExpTableBytes/2), powers())
	g := filler{rand.New(rand.NewPCG(1, 5)), d.memory}
	codes, scales, offsets := g.bytes(ddr, m*k/2), g.bytes(ddr, m*k/32*2), g.bytes(ddr, m*k/32*2)
	const rows = 4
	x, y, tables, v := g.bytes(ddr, 2*k*rows), g.bytes(ddr, 4*m*rows), g.bytes(tcm, rows*TableStride(k, false)), g.halves(ddr, 16)
	tiles := g.bytes(tcm, k/layout.Block*8*layout.TileBytes)
	act, out := g.halves(tcm, k/32*tile), g.bytes(tcm, 4*layout.TileBytes)
	states, groups := g.bytes(ddr, 32*StateBytes), g.bytes(ddr, 64*layout.SuperGroupBytes)
	b.Run("precompute", func(b *testing.B) {
		run(b, d, Packet{OpPrecompute, [15]uint32{tables, 1, x, k}}, k/4)
	})
	for _, bits := range []uint32{1, 2, 4} {
		for _, group := range []uint32{k, 64} {
			for _, n := range []uint32{1, rows} {
				b.Run(fmt.Sprintf("gemv W%d group %d rows %d", bits, group, n), func(b *testing.B) {
					run(b, d, Packet{OpGEMV, [15]uint32{y, codes, tables, n, scales, offsets, m, k, bits, group, 1, 1, 4 << 20, 4, k}}, m*k/4*int(bits*n))
				})
			}
			b.Run(fmt.Sprintf("dequant W%d group %d", bits, group), func(b *testing.B) {
				run(b, d, Packet{OpDequant, [15]uint32{tiles, codes, scales, offsets, v, 0, 0, k / 64, k, bits, group}}, 128*k)
			})
		}
	}
	b.Run("vlut16", func(b *testing.B) { run(b, d, Packet{OpVLUT16, [15]uint32{tiles, groups, 64, v}}, 64*256) })
	b.Run("tilemul", func(b *testing.B) {
		run(b, d, Packet{OpTileMul, [15]uint32{out, tiles, act, k / 32, 0, 0, 0, 4, 1, 0x3c00, 6 << 20}}, 128*32*k)
	})
	b.Run("softmax", func(b *testing.B) {
		for r := range uint32(32) {
			copy(View[uint32](d.memory, states+24*r, 2), []uint32{0xfbff, 256})
		}
		run(b, d, Packet{OpSoftmax, [15]uint32{tiles, 0, states, out, 1, 8}}, 32*256)
	})
}

// run reports the time of one of the packet's items.
func run(b *testing.B, d *Go, p Packet, items int) {
	for b.Loop() {
		if _, err := d.Run(b.Context(), []Packet{p}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(items), "ns/item")
}

// filler hands out random operands.
type filler struct {
	*rand.Rand
	memory []byte
}

func (f filler) bytes(next *uint32, n int) uint32 {
	at := *next
	*next += uint32(n+Align-1) / Align * Align
	for i := range n {
		f.memory[int(at)+i] = byte(f.Uint32())
	}
	return at
}

// halves are n fp16 of at most 1.
func (f filler) halves(next *uint32, n int) uint32 {
	at := f.bytes(next, 2*n)
	for i := range n {
		View[uint16](f.memory, at, n)[i] &= 0xbbff
	}
	return at
}

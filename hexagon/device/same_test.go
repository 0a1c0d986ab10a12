package device

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

const testMemory = TCMBytes + 1<<20

// define computes a packet by its definition.
func define(g *Go, p Packet) {
	a := &p.Args
	switch p.Op {
	case OpCopy:
		copy(g.memory[a[0]:][:a[2]], g.memory[a[1]:])
	case OpCollect:
		for i := range a[2] {
			copy(g.memory[a[0]+i*a[5]:][:a[3]], g.memory[view[uint32](g, a[1], int(a[2]))[i]+a[4]:])
		}
	case OpPrecompute:
		k := int(a[3])
		make := ref.Precompute
		if a[4] == 1 {
			make = ref.PrecomputeBytes
		}
		for i := range a[1] {
			tables, sums := g.tables(a[0], i, k, a[4] == 1)
			make(tables, sums, view[int16](g, a[2]+2*i*a[3], k))
		}
	case OpGEMV:
		m, k := int(a[6]), int(a[7])
		w := g.matrix(&p, a[1], a[4], a[5], m, k, a[8], a[9])
		for i := range a[3] {
			tables, sums := g.tables(a[2], i, k, w.InBytes)
			ref.GEMV(view[int32](g, a[0]+4*i*a[6], m), &w, tables, sums, int32(a[10]), int32(a[11]))
		}
	case OpDequant:
		strip, strips, first, n := int(a[5]), p.DequantStrips(), int(a[6]), int(a[7])
		w := g.matrix(&p, a[1], a[2], a[3], (strip+strips)*layout.Strip, int(a[8]), a[9], a[10])
		for i := range strips {
			ref.Dequant(view[uint16](g, a[0]+uint32(i*8*n*layout.TileBytes), 8*n*tile), &w, g.table(&p), strip+i, first, n)
		}
	case OpVLUT16:
		n := int(a[2])
		ref.VLUT16(view[uint16](g, a[0], n*layout.SuperGroup), g.memory[a[1]:][:n*layout.SuperGroupBytes], view[uint16](g, a[3], 16))
	case OpTileMul:
		rows, cols, k0, k1 := int(a[7]), int(a[8]), int(a[3]), int(a[6])
		runs := []ref.Run{{Act: view[uint16](g, a[1], rows*k0*tile), Wgt: view[uint16](g, a[2], cols*k0*tile), K: k0}}
		if k1 > 0 {
			runs = append(runs, ref.Run{Act: view[uint16](g, a[4], rows*k1*tile), Wgt: view[uint16](g, a[5], cols*k1*tile), K: k1})
		}
		ref.TileMul(view[uint16](g, a[0], rows*cols*tile), runs, rows, cols, layout.F32(uint16(a[9])))
	case OpByteTiles:
		n, bits := int(a[2]), int(a[3])
		ref.ByteTiles(g.bytes(a[0], n*4*layout.TileBytes), g.bytes(a[1], n*layout.BlockBytes(bits)), n, bits)
	case OpTileMulBytes:
		k, rows, cols := int(a[3]), int(a[4]), int(a[5])
		ref.TileMulBytes(g.bytes(a[0], rows*cols*BytePlanes*layout.TileBytes), g.bytes(a[1], rows*k*layout.TileBytes), g.bytes(a[2], cols*k*ByteLanesBytes), k, rows, cols)
	case OpExpTable:
		ref.ExpTable(view[uint16](g, a[0], ExpTableBytes/2))
	case OpSoftmax:
		rows, keys := int(a[4]), int(a[5])
		ref.Softmax(view[uint16](g, a[0], rows*keys*tile), view[uint16](g, a[1], ExpTableBytes/2),
			view[uint32](g, a[2], rows*layout.Tile*ref.StateWords), view[uint16](g, a[3], rows*tile), rows, keys)
	case OpSoftCap:
		ref.SoftCap(view[uint16](g, a[0], int(a[2])*tile), view[uint16](g, a[1], ExpTableBytes/2))
	default:
		g.rowOps(p) // is the definition
	}
}

// generator makes packets that devices take, and their operands, one after the other
// in each of the memories. TCM begins with a table of powers.
type generator struct {
	*rand.Rand
	tcm, ddr uint32 // what is next
	memory   []byte
}

const expTable = 0

func newGenerator(seed uint64, memory []byte) *generator {
	copy(View[uint16](memory, expTable, ExpTableBytes/2), powers())
	return &generator{rand.New(rand.NewPCG(seed, 5)), ExpTableBytes, TCMBytes, memory}
}

// bytes are n random ones.
func (g *generator) bytes(next *uint32, n int) uint32 {
	at := *next
	*next += uint32(n+Align-1) / Align * Align
	for i := range n {
		g.memory[int(at)+i] = byte(g.Uint32())
	}
	return at
}

// operands copies what the last packet may read and write to another memory.
func (g *generator) operands(dst []byte) {
	copy(dst[ExpTableBytes:], g.memory[ExpTableBytes:g.tcm])
	copy(dst[TCMBytes:], g.memory[TCMBytes:g.ddr])
}

// halves are n fp16 of any kind.
func (g *generator) halves(next *uint32, n int) uint32 {
	at := g.bytes(next, 2*n)
	g.tame(at, n)
	return at
}

func (g *generator) tame(at uint32, n int) {
	huge := g.IntN(3) == 0
	for i, v := range View[uint16](g.memory, at, n) {
		if !huge {
			v = v&0x83ff | uint16(0x2c+g.IntN(20))<<8&0x7c00
		}
		if v&0x7c00 == 0x7c00 {
			v &^= 0x4000
		}
		View[uint16](g.memory, at, n)[i] = v
	}
}

func (g *generator) packet() Packet {
	g.tcm, g.ddr = ExpTableBytes, TCMBytes
	tcm, ddr := &g.tcm, &g.ddr
	any := ddr
	if g.IntN(2) == 0 {
		any = tcm
	}
	some := func(most int) int { return 1 + g.IntN(most) }
	word := func(n ...int) (a [15]uint32) {
		for i, v := range n {
			a[i] = uint32(v)
		}
		return a
	}
	bits := 1 << g.IntN(4)
	m, k, n := layout.Strip*some(3), layout.TableCols*some(3), some(4)
	bytes := bits == 8 || bits == 4 && g.IntN(2) == 0
	groups, form := []int{32, 64, 128, k}, 0
	if bytes {
		groups, form = groups[:3], 1
	}
	group := groups[g.IntN(len(groups))]
	matrix := func(at *uint32) (codes, scales, offsets int) {
		codes = int(g.bytes(at, m*k/8*bits))
		if group != k {
			scales = int(g.bytes(at, m*k/group*2))
			if g.IntN(2) == 0 {
				offsets = int(g.bytes(ddr, m*k/group*2))
			}
		}
		return
	}
	switch op := Op(1 + g.IntN(int(numOps)-1)); op {
	case OpCopy:
		n := Align * some(20)
		return Packet{op, word(int(g.bytes(any, n)), int(g.bytes(ddr, n)), n)}
	case OpPrecompute:
		return Packet{op, word(int(g.bytes(any, n*TableStride(k, bytes))), n, int(g.bytes(ddr, 2*k*n)), k, form)}
	case OpGEMV:
		codes, scales, offsets := matrix(ddr)
		p := Packet{op, word(int(g.bytes(ddr, 4*m*n)), codes, int(g.bytes(tcm, n*TableStride(k, bytes))), n, scales, offsets,
			m, k, bits, group, some(2), g.IntN(MaxB+1), 0, some(3), layout.TableCols*some(3))}
		switch {
		case bits == 8:
			p.Args[10], p.Args[11] = 1, layout.ByteZero
		case bytes:
			p.Args[10], p.Args[11] = 0, g.bytes(ddr, 16)
		}
		*tcm = (*tcm + Page - 1) &^ (Page - 1)
		p.Args[13] = GEMVTiles(int(p.Args[13]), some(2))
		strips, workers := p.GEMVTiles()
		p.Args[12] = g.bytes(tcm, GEMVScratch(n, m, k, bits, group, offsets != 0, strips, int(p.Args[14]), workers))
		return p
	case OpDequant:
		codes, scales, offsets := matrix(any)
		first := g.IntN(k / layout.Block)
		n := some(k/layout.Block - first)
		strip := g.IntN(m / layout.Strip)
		more := g.IntN(m/layout.Strip - strip)
		return Packet{op, word(int(g.bytes(tcm, (1+more)*n*8*layout.TileBytes)), codes, scales, offsets, int(g.halves(ddr, 1<<bits)),
			strip, first, n, k, bits, group, form, more)}
	case OpVLUT16:
		n := some(40)
		groups := g.bytes(ddr, n*layout.SuperGroupBytes)
		for i := range n {
			g.tame(groups+uint32(i*layout.SuperGroupBytes), 8)
		}
		return Packet{op, word(int(g.bytes(any, n*2*layout.SuperGroup)), int(groups), n, int(g.halves(ddr, 16)))}
	case OpTileMul:
		rows, cols, k0, k1 := some(3), some(2), some(4), g.IntN(3)
		*tcm = (*tcm + layout.TileBytes - 1) &^ (layout.TileBytes - 1)
		return Packet{op, word(int(g.bytes(tcm, rows*cols*layout.TileBytes)), int(g.halves(tcm, rows*k0*tile)), int(g.halves(tcm, cols*k0*tile)), k0,
			int(g.halves(tcm, rows*k1*tile)), int(g.halves(tcm, cols*k1*tile)), k1, rows, cols, int(layout.F16(float32(g.NormFloat64()))), int(g.bytes(tcm, ColumnsBytes)))}
	case OpByteTiles:
		n, bits := some(3), 1<<g.IntN(3)
		return Packet{op, word(int(g.bytes(any, n*4*layout.TileBytes)), int(g.bytes(any, n*layout.BlockBytes(bits))), n, bits)}
	case OpTileMulBytes: // random bytes go beyond what is summed in one piece
		k, rows, cols := some(20), some(2), some(2)
		*tcm = (*tcm + layout.TileBytes - 1) &^ (layout.TileBytes - 1)
		return Packet{op, word(int(g.bytes(tcm, rows*cols*BytePlanes*layout.TileBytes)), int(g.bytes(tcm, rows*k*layout.TileBytes)), int(g.bytes(tcm, cols*k*ByteLanesBytes)),
			k, rows, cols, int(g.bytes(tcm, ByteColumnsBytes)))}
	case OpExpTable:
		return Packet{op, word(1 << 20 * some(7))}
	case OpSoftmax:
		rows, keys := some(2), some(3)
		p := Packet{op, word(int(g.halves(tcm, rows*keys*tile)), expTable, int(g.bytes(ddr, rows*layout.Tile*StateBytes)),
			int(g.bytes(tcm, rows*layout.TileBytes)), rows, keys)}
		states := View[uint32](g.memory, p.Args[2], rows*layout.Tile*ref.StateWords)
		for r := range rows * layout.Tile {
			states[r*ref.StateWords] = 0xfbff
			if g.IntN(2) == 0 {
				states[r*ref.StateWords] = uint32(layout.F16(float32(g.NormFloat64())))
			}
			if g.IntN(8) > 0 {
				states[r*ref.StateWords+ref.StateValid] = uint32(g.IntN(keys*layout.Tile + 2))
			}
			if g.IntN(4) == 0 {
				states[r*ref.StateWords+ref.StateValid] = 0
			}
		}
		return p
	case OpSoftCap:
		n := some(3)
		return Packet{op, word(int(g.halves(tcm, n*tile)), expTable, n)}
	case OpCollect:
		n, size, add := some(9), Align*some(4), Align*g.IntN(3)
		stride := size + Align*g.IntN(3)
		pieces := g.bytes(ddr, 8*size)
		table := g.bytes(ddr, 4*n)
		for i := range n {
			View[uint32](g.memory, table, n)[i] = pieces - uint32(add) + uint32(g.IntN(8)*Align)
		}
		if g.tcm += Align; pieces < TCMBytes+uint32(add) {
			return Packet{Op: OpPing}
		}
		return Packet{op, word(int(g.bytes(tcm, n*stride)), int(table), n, size, add, stride)}
	default:
		return g.rows(op, word)
	}
}

// rows makes a packet of an operation on rows, or one of no operands.
func (g *generator) rows(op Op, word func(n ...int) [15]uint32) Packet {
	some := func(most int) int { return 1 + g.IntN(most) }
	at := func(bytes int) int { return int(g.bytes(&g.ddr, bytes)) }
	n, parts, width, one := some(4), some(3), 32*some(4), int(math.Float32bits(1))
	stride := 4*parts*width + Align*g.IntN(2)
	rows := func() int { return at(n * stride) }
	switch op {
	case OpRMSNorm:
		return Packet{op, word(rows(), rows(), at(4*width), n, parts, width, stride, stride, one, one)}
	case OpLayerNorm:
		return Packet{op, word(rows(), rows(), at(4*width), at(4*width), n, width, stride, stride, one, one)}
	case OpQuantize:
		return Packet{op, word(at(2*n*512), at(4*n), rows(), n, 512, width, stride)}
	case OpScale:
		return Packet{op, word(rows(), rows(), at(4*n), at(4*width), 0, n, width, stride, stride)}
	case OpAdd:
		return Packet{op, word(rows(), rows(), n, width, stride, stride, one)}
	case OpRope:
		return Packet{op, word(rows(), at(8*n*width), n, parts, width, 32, 1<<g.IntN(5), stride)}
	case OpGLU:
		return Packet{op, word(rows(), rows(), rows(), n, width, stride, stride, g.IntN(7), one, one, one)}
	case OpToTiles:
		step := width / 32 * layout.TileBytes
		return Packet{op, word(at(parts*step), rows(), n, parts, width, stride, step, g.IntN(29), g.IntN(2), one)}
	case OpFromTiles:
		return Packet{op, word(rows(), at(width/32*layout.TileBytes), at(128), n, width, stride, g.IntN(29), at(128), g.IntN(2))}
	case OpRowsToTiles:
		n += 30 * g.IntN(2)
		return Packet{op, word(at(64*width*2*((n+31)/32)), at(4*n), at(n*stride), n, 2*width, width, stride)}
	case OpTilesToRows:
		n += 30 * g.IntN(2)
		stride, width = 2*stride, 2*width
		return Packet{op, word(at(n*stride), at(width/32*((n+31)/32)*layout.TileBytes), at(4*n), at(4*width), at(4*width), n, width, stride, one, g.IntN(2))}
	case OpMul:
		return Packet{op, word(rows(), rows(), rows(), n, width, stride, stride, stride)}
	case OpConv:
		taps := 1 + some(MaxTaps-1)
		return Packet{op, word(rows(), rows(), at(4*taps*width), at(4*(taps-1)*width), n, width, stride, stride, taps, g.IntN(2))}
	case OpGates:
		return Packet{op, word(rows(), rows(), at(12*width), n, width, stride, stride)}
	case OpDelta:
		share, from := some(2), 0
		state, size := 4*parts*share*width*width, 4*parts*share*width
		if g.IntN(2) == 0 {
			from = at(state)
		}
		return Packet{op, word(at(n*size), at(n*(size+8*parts*width)), at(n*256), from, at(state), n, parts, share, width, size, size+8*parts*width, 256, 3, 20, g.IntN(2))}
	case OpFold:
		return Packet{op, word(at(128), at(layout.Tile*StateBytes), at(layout.Tile*StateBytes), g.IntN(2))}
	}
	return Packet{Op: op}
}

func TestTheGoDeviceComputesTheDefinitionsBits(t *testing.T) {
	threads := pool.New(2)
	defer threads.Close()
	for _, isa := range cpu.Supported() {
		for _, p := range []*pool.Pool{nil, threads} {
			d, err := NewGo(p, testMemory)
			if err != nil {
				t.Fatal(err)
			}
			want := over(newMemory(testMemory), nil)
			g := newGenerator(uint64(isa), d.memory)
			copy(want.memory, d.memory)
			restore := cpu.Override(isa)
			for range 100 {
				p := g.packet()
				g.operands(want.memory) // the rest is the same since the last packet
				if _, err := d.Run(t.Context(), []Packet{p}); err != nil {
					t.Fatalf("%v: %v", p, err)
				}
				define(want, p)
				if !bytes.Equal(d.memory, want.memory) {
					t.Fatalf("%v: %v: the memory differs", isa, p)
				}
			}
			restore()
		}
	}
}

func TestADeviceBesideAnotherComputesItsBitsInATCMOfItsOwn(t *testing.T) {
	d, err := NewGo(nil, testMemory)
	if err != nil {
		t.Fatal(err)
	}
	want := newMemory(testMemory)
	beside := NewBeside(d, nil)
	g := newGenerator(3, d.memory)
	for range 100 {
		p := g.packet()
		copy(want, d.memory)
		copy(beside.tcm, d.memory)
		for _, run := range []*Go{over(want, nil), beside} {
			if _, err := run.Run(t.Context(), []Packet{p}); err != nil {
				t.Fatalf("%v: %v", p, err)
			}
		}
		if !bytes.Equal(beside.tcm, want[:TCMBytes]) || !bytes.Equal(d.memory[TCMBytes:], want[TCMBytes:]) {
			t.Fatalf("%v: the memory differs", p)
		}
		copy(want, d.memory)
		if beside.tcm[expTable] ^= 1; !bytes.Equal(d.memory, want) {
			t.Fatalf("%v: the TCM is shared", p)
		}
	}
}

// Whatever a packet says, the device refuses it or computes something within its memory.
func FuzzPackets(f *testing.F) {
	memory := newMemory(testMemory)
	g := newGenerator(1, memory)
	for range 50 {
		p := g.packet()
		b := binary.LittleEndian.AppendUint32(nil, uint32(p.Op))
		for _, a := range p.Args {
			b = binary.LittleEndian.AppendUint32(b, a)
		}
		f.Add(b)
	}
	d := over(memory, nil)
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) >= 64 {
			p := Packet{Op: Op(binary.LittleEndian.Uint32(b))}
			for i := range p.Args {
				p.Args[i] = binary.LittleEndian.Uint32(b[4+4*i:])
			}
			b = b[64:]
			if p.Op == OpTileMul && p.Args[7] < MaxTiles && p.Args[8] < MaxTiles && p.Args[3] < MaxTiles && p.Args[6] < MaxTiles &&
				uint64(p.Args[7])*uint64(p.Args[8])*uint64(p.Args[3]+p.Args[6]) > 1000 {
				continue // correct, but slow
			}
			if _, err := d.Run(t.Context(), []Packet{p}); err != nil && p.Check(memory) == StatusOK {
				t.Fatalf("%v: %v", p, err)
			}
		}
	})
}

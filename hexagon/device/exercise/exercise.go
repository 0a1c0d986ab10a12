// Package exercise makes packets of every operation at random, with operands that mean something, and says what
// a packet writes: for tests of devices, and for the self-test of one.
package exercise

import (
	"math"
	"math/rand/v2"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
)

// Generator makes packets that devices take, and their operands in a memory, one after the other in TCM and
// after it. Both begin anew with each packet.
type Generator struct {
	*rand.Rand
	tcm, ddr uint32 // what is next
	memory   []byte
}

// Table is where the table of powers of two lies, which OpSoftmax reads: at the beginning of TCM.
const Table = 0

const tile = layout.TileBytes / 2 // numbers

// Memory is the memory that a generator's packets need.
const Memory = device.TCMBytes + 1<<20

// New returns a generator over a memory, and puts the table there.
func New(seed uint64, memory []byte) *Generator {
	ref.ExpTable(device.View[uint16](memory, Table, device.ExpTableBytes/2))
	return &Generator{rand.New(rand.NewPCG(seed, 5)), device.ExpTableBytes, device.TCMBytes, memory}
}

// Memory is where the operands lie.
func (g *Generator) Memory() []byte { return g.memory }

// Ends returns where the last packet's operands end in TCM, after the table, and in DDR.
func (g *Generator) Ends() (tcm, ddr uint32) { return g.tcm, g.ddr }

// bytes are n random ones.
func (g *Generator) bytes(next *uint32, n int) uint32 {
	at := *next
	*next += uint32(n+device.Align-1) / device.Align * device.Align
	for i := range n {
		g.memory[int(at)+i] = byte(g.Uint32())
	}
	return at
}

// Operands copies what the last packet may read and write to another memory.
func (g *Generator) Operands(dst []byte) {
	copy(dst[device.ExpTableBytes:], g.memory[device.ExpTableBytes:g.tcm])
	copy(dst[device.TCMBytes:], g.memory[device.TCMBytes:g.ddr])
}

// floats are n finite numbers in DDR, some of them zeros, ones and subnormal.
func (g *Generator) floats(n int) int {
	at := g.bytes(&g.ddr, 4*n)
	for i := range n {
		f := float32(g.NormFloat64() * 4)
		if g.IntN(16) == 0 {
			f = []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1e-42, -1e-42}[g.IntN(6)]
		}
		device.View[float32](g.memory, at, n)[i] = f
	}
	return int(at)
}

// halves are n fp16 of any kind.
func (g *Generator) halves(next *uint32, n int) uint32 {
	at := g.bytes(next, 2*n)
	g.tame(at, n)
	return at
}

func (g *Generator) tame(at uint32, n int) {
	huge := g.IntN(3) == 0
	for i, v := range device.View[uint16](g.memory, at, n) {
		if !huge {
			v = v&0x83ff | uint16(0x2c+g.IntN(20))<<8&0x7c00
		}
		if v&0x7c00 == 0x7c00 {
			v &^= 0x4000
		}
		device.View[uint16](g.memory, at, n)[i] = v
	}
}

// words are a packet's arguments.
func words(n ...int) (a [15]uint32) {
	for i, v := range n {
		a[i] = uint32(v)
	}
	return a
}

// Packet makes a packet of any operation.
func (g *Generator) Packet() device.Packet { return g.Of(device.Op(1 + g.IntN(len(device.Ops())))) }

// Of makes a packet of an operation.
func (g *Generator) Of(op device.Op) device.Packet {
	g.tcm, g.ddr = device.ExpTableBytes, device.TCMBytes
	tcm, ddr := &g.tcm, &g.ddr
	any := ddr
	if g.IntN(2) == 0 {
		any = tcm
	}
	some := func(most int) int { return 1 + g.IntN(most) }
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
	switch op {
	case device.OpCopy:
		n := device.Align * some(20)
		return device.Packet{Op: op, Args: words(int(g.bytes(any, n)), int(g.bytes(ddr, n)), n)}
	case device.OpPrecompute:
		return device.Packet{Op: op, Args: words(int(g.bytes(any, n*device.TableStride(k, bytes))), n, int(g.bytes(ddr, 2*k*n)), k, form)}
	case device.OpGEMV:
		codes, scales, offsets := matrix(ddr)
		p := device.Packet{Op: op, Args: words(int(g.bytes(ddr, 4*m*n)), codes, int(g.bytes(tcm, n*device.TableStride(k, bytes))), n, scales, offsets,
			m, k, bits, group, some(2), g.IntN(device.MaxB+1), 0, some(3), layout.TableCols*some(3))}
		switch {
		case bits == 8:
			p.Args[10], p.Args[11] = 1, layout.ByteZero
		case bytes:
			p.Args[10], p.Args[11] = 0, g.bytes(ddr, 16)
		}
		*tcm = (*tcm + device.Page - 1) &^ (device.Page - 1)
		p.Args[13] = device.GEMVTiles(int(p.Args[13]), some(2))
		strips, workers := p.GEMVTiles()
		p.Args[12] = g.bytes(tcm, device.GEMVScratch(n, m, k, bits, group, offsets != 0, strips, int(p.Args[14]), workers))
		return p
	case device.OpDequant:
		codes, scales, offsets := matrix(any)
		first := g.IntN(k / layout.Block)
		n := some(k/layout.Block - first)
		strip := g.IntN(m / layout.Strip)
		more := g.IntN(m/layout.Strip - strip)
		return device.Packet{Op: op, Args: words(int(g.bytes(tcm, (1+more)*n*8*layout.TileBytes)), codes, scales, offsets, int(g.halves(ddr, 1<<bits)),
			strip, first, n, k, bits, group, form, more)}
	case device.OpVLUT16:
		n := some(40)
		groups := g.bytes(ddr, n*layout.SuperGroupBytes)
		for i := range n {
			g.tame(groups+uint32(i*layout.SuperGroupBytes), 8)
		}
		return device.Packet{Op: op, Args: words(int(g.bytes(any, n*2*layout.SuperGroup)), int(groups), n, int(g.halves(ddr, 16)))}
	case device.OpTileMul:
		rows, cols, k0, k1 := some(3), some(2), some(4), g.IntN(3)
		*tcm = (*tcm + layout.TileBytes - 1) &^ (layout.TileBytes - 1)
		return device.Packet{Op: op, Args: words(int(g.bytes(tcm, rows*cols*layout.TileBytes)), int(g.halves(tcm, rows*k0*tile)), int(g.halves(tcm, cols*k0*tile)), k0,
			int(g.halves(tcm, rows*k1*tile)), int(g.halves(tcm, cols*k1*tile)), k1, rows, cols, int(layout.F16(float32(g.NormFloat64()))), int(g.bytes(tcm, device.ColumnsBytes)))}
	case device.OpByteTiles:
		n, bits := some(3), 1<<g.IntN(3)
		return device.Packet{Op: op, Args: words(int(g.bytes(any, n*4*layout.TileBytes)), int(g.bytes(any, n*layout.BlockBytes(bits))), n, bits)}
	case device.OpTileMulBytes: // random bytes go beyond what is summed in one piece
		k, rows, cols := some(20), some(2), some(2)
		*tcm = (*tcm + layout.TileBytes - 1) &^ (layout.TileBytes - 1)
		return device.Packet{Op: op, Args: words(int(g.bytes(tcm, rows*cols*device.BytePlanes*layout.TileBytes)), int(g.bytes(tcm, rows*k*layout.TileBytes)), int(g.bytes(tcm, cols*k*device.ByteLanesBytes)),
			k, rows, cols, int(g.bytes(tcm, device.ByteColumnsBytes)))}
	case device.OpExpTable:
		return device.Packet{Op: op, Args: words(1 << 20 * some(7))}
	case device.OpSoftmax:
		return g.softmax(some(2), some(3))
	case device.OpSoftCap:
		n := some(3)
		return device.Packet{Op: op, Args: words(int(g.halves(tcm, n*tile)), Table, n)}
	case device.OpCollect:
		n, size, add := some(9), device.Align*some(4), device.Align*g.IntN(3)
		stride := size + device.Align*g.IntN(3)
		g.bytes(ddr, 2*device.Align) // add is counted from before the pieces
		pieces := g.bytes(ddr, 8*size)
		table := g.bytes(ddr, 4*n)
		for i := range n {
			device.View[uint32](g.memory, table, n)[i] = pieces - uint32(add) + uint32(g.IntN(8)*device.Align)
		}
		return device.Packet{Op: op, Args: words(int(g.bytes(tcm, n*stride)), int(table), n, size, add, stride)}
	default:
		return g.rows(op)
	}
}

// softmax makes an OpSoftmax, of rows that have seen keys before and of others.
func (g *Generator) softmax(rows, keys int) device.Packet {
	p := device.Packet{Op: device.OpSoftmax, Args: words(int(g.halves(&g.tcm, rows*keys*tile)), Table, int(g.bytes(&g.ddr, rows*layout.Tile*device.StateBytes)),
		int(g.bytes(&g.tcm, rows*layout.TileBytes)), rows, keys)}
	states := device.View[uint32](g.memory, p.Args[2], rows*layout.Tile*ref.StateWords)
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
}

// rows makes a packet of an operation on rows, or one of no operands.
func (g *Generator) rows(op device.Op) device.Packet {
	some := func(most int) int { return 1 + g.IntN(most) }
	at := func(bytes int) int { return int(g.bytes(&g.ddr, bytes)) }
	n, parts, width, one := some(4), some(3), 32*some(4), int(math.Float32bits(1))
	stride := 4*parts*width + device.Align*g.IntN(2)
	rows := func() int { return g.floats(n * stride / 4) }
	halves := func(n int) int { return int(g.halves(&g.ddr, n)) }
	sums := func() int { // of weights, the largest of which is 1
		at := g.floats(layout.Tile)
		for i, f := range device.View[float32](g.memory, uint32(at), layout.Tile) {
			device.View[float32](g.memory, uint32(at), layout.Tile)[i] = 1 + float32(math.Abs(float64(f)))
		}
		return at
	}
	states := func() int { // whose factors are at most 1
		at := at(layout.Tile * device.StateBytes)
		for i := range layout.Tile {
			s := device.View[uint32](g.memory, uint32(at), layout.Tile*ref.StateWords)[i*ref.StateWords:]
			s[ref.StateMax], s[2] = uint32(layout.F16(float32(g.NormFloat64()))), uint32(layout.F16(g.Float32()))
			s[ref.StateSumHigh] &= 0xff
		}
		return at
	}
	switch op {
	case device.OpRMSNorm:
		return device.Packet{Op: op, Args: words(rows(), rows(), g.floats(width), n, parts, width, stride, stride, one, one)}
	case device.OpLayerNorm:
		return device.Packet{Op: op, Args: words(rows(), rows(), g.floats(width), g.floats(width), n, width, stride, stride, one, one)}
	case device.OpQuantize:
		return device.Packet{Op: op, Args: words(at(2*n*512), at(4*n), rows(), n, 512, width, stride)}
	case device.OpScale:
		return device.Packet{Op: op, Args: words(rows(), at(n*stride), g.floats(n), g.floats(width), 0, n, width, stride, stride)}
	case device.OpAdd:
		return device.Packet{Op: op, Args: words(rows(), rows(), n, width, stride, stride, one)}
	case device.OpRope:
		return device.Packet{Op: op, Args: words(rows(), g.floats(2*n*width), n, parts, width, 32, 1<<g.IntN(5), stride)}
	case device.OpGLU:
		return device.Packet{Op: op, Args: words(rows(), rows(), rows(), n, width, stride, stride, g.IntN(7), one, one, one)}
	case device.OpToTiles:
		step := width / 32 * layout.TileBytes
		return device.Packet{Op: op, Args: words(halves(parts*step/2), rows(), n, parts, width, stride, step, g.IntN(29), g.IntN(2), one)}
	case device.OpFromTiles:
		return device.Packet{Op: op, Args: words(rows(), halves(width*layout.Tile), sums(), n, width, stride, g.IntN(29), at(128), g.IntN(2))}
	case device.OpRowsToTiles:
		n += 30 * g.IntN(2)
		return device.Packet{Op: op, Args: words(at(64*width*2*((n+31)/32)), at(4*n), g.floats(n*stride/4), n, 2*width, width, stride)}
	case device.OpTilesToRows:
		n += 30 * g.IntN(2)
		stride, width = 2*stride, 2*width
		return device.Packet{Op: op, Args: words(g.floats(n*stride/4), halves(width/32*((n+31)/32)*layout.TileBytes/2), g.floats(n), g.floats(width), g.floats(width), n, width, stride, one, g.IntN(2))}
	case device.OpMul:
		return device.Packet{Op: op, Args: words(rows(), rows(), rows(), n, width, stride, stride, stride)}
	case device.OpConv:
		taps := 1 + some(device.MaxTaps-1)
		return device.Packet{Op: op, Args: words(rows(), rows(), g.floats(taps*width), g.floats((taps-1)*width), n, width, stride, stride, taps, g.IntN(2))}
	case device.OpGates:
		return device.Packet{Op: op, Args: words(rows(), rows(), g.floats(3*width), n, width, stride, stride)}
	case device.OpDelta:
		share, from := some(2), 0
		state, size := 4*parts*share*width*width, 4*parts*share*width
		if g.IntN(2) == 0 {
			from = g.floats(state / 4)
		}
		return device.Packet{Op: op, Args: words(at(n*size), g.floats(n*(size+8*parts*width)/4), g.floats(n*64), from, at(state), n, parts, share, width, size, size+8*parts*width, 256, 3, 20, g.IntN(2))}
	case device.OpFold:
		return device.Packet{Op: op, Args: words(sums(), states(), states(), g.IntN(2))}
	}
	return device.Packet{Op: op}
}

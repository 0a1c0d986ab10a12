package device

import (
	"encoding/binary"
	"math"

	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
)

// Check says whether a device with that memory takes the packet. Every device has this
// rule. It looks at bits, group, A, B and scale first, then at counts, and at operands last;
// of the memory's content only at the table of an OpCollect.
func (p Packet) Check(memory []byte) Status {
	if p.Op == 0 || p.Op >= numOps {
		return StatusOp
	}
	c := p.check(len(memory))
	if p.Op == OpCollect && c.status == StatusOK {
		for i := range p.Args[2] {
			at := uint64(binary.LittleEndian.Uint32(memory[p.Args[1]+4*i:])) + uint64(p.Args[4])
			c.require(at >= TCMBytes && at <= math.MaxUint32, StatusRange)
			c.memory(uint32(at), uint64(p.Args[3]))
			c.apart(p.Args[0], uint64(p.Args[2])*uint64(p.Args[5]), uint32(at), uint64(p.Args[3]))
		}
	}
	return c.status
}

// TCMEnd returns where what a packet that Check takes reads and writes of TCM ends.
func (p Packet) TCMEnd(memory int) int { return int(p.check(memory).end) }

func (p Packet) check(memory int) checker {
	c := checker{operands{size: uint64(memory)}}
	a := &p.Args
	switch p.Op {
	case OpPing:
	case OpCopy:
		c.sizes(a[2] > 0 && a[2]%Align == 0)
		c.memory(a[0], uint64(a[2]))
		c.memory(a[1], uint64(a[2]))
		c.apart(a[0], uint64(a[2]), a[1], uint64(a[2]))
	case OpPrecompute:
		c.number(a[4] <= 1)
		c.count(a[1], 1, MaxRows)
		n, k := uint64(a[1]), c.dim(a[3], layout.TableCols)
		c.memory(a[0], n*uint64(TableStride(int(k), a[4] == 1)))
		c.memory(a[2], 2*k*n)
	case OpGEMV:
		c.gemv(&p)
	case OpDequant:
		c.dequant(&p)
	case OpVLUT16:
		c.count(a[2], 1, math.MaxUint32)
		c.memory(a[0], uint64(a[2])*2*layout.SuperGroup)
		c.operand(a[1], uint64(a[2])*layout.SuperGroupBytes, 16, c.size)
		c.memory(a[3], 32)
	case OpTileMul:
		c.tileMul(a)
	case OpByteTiles:
		c.number(a[3] == 1 || a[3] == 2 || a[3] == 4)
		c.count(a[2], 1, MaxDim/layout.Block)
		c.memory(a[0], uint64(a[2])*4*layout.TileBytes)
		c.memory(a[1], uint64(a[2])*layout.LineBytes*8*uint64(a[3]))
	case OpTileMulBytes:
		k, rows, cols := c.tiles(a[3], 1), c.tiles(a[4], 1), c.tiles(a[5], 1)
		out := rows * cols * BytePlanes * layout.TileBytes
		c.tcm(a[0], out, layout.TileBytes)
		c.factor(a[0], out, a[1], rows*k*layout.TileBytes, layout.TileBytes)
		c.factor(a[0], out, a[2], cols*k*ByteLanesBytes, ByteLanesBytes)
		c.factor(a[0], out, a[6], ByteColumnsBytes, ByteColumnsBytes)
	case OpCollect:
		n, size, stride := c.tiles(a[2], 1), uint64(a[3]), uint64(a[5])
		c.sizes(size > 0 && size%Align == 0 && stride%Align == 0 && stride >= size && stride <= TCMBytes)
		c.memory(a[0], n*stride)
		c.memory(a[1], 4*n)
		c.require(a[1] >= TCMBytes, StatusRange)
		c.apart(a[0], n*stride, a[1], 4*n)
	case OpExpTable:
		c.tcm(a[0], ExpTableBytes, ExpTableBytes)
	case OpSoftmax:
		rows, keys := c.tiles(a[4], 1), c.tiles(a[5], 1)
		c.tcm(a[0], rows*keys*layout.TileBytes, Align)
		c.tcm(a[1], ExpTableBytes, ExpTableBytes)
		c.memory(a[2], rows*layout.Tile*StateBytes)
		c.tcm(a[3], rows*layout.TileBytes, Align)
	case OpSoftCap:
		n := c.tiles(a[2], 1)
		c.tcm(a[0], n*layout.TileBytes, Align)
		c.tcm(a[1], ExpTableBytes, ExpTableBytes)
	default:
		c.rowOps(p)
	}
	return c
}

// gemv checks an OpGEMV.
func (c *checker) gemv(p *Packet) {
	a := &p.Args
	bytes := p.InBytes()
	c.format(a[8], a[9], a[7], bytes)
	switch {
	case a[8] == 8:
		c.number(a[10] == 1 && a[11] == layout.ByteZero)
	case !bytes:
		c.number(a[10] == 1 || a[10] == 2)
		c.number(a[11] <= MaxB)
	}
	c.count(a[3], 1, MaxRows)
	n, m, k := uint64(a[3]), c.dim(a[6], layout.Strip), c.dim(a[7], layout.TableCols)
	strips, workers := p.GEMVTiles()
	c.count(uint32(strips), 1, MaxStrips)
	c.count(uint32(workers), 1, MaxWorkers)
	cols := c.dim(a[14], layout.TableCols)
	c.memory(a[0], 4*m*n)
	c.weights(a[1], a[4], a[5], m, k, a[8], a[9], TCMBytes)
	tables := n * uint64(TableStride(int(k), bytes))
	c.tcm(a[2], tables, Align)
	if bytes && a[8] == 4 {
		c.memory(a[11], 16)
	}
	scratch := gemvScratch(n*m, k, uint64(a[8]), uint64(a[9]), a[5], uint64(strips), cols, uint64(workers))
	c.tcm(a[12], scratch, Page)
	c.apart(a[12], scratch, a[0], 4*m*n)
	c.apart(a[12], scratch, a[2], tables)
}

// dequant checks an OpDequant.
func (c *checker) dequant(p *Packet) {
	a := &p.Args
	bytes := p.InBytes()
	c.format(a[9], a[10], a[8], bytes)
	c.number(a[11] == 0 || bytes && a[11] == 1)
	k := c.dim(a[8], layout.TableCols)
	c.count(a[5], 0, MaxDim/layout.Strip-1)
	c.count(a[12], 0, MaxDim/layout.Strip-1)
	c.count(a[7], 1, MaxDim/layout.Block)
	c.count(a[6], 0, MaxDim/layout.Block)
	c.sizes(uint64(a[6])+uint64(a[7]) <= k/layout.Block)
	c.memory(a[0], uint64(p.DequantStrips())*uint64(a[7])*8*layout.TileBytes)
	c.weights(a[1], a[2], a[3], uint64(int(a[5])+p.DequantStrips())*layout.Strip, k, a[9], a[10], 0)
	if a[9] != 8 {
		c.memory(a[4], 2<<(a[9]&7))
	}
}

// tileMul checks an OpTileMul.
func (c *checker) tileMul(a *[15]uint32) {
	c.number(a[9]>>16 == 0 && a[9]>>10&31 != 31)
	k0, k1 := c.tiles(a[3], 1), c.tiles(a[6], 0)
	rows, cols := c.tiles(a[7], 1), c.tiles(a[8], 1)
	out := rows * cols * layout.TileBytes
	c.tcm(a[0], out, layout.TileBytes)
	c.factor(a[0], out, a[1], rows*k0*layout.TileBytes, layout.TileBytes)
	c.factor(a[0], out, a[2], cols*k0*layout.TileBytes, layout.TileBytes)
	c.factor(a[0], out, a[10], ColumnsBytes, ColumnsBytes)
	if k1 > 0 {
		c.factor(a[0], out, a[4], rows*k1*layout.TileBytes, layout.TileBytes)
		c.factor(a[0], out, a[5], cols*k1*layout.TileBytes, layout.TileBytes)
	}
}

// DequantStrips returns how many strips an OpDequant makes tiles of.
func (p *Packet) DequantStrips() int { return int(p.Args[12]) + 1 }

// InBytes reports whether the codes of an OpGEMV or OpDequant stand in bytes.
func (p *Packet) InBytes() bool {
	a := &p.Args
	if p.Op == OpDequant {
		return a[9] == 8 || a[9] == 4 && a[11] == 1
	}
	return a[8] == 8 || a[8] == 4 && a[10] == 0
}

// rowOps checks the operations on rows of float32.
func (c *checker) rowOps(p Packet) {
	a := &p.Args
	vector := func(offset, n uint32) { c.memory(offset, 4*uint64(n)) }
	optional := func(offset, n uint32) {
		if offset != 0 {
			vector(offset, n)
		}
	}
	const states = layout.Tile * StateBytes
	switch p.Op {
	case OpRMSNorm:
		c.rows(a[3], a[4], a[5])
		c.floats(a[0], a[3], a[4], a[5], a[6])
		c.floats(a[1], a[3], a[4], a[5], a[7])
		optional(a[2], a[5])
	case OpLayerNorm:
		c.rows(a[4], 1, a[5])
		c.floats(a[0], a[4], 1, a[5], a[6])
		c.floats(a[1], a[4], 1, a[5], a[7])
		vector(a[2], a[5])
		vector(a[3], a[5])
	case OpQuantize:
		c.rows(a[3], 1, a[5])
		k := c.dim(a[4], layout.TableCols)
		c.sizes(a[5] <= a[4])
		c.memory(a[0], 2*k*uint64(a[3]))
		vector(a[1], a[3])
		c.floats(a[2], a[3], 1, a[5], a[6])
	case OpScale:
		c.rows(a[5], 1, a[6])
		c.floats(a[0], a[5], 1, a[6], a[7])
		c.floats(a[1], a[5], 1, a[6], a[8])
		vector(a[2], a[5])
		vector(a[3], a[6])
		optional(a[4], a[6])
	case OpAdd:
		c.rows(a[2], 1, a[3])
		c.floats(a[0], a[2], 1, a[3], a[4])
		c.floats(a[1], a[2], 1, a[3], a[5])
	case OpRope:
		c.rope(a)
	case OpGLU:
		c.number(a[7] <= ref.GLUErfAlone)
		if a[7] == ref.GLUClamped {
			c.number(a[8] < infinite && a[9]&^sign < infinite && a[10]&^sign < infinite)
		}
		c.rows(a[3], 1, a[4])
		c.floats(a[0], a[3], 1, a[4], a[5])
		c.floats(a[1], a[3], 1, a[4], a[6])
		c.floats(a[2], a[3], 1, a[4], a[6])
	case OpToTiles:
		c.rows(a[2], a[3], a[4])
		c.inTile(a[2], a[7])
		c.count(a[8], 0, 1)
		c.sizes(a[6]%Align == 0 && a[6] <= MaxStride)
		c.memory(a[0], (uint64(a[3])-1)*uint64(a[6])+uint64(a[4])/layout.Tile*layout.TileBytes)
		c.floats(a[1], a[2], a[3], a[4], a[5])
	case OpFromTiles:
		c.rows(a[3], 1, a[4])
		c.inTile(a[3], a[6])
		c.count(a[8], 0, 1)
		c.floats(a[0], a[3], 1, a[4], a[5])
		c.memory(a[1], uint64(a[4])/layout.Tile*layout.TileBytes)
		vector(a[2], layout.Tile)
		vector(a[7], layout.Tile)
	case OpRowsToTiles:
		c.rows(a[3], 1, a[5])
		k := c.dim(a[4], 2*layout.Tile)
		c.sizes(a[5] <= a[4])
		c.memory(a[0], 2*layout.Tile*k*tilesOf(a[3]))
		vector(a[1], a[3])
		c.floats(a[2], a[3], 1, a[5], a[6])
	case OpTilesToRows:
		c.rows(a[5], 1, a[6])
		m := c.dim(a[6], 2*layout.Tile)
		c.count(a[9], 0, 1)
		c.floats(a[0], a[5], 1, a[6], a[7])
		c.memory(a[1], m/layout.Tile*tilesOf(a[5])*layout.TileBytes)
		vector(a[2], a[5])
		vector(a[3], a[6])
		optional(a[4], a[6])
	case OpMul:
		c.rows(a[3], 1, a[4])
		c.floats(a[0], a[3], 1, a[4], a[5])
		c.floats(a[1], a[3], 1, a[4], a[6])
		c.floats(a[2], a[3], 1, a[4], a[7])
	case OpConv:
		c.count(a[8], 2, MaxTaps)
		c.rows(a[4], 1, a[5])
		c.floats(a[0], a[4], 1, a[5], a[6])
		c.floats(a[1], a[4], 1, a[5], a[7])
		c.memory(a[2], 4*uint64(a[8])*uint64(a[5]))
		c.memory(a[3], 4*(uint64(a[8])-1)*uint64(a[5]))
		c.count(a[9], 0, 1)
	case OpGates:
		c.rows(a[3], 1, a[4])
		c.floats(a[0], a[3], 1, a[4], a[5])
		c.floats(a[1], a[3], 1, a[4], a[6])
		c.memory(a[2], 12*uint64(a[4]))
	case OpDelta:
		c.delta(a)
	case OpFold:
		c.count(a[3], 0, 1)
		vector(a[0], layout.Tile)
		c.memory(a[1], states)
		if a[2] != 0 {
			c.memory(a[2], states)
		}
	}
}

// rope checks an OpRope.
func (c *checker) rope(a *[15]uint32) {
	c.rows(a[2], a[3], a[4])
	k := c.dim(a[5], 32)
	c.count(a[6], 1, MaxDim)
	c.sizes(a[6] < 32 && a[6]&(a[6]-1) == 0 || a[6] >= 32 && a[6]%32 == 0)
	c.sizes(a[5] <= a[4] && (a[6] < 32 || a[5] == 2*a[6]))
	c.floats(a[0], a[2], a[3], a[4], a[7])
	c.memory(a[1], 8*k*uint64(a[2]))
}

// delta checks an OpDelta.
func (c *checker) delta(a *[15]uint32) {
	c.rows(a[5], a[6], a[8])
	c.count(a[7], 1, MaxDim/32)
	heads, width := a[6]*a[7], uint64(a[8])
	c.sizes(uint64(a[6])*uint64(a[7]) <= MaxDim/32)
	c.count(a[12], 0, MaxDim)
	c.count(a[13], 0, MaxDim)
	c.count(a[14], 0, 1)
	c.floats(a[0], a[5], heads, a[8], a[9])
	c.floats(a[1], a[5], 2*a[6]+heads, a[8], a[10])
	c.floats(a[2], a[5], 1, max(a[12], a[13])+heads, a[11])
	if a[3] != 0 {
		c.memory(a[3], 4*uint64(heads)*width*width)
	}
	c.memory(a[4], 4*uint64(heads)*width*width)
}

// tilesOf returns the number of columns of tiles that have n rows.
func tilesOf(n uint32) uint64 { return (uint64(n) + layout.Tile - 1) / layout.Tile }

// rows checks the counts of rows, of their parts and of a part's numbers.
func (c *checker) rows(n, parts, width uint32) {
	c.count(n, 1, MaxRows)
	c.count(parts, 1, MaxDim/32)
	c.dim(width, 32)
}

// floats checks rows of float32 that are stride bytes apart.
func (c *checker) floats(offset, n, parts, width, stride uint32) {
	size := 4 * uint64(parts) * uint64(width)
	c.sizes(stride%Align == 0 && stride <= MaxStride && size <= uint64(stride))
	c.memory(offset, (uint64(n)-1)*uint64(stride)+size)
}

// Bits of float32.
const (
	sign     = 1 << 31
	infinite = 0x7f800000 // and NaN from there on
)

// inTile checks that rows first to first+n are a tile's.
func (c *checker) inTile(n, first uint32) {
	c.count(n, 1, layout.Tile)
	c.count(first, 0, layout.Tile-n)
}

// Sizes of what softmax reads.
const (
	StateBytes    = 6 * 4
	ExpTableBytes = 1 << 16 // and their alignment
)

// checker checks packets by their operations.
type checker struct{ operands }

// operands checks numbers and memory, and keeps the first thing that is wrong.
type operands struct {
	size   uint64 // of the memory
	end    uint64 // of the operands in TCM
	status Status
}

func (c *operands) require(ok bool, s Status) {
	if !ok && c.status == StatusOK {
		c.status = s
	}
}

func (c *operands) sizes(ok bool)  { c.require(ok, StatusSize) }
func (c *operands) number(ok bool) { c.require(ok, StatusNumber) }

func (c *operands) count(n, least, most uint32) {
	c.sizes(n >= least && n <= most)
}

// dim checks a count of rows or columns; products of those that pass fit uint64.
func (c *checker) dim(n, multiple uint32) uint64 {
	c.sizes(n > 0 && n <= MaxDim && n%multiple == 0)
	return uint64(n)
}

func (c *checker) tiles(n, least uint32) uint64 {
	c.count(n, least, MaxTiles)
	return uint64(n)
}

func (c *checker) format(bits, group, k uint32, bytes bool) {
	c.number(bits == 1 || bits == 2 || bits == 4 || bits == 8)
	c.number(group == 32 || group == 64 || group == 128 || group == k && !bytes)
}

// weights checks the first m rows of a matrix that lies behind from.
func (c *checker) weights(codes, scales, offsets uint32, m, k uint64, bits, group, from uint32) {
	behind := func(offset uint32, n uint64) {
		c.memory(offset, n)
		c.require(offset >= from, StatusRange)
	}
	behind(codes, m*k/8*uint64(bits))
	if uint64(group) != k {
		behind(scales, m*k/uint64(max(group, 1))*2)
		if offsets != 0 {
			behind(offsets, m*k/uint64(max(group, 1))*2)
		}
	}
}

func (c *operands) tcm(offset uint32, n, align uint64) { c.operand(offset, n, align, TCMBytes) }
func (c *operands) memory(offset uint32, n uint64)     { c.operand(offset, n, Align, c.size) }

// apart refuses operands that share bytes though the one is written while the other is read.
func (c *operands) apart(offset uint32, n uint64, other uint32, bytes uint64) {
	c.require(uint64(offset)+n <= uint64(other) || uint64(other)+bytes <= uint64(offset), StatusRange)
}

// factor checks n bytes of TCM that the tile unit reads while it writes out.
func (c *operands) factor(out uint32, written uint64, offset uint32, n, align uint64) {
	c.tcm(offset, n, align)
	c.apart(out, written, offset, n)
}

// operand checks n bytes that end below limit, in TCM or behind it. Where n is a product
// that has wrapped, its factors have been refused before.
func (c *operands) operand(offset uint32, n, align, limit uint64) {
	end := uint64(offset) + n
	if offset < TCMBytes {
		c.end = max(c.end, min(end, TCMBytes))
	}
	c.require(uint64(offset)%align == 0 && end <= min(limit, c.size) && (offset >= TCMBytes || end <= TCMBytes), StatusRange)
}

package device

import (
	"context"
	"fmt"

	"github.com/lutra-lm/lutra/hexagon/hmx"
	"github.com/lutra-lm/lutra/hexagon/hmx/tiles"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// Go is a device in Go: it needs no tools, and computes the bits that an NPU does.
type Go struct {
	arena  cpu.Arena // of memory, most of which a session may never touch
	memory []byte
	tcm    []byte // in place of the memory's first TCMBytes
	unit   TileUnit
	pool   *pool.Pool // nil: the caller alone
	pairs  [][4]tiles.Pair
	gemvs  []gemv
}

// NewGo makes a device with memory bytes that computes on the threads of
// a pool; without one, on the caller's.
func NewGo(p *pool.Pool, memory int) (*Go, error) {
	if memory <= TCMBytes || uint64(memory) > 1<<32 {
		return nil, fmt.Errorf("hexagon: a device's memory has %d bytes, which is not between %d and 4 GiB", memory, TCMBytes)
	}
	g := &Go{}
	b, err := g.arena.Bytes(memory)
	if err != nil {
		return nil, fmt.Errorf("hexagon: a device's memory: %w", err)
	}
	g.over(b, p)
	return g, nil
}

// NewBeside returns a device over the memory of another one, with TCM of its own: on it
// the host computes, to the same bits, what the other one has no room for. They must
// not run at the same time.
func NewBeside(other Device, p *pool.Pool) *Go {
	g := &Go{}
	g.over(other.Memory(), p)
	g.tcm = cpu.Aligned[byte](TCMBytes)
	return g
}

func (g *Go) over(memory []byte, p *pool.Pool) {
	g.memory, g.tcm, g.unit, g.pool = memory, memory[:TCMBytes], NewTileUnit(p), p
}

// Name returns "go".
func (g *Go) Name() string { return "go" }

// Memory returns the memory that the device computes in.
func (g *Go) Memory() []byte { return g.memory }

// Close gives the memory back, which nothing may use any more.
func (g *Go) Close() error {
	g.memory, g.tcm = nil, nil
	return g.arena.Free()
}

// Run computes packets. It looks at ctx between them.
func (g *Go) Run(ctx context.Context, packets []Packet) (Counts, error) {
	if g.memory == nil {
		return Counts{}, fmt.Errorf("hexagon: the device is closed")
	}
	for i, p := range packets {
		if err := ctx.Err(); err != nil {
			return Counts{}, err
		}
		if status := p.Check(g.memory); status != StatusOK {
			return Counts{}, &PacketError{Index: i, Op: p.Op, Status: status}
		}
		g.compute(p)
	}
	return Counts{}, nil
}

// compute runs a packet that Check takes.
func (g *Go) compute(p Packet) {
	a := &p.Args
	switch p.Op {
	case OpPing:
	case OpCopy:
		copy(g.bytes(a[0], int(a[2])), g.bytes(a[1], int(a[2])))
	case OpCollect:
		for i, from := range view[uint32](g, a[1], int(a[2])) {
			copy(g.bytes(a[0]+uint32(i)*a[5], int(a[3])), g.memory[from+a[4]:])
		}
	case OpPrecompute:
		k, bytes, fill := int(a[3]), a[4] == 1, precompute
		if bytes {
			fill = ref.PrecomputeBytes
		}
		for i := range a[1] {
			tables, sums := g.tables(a[0], i, k, bytes)
			fill(tables, sums, view[int16](g, a[2]+2*i*a[3], k))
		}
	case OpGEMV:
		g.gemv(&p)
	case OpDequant:
		strip, strips, first, n := int(a[5]), p.DequantStrips(), int(a[6]), int(a[7])
		p := dequant{Matrix: g.matrix(&p, a[1], a[2], a[3], (strip+strips)*layout.Strip, int(a[8]), a[9], a[10]),
			tiles: view[uint16](g, a[0], 8*strips*n*tile), v: g.table(&p), strip: strip, first: first, n: n}
		g.parallel(strips*n, p.block)
	case OpVLUT16:
		const some = 16 // super-groups a part
		n := int(a[2])
		dst, groups := view[uint16](g, a[0], n*layout.SuperGroup), g.bytes(a[1], n*layout.SuperGroupBytes)
		var v [tiles.Codes]float32
		tiles.Widen(v[:], view[uint16](g, a[3], tiles.Codes))
		g.parallel(pool.Parts(n, some), func(part int) {
			from, to := part*some, min((part+1)*some, n)
			tiles.SuperGroups(dst[from*layout.SuperGroup:to*layout.SuperGroup], groups[from*layout.SuperGroupBytes:], &v)
		})
	case OpTileMul, OpTileMulBytes:
		g.unit.Run(g.tcm, p)
	case OpByteTiles:
		n, bits := int(a[2]), int(a[3])
		tiles, codes := g.bytes(a[0], n*4*layout.TileBytes), g.bytes(a[1], n*layout.BlockBytes(bits))
		g.parallel(n, func(i int) { byteTiles(tiles, codes, i, n, bits) })
	case OpExpTable:
		copy(view[uint16](g, a[0], ExpTableBytes/2), powers())
	case OpSoftmax:
		const some = 4 // pairs of rows a part
		rows, keys := int(a[4]), int(a[5])
		p := softmax{s: view[uint16](g, a[0], rows*keys*tile), table: view[uint16](g, a[1], ExpTableBytes/2),
			states: view[uint32](g, a[2], rows*layout.Tile*ref.StateWords), diag: view[uint16](g, a[3], rows*tile), keys: keys}
		g.parallel(rows*layout.Tile/2/some, func(part int) {
			for i := part * some; i < (part+1)*some; i++ {
				p.pair(i)
			}
		})
	case OpSoftCap:
		s, table := view[uint16](g, a[0], int(a[2])*tile), view[uint16](g, a[1], ExpTableBytes/2)
		g.parallel(int(a[2]), func(i int) { ref.SoftCap(s[i*tile:][:tile], table) })
	default:
		g.rowOps(p)
	}
}

// parallel runs parts of a packet on the pool's threads.
func (g *Go) parallel(parts int, part func(i int)) {
	if g.pool != nil && parts > 1 {
		g.pool.Run(task(part), parts)
		return
	}
	for i := range parts {
		part(i)
	}
}

// task is a part for the pool.
type task func(i int)

// Do computes the part.
func (t task) Do(_, i int) { t(i) }

const tile = layout.TileBytes / 2 // numbers

func view[T uint16 | int16 | uint32 | int32 | float32](g *Go, offset uint32, n int) []T {
	if offset < TCMBytes {
		return View[T](g.tcm, offset, n)
	}
	return View[T](g.memory, offset, n)
}

// bytes returns n bytes at offset.
func (g *Go) bytes(offset uint32, n int) []byte {
	if offset < TCMBytes {
		return g.tcm[offset:][:n]
	}
	return g.memory[offset:][:n]
}

// table returns the values of the codes of an OpDequant, nil with 8 bits.
func (g *Go) table(p *Packet) []uint16 {
	if p.Args[9] == 8 {
		return nil
	}
	return view[uint16](g, p.Args[4], 1<<p.Args[9])
}

// matrix returns the first m rows of a packet's matrix.
func (g *Go) matrix(p *Packet, codes, scales, offsets uint32, m, k int, bits, group uint32) ref.Matrix {
	w := ref.Matrix{Codes: g.bytes(codes, m*k/8*int(bits)), K: k, Bits: int(bits), Group: int(group), InBytes: p.InBytes()}
	if p.Op == OpGEMV && w.InBytes && bits == 4 {
		w.Values = g.bytes(p.Args[11], 16)
	}
	if w.Group != k {
		w.Scales = view[int16](g, scales, m*(k/w.Group))
		if offsets != 0 {
			w.Offsets = view[int16](g, offsets, m*(k/w.Group))
		}
	}
	return w
}

// OfTileUnit reports whether a packet is a product of the tile unit.
func (p *Packet) OfTileUnit() bool { return p.Op == OpTileMul || p.Op == OpTileMulBytes }

// TileUnit runs OpTileMul and OpTileMulBytes in Go, for devices that have no tile unit of their own.
type TileUnit struct {
	unit *hmx.Unit
	runs [2]hmx.Run
}

// NewTileUnit returns a unit that works on the pool's threads; without one, on the
// caller's.
func NewTileUnit(p *pool.Pool) TileUnit { return TileUnit{unit: hmx.New(p)} }

// Run computes a product that Check takes.
func (u *TileUnit) Run(memory []byte, p Packet) {
	a := &p.Args
	if p.Op == OpTileMulBytes {
		k, rows, cols := int(a[3]), int(a[4]), int(a[5])
		u.unit.MulBytes(memory[a[0]:][:rows*cols*BytePlanes*layout.TileBytes], memory[a[1]:][:rows*k*layout.TileBytes], memory[a[2]:][:cols*k*ByteLanesBytes], k, rows, cols)
		return
	}
	rows, cols := int(a[7]), int(a[8])
	operand := func(offset uint32, n int) []uint16 { return View[uint16](memory, offset, n*tile) }
	runs := u.runs[:1]
	k := int(a[3])
	runs[0] = hmx.Run{Act: operand(a[1], rows*k), Wgt: operand(a[2], cols*k), K: k}
	if k := int(a[6]); k > 0 {
		runs = append(runs, hmx.Run{Act: operand(a[4], rows*k), Wgt: operand(a[5], cols*k), K: k})
	}
	u.unit.Mul(operand(a[0], rows*cols), runs, rows, cols, layout.F32(uint16(a[9])))
}

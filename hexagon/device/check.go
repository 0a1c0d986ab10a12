package device

import (
	"encoding/binary"
	"math"

	"github.com/lutra-lm/lutra/hexagon/layout"
)

// Sizes of what softmax reads.
const (
	StateBytes    = 6 * 4
	ExpTableBytes = 1 << 16 // and their alignment
)

// A Rule says where an operand may lie, and what becomes of it. The other bits are its alignment.
type Rule uint32

// The rules of operands. What has none is read, and lies anywhere.
const (
	Writes  Rule = 1 << iota // it is written, and perhaps read
	InTCM                    // it lies in TCM
	InDDR                    // it lies behind TCM
	Apart                    // it shares no byte with the first operand
	Scratch Rule = 1 << 30   // what is left in it means nothing
	Keeps   Rule = 1 << 29   // it is written, and what was there matters
	Words   Rule = 1 << 28   // shards of the operation write words of it, not vectors
	Mapped  Rule = 1 << 27   // it lies in any number of mappings, others in one
	// Streamed is read by DMA past the DSP's caches, which never have it.
	Streamed Rule = 1 << 26
	InOrder  Rule = 1 << 31 // of two transfers, or two products, that have it the later one does not wait
)

// An Operand is a part of the memory that a packet reads or writes: rows of Bytes that are Stride bytes apart.
type Operand struct {
	Name                string // of the argument that has its offset; "" of the pieces of an OpCollect
	Number              int    // in the table
	Offset              uint32
	Rows, Bytes, Stride uint64
	Rule                Rule
}

// Size is an operand's from its first byte to its last.
func (o *Operand) Size() uint64 { return (o.Rows-1)*o.Stride + o.Bytes }

// Operands are a packet's. hexagon/device/operands has the table that says which they are.
type Operands struct {
	size   uint64 // of the memory
	status Status // the first thing that is wrong with them
	n      int
	list   [8]Operand
}

// add adds an operand. Its offset is the argument's, its size what the table says of others that are right.
func (os *Operands) add(number int, name string, offset uint32, rows, bytes, stride uint64, rule Rule) {
	o := &os.list[os.n]
	*o = Operand{name, number, offset, rows, bytes, stride, rule}
	os.n++
	end, align := uint64(offset)+o.Size(), uint32(rule&(Streamed-1))&^15
	inTCM := offset < TCMBytes
	if offset&(align-1) != 0 || end > os.size || rule&Mapped == 0 && uint64(offset)/MappingBytes != (end-1)/MappingBytes || inTCM && (end > TCMBytes || rule&InDDR != 0) || !inTCM && rule&InTCM != 0 ||
		rule&Apart != 0 && o.meets(&os.list[0]) {
		os.status = StatusRange
	}
}

// meets says whether operands share bytes.
func (o *Operand) meets(p *Operand) bool {
	return uint64(o.Offset) < uint64(p.Offset)+p.Size() && uint64(p.Offset) < uint64(o.Offset)+o.Size()
}

// Operands are the packet's in a memory of so many bytes. The status says whether all arguments are right; what
// an OpCollect collects is not among them.
func (p *Packet) Operands(memory int) ([]Operand, Status) {
	if p.Op == 0 || p.Op >= numOps {
		return nil, StatusOp
	}
	o := Operands{size: uint64(memory)}
	if s := operations[p.Op](&p.Args, &o); s != StatusOK {
		return nil, s
	}
	return o.list[:o.n], o.status
}

// Check says whether a device with that memory takes the packet. Every device has this
// rule. It looks at bits, group, A, B and scale first, then at counts, and at operands last;
// of the memory's content only at the table of an OpCollect.
func (p Packet) Check(memory []byte) Status {
	os, status := p.Operands(len(memory))
	if p.Op == OpCollect && status == StatusOK {
		from := func(i uint32) uint64 {
			return uint64(binary.LittleEndian.Uint32(memory[p.Args[1]+4*i:])) + uint64(p.Args[4])
		}
		for i := range p.Args[2] {
			at := from(i)
			piece := Operands{size: uint64(len(memory)), list: [8]Operand{os[0]}, n: 1}
			if piece.add(1, "", uint32(at), 1, uint64(p.Args[3]), 0, Align|InDDR|Apart); at > math.MaxUint32 || piece.status != StatusOK || at/MappingBytes != from(0)/MappingBytes {
				return StatusRange
			}
		}
	}
	return status
}

// TCMEnd returns where what a packet that Check takes reads and writes of TCM ends.
func (p Packet) TCMEnd(memory int) int {
	end := 0
	os, _ := p.Operands(memory)
	for _, o := range os {
		if o.Offset < TCMBytes {
			end = max(end, int(uint64(o.Offset)+o.Size()))
		}
	}
	return end
}

// groups counts the groups of n numbers.
func groups(n, group uint64) uint64 { return n / max(group, 1) }

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

// tilesOf counts the columns of tiles that n rows take.
func tilesOf(n uint32) uint64 { return (uint64(n) + layout.Tile - 1) / layout.Tile }

package soc

import (
	"fmt"

	"github.com/lutra-lm/lutra/lab/npu/ablation"
	"github.com/lutra-lm/lutra/lab/npu/tiling"
)

// Packets are the kernels' costs, counted by the emulator [E]: bundles of instructions that a thread executes.
type Packets struct {
	Line       map[Codes]float64 // of OpGEMV: a line of 128 bytes
	Scale      map[Codes]float64 // of OpGEMV: a strip's scales and offsets of one group
	Shared     map[int]Shared    // of OpGEMV, of as many rows as share codes: 2, 4
	Precompute float64           // of OpPrecompute: 256 activations
	Bytes      float64           // of OpPrecompute: as bytes
	Dequant    map[Codes]float64 // of OpDequant: a block of 128×64
	Fuse       map[Codes]float64 // of OpDequant: the tables of a strip's group
}

// Shared are the packets of rows that share a line of codes, of all of them.
type Shared struct{ Line, Scale map[Codes]float64 }

// lookups returns the packets of OpGEMV's lines of x, and of its scales, for rows rows: four at a time
// share codes, and two.
func (p *Packets) lookups(x Matrix, rows int) float64 {
	lines, scales := float64(x.M)*float64(x.K)*float64(x.Bits)/8/tiling.Lookups, 0.0
	if x.Group < x.K {
		scales = float64(x.M/tiling.Lookups) * float64(x.K/x.Group)
	}
	sum := 0.0
	for _, n := range []int{4, 2, 1} {
		each, shared := Shared{p.Line, p.Scale}, n == 1
		if n > 1 {
			each = p.Shared[n]
			_, shared = each.Line[x.codes()]
		}
		if shared {
			sum += float64(rows/n) * (lines*each.Line[x.codes()] + scales*each.Scale[x.codes()])
			rows %= n
		}
	}
	return sum
}

// Counted returns the packets of this project's kernels, as recorded.
func Counted() Packets {
	c := ablation.Recorded()
	p := Packets{
		Line: map[Codes]float64{}, Scale: map[Codes]float64{}, Shared: map[int]Shared{}, Dequant: map[Codes]float64{}, Fuse: map[Codes]float64{},
		Precompute: c.Each("precompute"), Bytes: c.Each("precompute-bytes"),
	}
	for _, n := range []int{2, 4} {
		p.Shared[n] = Shared{map[Codes]float64{}, map[Codes]float64{}}
	}
	for bits, name := range map[Codes]string{1: "1", 2: "2", 4: "4"} {
		p.Line[bits] = c.Each("gemv-" + name)
		grouped := c["gemv-"+name+"-grouped"]
		p.Scale[bits] = (grouped.Packets - c["gemv-"+name].Packets) / grouped.Units
		for n, shared := range p.Shared {
			rows := fmt.Sprintf("-%d-rows", n)
			of := c["gemv-"+name+"-grouped"+rows]
			shared.Line[bits], shared.Scale[bits] = c.Each("gemv-"+name+rows), (of.Packets-c["gemv-"+name+rows].Packets)/of.Units
		}
		p.Dequant[bits] = c.Each("dequant-" + name + "-flat")
		p.Fuse[bits] = c.Each("dequant-"+name) - p.Dequant[bits]
	}
	for codes, name := range map[Codes]string{8: "8", LevelCodes: "values"} {
		// Of one strip, groups of 64 columns have 4 scales a 256 columns, of 128 two.
		of64, of128 := c["gemv-"+name+"-64"], c["gemv-"+name+"-128"]
		columns := of64.Units * 8 / float64(bitsOf(codes)) // of all strips
		p.Scale[codes] = (of64.Packets - of128.Packets) / (columns / 128)
		p.Line[codes] = (of128.Packets - p.Scale[codes]*columns/128) / of128.Units
		p.Dequant[codes] = c.Each("dequant-" + name) // scales included
	}
	return p
}

// Codes tells kinds of codes apart: their bits, or LevelCodes.
type Codes int

// LevelCodes are codes of four bits that stand for one of sixteen values.
const LevelCodes Codes = 40

func bitsOf(c Codes) int {
	if c == LevelCodes {
		return 4
	}
	return int(c)
}

// codes returns the kind of a matrix's codes.
func (m Matrix) codes() Codes {
	if m.Levels {
		return LevelCodes
	}
	return Codes(m.Bits)
}

// inBytes reports whether codes are multiplied as bytes.
func (m Matrix) inBytes() bool { return m.Levels || m.Bits == 8 }

// dequant returns the packets for a block of 128×64 weights in groups.
func (p *Packets) dequant(x Matrix) float64 {
	n := p.Dequant[x.codes()]
	if x.Group < x.K {
		n += p.Fuse[x.codes()] * 64 / float64(x.Group)
	}
	return n
}

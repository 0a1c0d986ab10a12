package soc

import "github.com/lutra-lm/lutra/hexagon/dsp/ablation"

// Packets are what the kernels take, counted by the emulator [E]: bundles of
// instructions that a thread executes.
type Packets struct {
	Line       map[Codes]float64 // of OpGEMV: a line of 128 bytes
	Scale      map[Codes]float64 // of OpGEMV: a strip's scales and offsets of one group
	Precompute float64           // of OpPrecompute: 256 activations
	Bytes      float64           // of OpPrecompute: as bytes
	Dequant    map[Codes]float64 // of OpDequant: a block of 128×64
	Fuse       map[Codes]float64 // of OpDequant: the tables of a strip's group
	VLUT16     float64           // of OpVLUT16: a super-group of 256 weights
	Softmax    float64           // of OpSoftmax: 64 scores, vgather's latency hidden by other threads
}

// Counted returns the packets of this project's kernels, as recorded.
func Counted() Packets {
	c := ablation.Recorded()
	p := Packets{
		Line: map[Codes]float64{}, Scale: map[Codes]float64{}, Dequant: map[Codes]float64{}, Fuse: map[Codes]float64{},
		Precompute: c.Each("precompute"), Bytes: c.Each("precompute-bytes"), VLUT16: c.Each("super-groups"), Softmax: c.Each("softmax"),
	}
	for bits, name := range map[Codes]string{1: "1", 2: "2", 4: "4"} {
		p.Line[bits] = c.Each("gemv-" + name)
		grouped := c["gemv-"+name+"-grouped"]
		p.Scale[bits] = (grouped.Packets - c["gemv-"+name].Packets) / grouped.Units
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

// LevelCodes are those of four bits that stand for one of sixteen values.
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

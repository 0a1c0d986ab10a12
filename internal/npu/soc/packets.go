package soc

import "github.com/lutra-lm/lutra/hexagon/dsp/ablation"

// Packets are what the kernels take, counted by the emulator [E]: bundles of
// instructions that a thread executes.
type Packets struct {
	Line       map[int]float64 // of OpGEMV, by bits: a line of 128 bytes
	Scale      map[int]float64 // of OpGEMV, by bits: a strip's scales and offsets of one group
	Precompute float64         // of OpPrecompute: 256 activations
	Dequant    map[int]float64 // of OpDequant, by bits: a block of 128×64
	Fuse       map[int]float64 // of OpDequant, by bits: the tables of a strip's group
	VLUT16     float64         // of OpVLUT16: a super-group of 256 weights
	Softmax    float64         // of OpSoftmax: 64 scores, vgather's latency hidden by other threads
}

// Counted returns the packets of this project's kernels, as recorded.
func Counted() Packets {
	c := ablation.Recorded()
	p := Packets{
		Line: map[int]float64{}, Scale: map[int]float64{}, Dequant: map[int]float64{}, Fuse: map[int]float64{},
		Precompute: c.Each("precompute"), VLUT16: c.Each("super-groups"), Softmax: c.Each("softmax"),
	}
	for bits, name := range map[int]string{1: "1", 2: "2", 4: "4"} {
		p.Line[bits] = c.Each("gemv-" + name)
		grouped := c["gemv-"+name+"-grouped"]
		p.Scale[bits] = (grouped.Packets - c["gemv-"+name].Packets) / grouped.Units
		p.Dequant[bits] = c.Each("dequant-" + name + "-flat")
		p.Fuse[bits] = c.Each("dequant-"+name) - p.Dequant[bits]
	}
	return p
}

// dequant returns the packets for a block of 128×64 weights in groups.
func (p *Packets) dequant(x Matrix) float64 {
	n := p.Dequant[x.Bits]
	if x.Group < x.K {
		n += p.Fuse[x.Bits] * 64 / float64(x.Group)
	}
	return n
}

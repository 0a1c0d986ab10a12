package grouped

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// superSums are the float32 sums of a superblock, in front of the scale d that
// its groups share: a group then costs a conversion and a multiply-add, and d
// is put on once in eight groups.
type superSums struct {
	t    *tile
	band int
	regs [][]reg.VecVirtual // [token][vector]; nil: in memory
	mem  Mem                // [token][16]
}

// superRegisters makes sums that stay in registers as g has them.
func (t *tile) superRegisters(band int, g [][]reg.VecVirtual) *superSums {
	return &superSums{t: t, band: band, regs: g}
}

// superMemory makes sums in the routine's frame.
func (t *tile) superMemory(band int) *superSums {
	return &superSums{t: t, band: band, mem: AllocLocal(t.tokens * dense.BandRows * 4)}
}

// superSums makes those of all bands, of a few tokens in registers of 256 bits.
func (t *tile) superSums() []*superSums {
	all := make([]*superSums, t.bands)
	for b := range all {
		if t.tokens <= heldTokens {
			all[b] = t.superRegisters(b, grid(t.tokens))
		} else {
			all[b] = t.superMemory(b)
		}
	}
	return all
}

// superScales gives d of the band's two vectors.
func (t *tile) superScales() []reg.VecVirtual {
	d := grid(1)[0]
	for v := range d {
		VCVTPH2PS(t.scaleAt(v*16), d[v])
	}
	t.putFactor(d)
	return d
}

// at returns vector v (of bytes each) of a token's sums in memory.
func (s *superSums) at(i, v int, bytes int) Mem { return s.mem.Offset(i*dense.BandRows*4 + v*bytes) }

// begin clears the sums.
func (s *superSums) begin() {
	if s.regs != nil {
		for i := range s.regs {
			for _, sum := range s.regs[i] {
				emit.Zero(sum)
			}
		}
		return
	}
	none := YMM()
	emit.Zero(none)
	s.t.each(func(i, v int) { VMOVUPS(none, s.at(i, v, 32)) })
}

// add adds a·x, and spoils x.
func (s *superSums) add(i, v int, a, x reg.VecVirtual) {
	if s.regs != nil {
		VFMADD231PS(a, x, s.regs[i][v])
		return
	}
	VFMADD213PS(s.at(i, v, int(x.Size())), a, x)
	VMOVUPS(x, s.at(i, v, int(x.Size())))
}

// end adds d times the sums to y.
func (s *superSums) end(d []reg.VecVirtual) {
	for i := range s.t.tokens {
		for v := range d {
			bytes := int(d[v].Size())
			y, sum := s.t.y.At(i, s.band*dense.BandRows*4+v*bytes), s.load(i, v, d[v])
			VFMADD213PS(y, d[v], sum)
			VMOVUPS(sum, y)
		}
	}
}

// load gives a register with a sum, of like's width.
func (s *superSums) load(i, v int, like reg.VecVirtual) reg.VecVirtual {
	if s.regs != nil {
		return s.regs[i][v]
	}
	sum := YMM()
	if like.Size() == 64 {
		sum = ZMM()
	}
	VMOVUPS(s.at(i, v, int(like.Size())), sum)
	return sum
}

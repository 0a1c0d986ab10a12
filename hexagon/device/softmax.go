package device

import (
	"sync"

	"github.com/lutra-lm/lutra/hexagon/hmx/tiles"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
)

// powers is the table of OpExpTable, made once.
var powers = sync.OnceValue(func() []uint16 {
	t := make([]uint16, ExpTableBytes/2)
	ref.ExpTable(t)
	return t
})

// softmax is an OpSoftmax.
type softmax struct {
	s, table []uint16
	states   []uint32
	diag     []uint16
	keys     int
}

const pairNumbers = 2 * layout.Tile // of two rows in a tile

// pair computes rows 2i and 2i+1.
func (x *softmax) pair(i int) {
	const pairs = layout.Tile / 2
	segment := func(key int) *[pairNumbers]uint16 {
		return (*[pairNumbers]uint16)(x.s[(i/pairs*x.keys+key)*tile+i%pairs*pairNumbers:])
	}
	states := [2][]uint32{x.states[2*i*ref.StateWords:][:ref.StateWords], x.states[(2*i+1)*ref.StateWords:][:ref.StateWords]}
	var valid [2]int
	var old, largest [2]uint16
	var wide [2]float32
	for r, state := range states {
		valid[r] = int(min(state[ref.StateValid], uint32(x.keys*layout.Tile)))
		old[r] = uint16(state[ref.StateMax])
		most := layout.Order(old[r])
		for c := range valid[r] {
			most = max(most, layout.Order(segment(c / layout.Tile)[c%layout.Tile*2+r]))
		}
		largest[r] = uint16(most)
		if most < 0 {
			largest[r] ^= 0x7fff
		}
		wide[r] = layout.F32(largest[r])
	}
	var sums [2]uint64
	table := (*[1 << 15]uint16)(x.table)
	for key := range x.keys {
		s := segment(key)
		left := [2]int{valid[0] - key*layout.Tile, valid[1] - key*layout.Tile}
		if left[0] <= 0 && left[1] <= 0 {
			*s = [pairNumbers]uint16{}
			continue
		}
		var f [pairNumbers]float32
		tiles.Widen(f[:], s[:])
		for c := 0; c < pairNumbers; c += 2 {
			f[c] -= wide[0]
			f[c+1] -= wide[1]
		}
		layout.FromF32(s[:], f[:])
		for c := range layout.Tile {
			for r := range 2 {
				p := &s[2*c+r]
				if c >= left[r] {
					*p = 0
					continue
				}
				*p = table[*p&0x7fff]
				sums[r] += units(*p)
			}
		}
	}
	diag := (*[pairNumbers]uint16)(x.diag[i*pairNumbers:])
	*diag = [pairNumbers]uint16{}
	for r, state := range states {
		e := table[ref.Sub(old[r], largest[r])&0x7fff]
		diag[(2*i+r)%layout.Tile*2+r] = e
		state[ref.StateMax], state[ref.StateFactor] = uint32(largest[r]), uint32(e)
		state[ref.StateSumLow], state[ref.StateSumHigh] = uint32(sums[r]), uint32(sums[r]>>32)
		state[ref.StateWords-1] = 0
	}
}

// units returns an fp16 of 0 to 1 in units of 2⁻²⁴.
func units(h uint16) uint64 {
	e, m := h>>10&31, uint64(h&0x3ff)
	if e == 0 {
		return m
	}
	return (m | 0x400) << (e - 1)
}

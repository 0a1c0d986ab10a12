package kv

import (
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/attention"
	"github.com/lutra-lm/lutra/kernels/cpu"
)

// residuals hold blocks in 8 bits while they are written, of types with 4: what KIVI calls the residual cache (Liu et al.
// 2024, "KIVI", §3.3), but within a block. A query reads the rows of its own block there, and all blocks before it in 4
// bits. So what it reads depends on its position alone, and prefixes, forks and pieces of prompts change no bits. Each row
// is written in both forms at once.
//
//	Grow ── a residual for each new block ──▶ rows in both forms ── Seal, Settle ──▶ 4 bits alone
//
// A block has a residual from its first row on, until all of its rows are there and certain. A copy of the block copies it.
// A sequence goes back into a block only if nobody shares it and it has its residual, else to its beginning: see Truncate.
// So all sequences that share a block have as many rows of it.
//
//	data   [residuals][layers]( keys [heads][stride][dim], values likewise ), of the halves that have 4 bits
//	scale  [residuals][layers]( keys [heads][stride], values likewise )
type residuals struct {
	blocks []block // the pool's, some of which have a residual
	of     []int32 // the block of each residual, or none; empty: the type has no residuals
	free   []int32 // a stack
	data   []int8
	scale  []float32
	layers []residualOffsets
	size   residualOffsets // of a whole residual
}

// residualOffsets tell where in a residual a layer begins.
type residualOffsets struct{ data, scale int }

// BytesPerResidual returns the memory of the 8 bits of one block, 0 for types without 4 bits.
func BytesPerResidual(shape Shape, opt Options) (bytes int64) {
	for layer := range shape.Layers + shape.Others.Layers {
		heads, dim := shape.of(layer)
		bytes += int64(opt.Type.narrow()) * vectorBytes(Int8, dim) * int64(wholeGroups(opt.BlockLen)) * int64(heads)
	}
	if bytes > 0 {
		bytes += 2 * int64(unsafe.Sizeof(none))
	}
	return bytes
}

// narrow returns how many of keys and values have 4 bits.
func (t Type) narrow() (halves int) {
	for _, half := range []Type{t.Keys(), t.Values()} {
		if half == Int4 {
			halves++
		}
	}
	return halves
}

// reserve makes the residuals in a, for blocks of layers.
func (p *residuals) reserve(a *cpu.Arena, opt Options, layers []Layer) (err error) {
	for i := range layers {
		l := &layers[i]
		p.layers = append(p.layers, p.size)
		vectors := opt.Type.narrow() * l.heads * l.stride
		p.size.data, p.size.scale = p.size.data+vectors*l.dim, p.size.scale+vectors
	}
	n := opt.residuals()
	for i := range n {
		p.of, p.free = append(p.of, none), append(p.free, int32(n-1-i)) // low numbers go first
	}
	if err = room(a, &p.data, n*p.size.data); err == nil {
		err = room(a, &p.scale, n*p.size.scale)
	}
	return err
}

// used tells whether blocks have residuals at all.
func (p *residuals) used() bool { return len(p.of) > 0 }

// Residuals returns how many blocks can be written at once, 0 for types without 4 bits.
func (p *residuals) Residuals() int { return len(p.of) }

// FreeResiduals returns the number of residuals that Grow can still obtain.
func (p *residuals) FreeResiduals() int { return len(p.free) }

// take gives block b a residual, of which one must be free.
func (p *residuals) take(b int32) {
	last := len(p.free) - 1
	i := p.free[last]
	p.free = p.free[:last]
	p.of[i], p.blocks[b].residual = b, i
}

// give takes the residual from block b, if it has one.
func (p *residuals) give(b int32) {
	i := p.blocks[b].residual
	if i == none {
		return
	}
	p.of[i], p.blocks[b].residual = none, none
	p.free = append(p.free, i)
}

// copy copies the rows of block src to the residual of block dst; both have one.
func (p *residuals) copy(dst, src int32) {
	if p.used() {
		to, from := int(p.blocks[dst].residual), int(p.blocks[src].residual)
		copyVectors(p.data, to, from, 1, p.size.data)
		copyVectors(p.scale, to, from, 1, p.size.scale)
	}
}

// NoResidual says that a block has no rows in 8 bits besides its others.
const NoResidual = none

// Residual returns the number of the residual of block b, or NoResidual.
func (p *residuals) Residual(b int32) int32 { return p.blocks[b].residual }

// Own returns what queries read of a layer in the block of a residual. It is a Layer of that block alone, so its first
// vector is number 0.
func (c *Cache) Own(layer int, residual int32) Layer {
	y, p := c.layers[layer], &c.residuals
	n := y.heads * y.stride
	first := int(p.of[residual]) * n
	at := residualOffsets{int(residual)*p.size.data + p.layers[layer].data, int(residual)*p.size.scale + p.layers[layer].scale}
	for _, x := range []*vectors{&y.keys, &y.values} {
		if x.int4 == nil {
			*x = x.window(first, n, y.dim)
			continue
		}
		*x = vectors{int8: p.data[at.data : at.data+n*y.dim], scale: p.scale[at.scale : at.scale+n]}
		at.data, at.scale = at.data+n*y.dim, at.scale+n
	}
	return y
}

// mostTurned bounds the elements of a head that are turned without allocating.
const mostTurned = 1024

// storeOwn writes keys and values k, v [KVHeads][HeadDim] of a row to the residual of its block, rotated as in 4 bits. Halves
// of other types have no residual.
func (c *Cache) storeOwn(layer int, b int32, row int, k, v []float32) {
	l, own := &c.layers[layer], c.Own(layer, c.Residual(b))
	var buf [mostTurned]float32
	x := buf[:]
	if l.dim > len(x) {
		x = make([]float32, l.dim)
	}
	x = x[:l.dim]
	for h := range l.heads {
		j := own.FirstVector(0, h) + row
		if l.keys.int4 != nil {
			copy(x, k[h*l.dim:])
			l.TurnKey(x)
			own.keys.storeKey(j, row%attention.KeyGroup, x)
		}
		if l.values.int4 != nil {
			copy(x, v[h*l.dim:])
			l.Finish(x)
			own.values.storeValue(j, x)
		}
	}
}

// Settle says that all positions are certain: the blocks that they fill give their residuals back. Seal does so too.
func (s *extent) Settle() {
	for full := s.n / s.c.opt.BlockLen; s.settled < full; s.settled++ {
		s.c.residuals.give(s.blocks[s.settled])
	}
}

// HeldResiduals returns how many residuals the sequence's blocks have, those that it shares included.
func (s *extent) HeldResiduals() (n int) {
	for _, b := range s.blocks[s.settled:] {
		if s.c.Residual(b) != none {
			n++
		}
	}
	return n
}

// NeedResidual returns the number of residuals, 0 or 1, that Grow(1) would take.
func (s *extent) NeedResidual() int {
	if !s.c.residuals.used() {
		return 0
	}
	return s.Need(1)
}

// lacksResidual tells whether queries in block b would lack its rows in 8 bits.
func (p *residuals) lacksResidual(b int32) bool { return p.used() && p.Residual(b) == none }

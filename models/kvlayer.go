package models

import "github.com/lutra-lm/lutra/kernels"

// kvLayer holds the keys and values of one layer, of one number format. A
// vector is the key or value of one token and head; the keys of one head in
// one block are contiguous:
//
//	[Blocks][KVHeads][BlockLen][HeadDim]
type kvLayer struct {
	k16, v16       []uint16  // KVF16
	k32, v32       []float32 // KVF32
	k8, v8         []int8    // KVInt8
	kScale, vScale []float32 // KVInt8: [Blocks][KVHeads][BlockLen]
}

// newKVLayer makes room for a number of key and value vectors of dim.
func newKVLayer(t KVType, vectors, dim int) kvLayer {
	n := vectors * dim
	switch t {
	case KVInt8:
		return kvLayer{
			k8: make([]int8, n), v8: make([]int8, n),
			kScale: make([]float32, vectors), vScale: make([]float32, vectors),
		}
	case KVF32:
		return kvLayer{k32: make([]float32, n), v32: make([]float32, n)}
	default:
		return kvLayer{k16: make([]uint16, n), v16: make([]uint16, n)}
	}
}

// vector is the number of the vector of a head and row in block b.
func (c *KVCache) vector(b int32, head, row int) int {
	return (int(b)*c.heads+head)*c.opt.BlockLen + row
}

// chunk is chunkKeys in whole blocks.
func (c *KVCache) chunk() int { return max(1, chunkKeys/c.opt.BlockLen) * c.opt.BlockLen }

// store writes the keys and values k, v [KVHeads][HeadDim] of one position.
func (c *KVCache) store(layer int, s *KVSeq, pos int, k, v []float32) {
	l, d := &c.layers[layer], c.dim
	b, row := s.blocks[pos/c.opt.BlockLen], pos%c.opt.BlockLen
	for h := range c.heads {
		i := c.vector(b, h, row)
		kh, vh := k[h*d:(h+1)*d], v[h*d:(h+1)*d]
		switch c.opt.Type {
		case KVF16:
			kernels.F32ToF16(l.k16[i*d:(i+1)*d], kh)
			kernels.F32ToF16(l.v16[i*d:(i+1)*d], vh)
		case KVInt8:
			l.kScale[i] = kernels.QuantizeQ8(l.k8[i*d:(i+1)*d], kh)
			l.vScale[i] = kernels.QuantizeQ8(l.v8[i*d:(i+1)*d], vh)
		case KVF32:
			copy(l.k32[i*d:(i+1)*d], kh)
			copy(l.v32[i*d:(i+1)*d], vh)
		}
	}
}

// scores sets dst[i*ld+j] = q[i]·key(vec+j) for i < g, j < t.
func (l *kvLayer) scores(dst []float32, ld int, q []float32, vec, g, t, d int) {
	switch {
	case l.k16 != nil:
		kernels.ScoresF16(dst, ld, q, l.k16[vec*d:(vec+t)*d], g, t, d)
	case l.k8 != nil:
		kernels.ScoresQ8(dst, ld, q, l.k8[vec*d:(vec+t)*d], l.kScale[vec:vec+t], g, t, d)
	default:
		for i := range g {
			for j := range t {
				dst[i*ld+j] = kernels.Dot(q[i*d:(i+1)*d], l.k32[(vec+j)*d:(vec+j+1)*d])
			}
		}
	}
}

// accumulate adds Σ p[i*ld+j]·value(vec+j) over j < t to acc[i] for i < g.
func (l *kvLayer) accumulate(acc, p []float32, ld, vec, g, t, d int) {
	switch {
	case l.v16 != nil:
		kernels.AccumF16(acc, p, ld, l.v16[vec*d:(vec+t)*d], g, t, d)
	case l.v8 != nil:
		kernels.AccumQ8(acc, p, ld, l.v8[vec*d:(vec+t)*d], l.vScale[vec:vec+t], g, t, d)
	default:
		for i := range g {
			for j := range t {
				kernels.Axpy(acc[i*d:(i+1)*d], p[i*ld+j], l.v32[(vec+j)*d:(vec+j+1)*d])
			}
		}
	}
}

// copyBlock copies the first rows tokens of block src to block dst.
func (c *KVCache) copyBlock(dst, src int32, rows int) {
	for i := range c.layers {
		l := &c.layers[i]
		for h := range c.heads {
			to, from := c.vector(dst, h, 0), c.vector(src, h, 0)
			copyVectors(l.k16, to, from, rows, c.dim)
			copyVectors(l.v16, to, from, rows, c.dim)
			copyVectors(l.k32, to, from, rows, c.dim)
			copyVectors(l.v32, to, from, rows, c.dim)
			copyVectors(l.k8, to, from, rows, c.dim)
			copyVectors(l.v8, to, from, rows, c.dim)
			copyVectors(l.kScale, to, from, rows, 1)
			copyVectors(l.vScale, to, from, rows, 1)
		}
	}
}

// copyVectors copies n vectors of dim within s, which is nil when the format does not use it.
func copyVectors[T any](s []T, to, from, n, dim int) {
	if s != nil {
		copy(s[to*dim:(to+n)*dim], s[from*dim:(from+n)*dim])
	}
}

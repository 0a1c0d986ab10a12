package models

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

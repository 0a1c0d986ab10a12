package kv

import (
	"errors"

	"github.com/lutra-lm/lutra/kernels/attention"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// store holds the keys and values of all blocks.
type store struct {
	opt    Options
	shape  Shape
	layers []Layer
	memory *cpu.Arena // of the layers, of the index and of recurrent states; nil: the heap
}

// newLayer makes room in a for a layer of heads of dim elements.
func newLayer(a *cpu.Arena, opt Options, heads, dim int) (y Layer, err error) {
	y = Layer{heads: heads, dim: dim, stride: wholeGroups(opt.BlockLen)}
	n := opt.Blocks * heads * y.stride
	switch opt.Type {
	case Int8:
		err = errors.Join(room(a, &y.k8, n*dim), room(a, &y.v8, n*dim), room(a, &y.kScale, n), room(a, &y.vScale, n))
	case F32:
		err = errors.Join(room(a, &y.k32, n*dim), room(a, &y.v32, n*dim))
	default:
		err = errors.Join(room(a, &y.k16, n*dim), room(a, &y.v16, n*dim))
	}
	return y, err
}

// room makes n elements.
func room[T int8 | uint16 | int32 | float32](a *cpu.Arena, s *[]T, n int) (err error) {
	*s, err = cpu.Array[T](a, n)
	return err
}

// FirstVector returns the number of the first key and value of a head in block b.
func (l *Layer) FirstVector(b int32, head int) int { return (int(b)*l.heads + head) * l.stride }

// Blocks returns the size of the pool.
func (st *store) Blocks() int { return st.opt.Blocks }

// BlockLen returns the number of tokens a block holds.
func (st *store) BlockLen() int { return st.opt.BlockLen }

// Type returns the format of its keys and values.
func (st *store) Type() Type { return st.opt.Type }

// Shape returns the shape of the models whose keys and values the cache holds.
func (st *store) Shape() Shape { return st.shape }

// blocksFor returns the number of blocks that n tokens take.
func (st *store) blocksFor(n int) int { return (n + st.opt.BlockLen - 1) / st.opt.BlockLen }

// Stride returns the distance between the vectors of one head and block and of the next.
func (st *store) Stride() int { return wholeGroups(st.opt.BlockLen) }

// Layer returns one layer's keys and values.
func (st *store) Layer(i int) *Layer { return &st.layers[i] }

// TokenBytes returns the memory of the keys and values of one token in a layer.
func (st *store) TokenBytes(layer int) int64 {
	heads, dim := st.shape.of(layer)
	return 2 * arrayBytes(heads, dim, st.opt) / int64(st.opt.BlockLen)
}

// Store writes the keys and values k, v [KVHeads][HeadDim] of one position.
func (st *store) Store(layer int, s *Sequence, pos int, k, v []float32) {
	l := &st.layers[layer]
	d := l.dim
	b, row := s.blocks[pos/st.opt.BlockLen], pos%st.opt.BlockLen
	group, in := row/attention.KeyGroup*attention.KeyGroup, row%attention.KeyGroup
	for h := range l.heads {
		i := l.FirstVector(b, h)
		j := i + row
		kh, vh := k[h*d:(h+1)*d], v[h*d:(h+1)*d]
		switch st.opt.Type {
		case F16:
			attention.StoreKeyF16(l.k16[(i+group)*d:], in, kh)
			vector.F32ToF16(l.v16[j*d:(j+1)*d], vh)
		case Int8:
			l.kScale[j] = attention.StoreKeyQ8(l.k8[(i+group)*d:], in, kh)
			l.vScale[j] = attention.QuantizeQ8(l.v8[j*d:(j+1)*d], vh)
		case F32:
			copy(l.k32[j*d:], kh)
			copy(l.v32[j*d:], vh)
		}
	}
}

// Scores sets dst[i*ld+j] = q[i]·key j for i < g, j < t, and may set more of the rows. The
// keys lie in groups at, counted from number first; see kernels/attention.
func (l *Layer) Scores(dst []float32, ld int, q []float32, first int, at []int32, g, t, d int) {
	switch {
	case l.k16 != nil:
		attention.ScoresF16(dst, ld, q, l.k16[first*d:], at, g, t, d, attention.Ahead[uint16]{Data: l.v16[first*d:], At: at})
	case l.k8 != nil:
		attention.ScoresQ8(dst, ld, q, l.k8[first*d:], l.kScale[first:], at, g, t, d, attention.Ahead[int8]{Data: l.v8[first*d:], At: at})
	default:
		for i := range g {
			for j := range t {
				dst[i*ld+j] = vector.Dot(q[i*d:(i+1)*d], vectorAt(l.k32, first, at, j, d))
			}
		}
	}
}

// Accumulate adds Σ p[i*ld+j]·value j over j < t to acc[i] for i < g, with the values
// of groups at, counted from number first. Keys of the groups next, if as many, will
// be scored then.
func (l *Layer) Accumulate(acc, p []float32, ld, first int, at, next []int32, g, t, d int) {
	switch {
	case l.v16 != nil:
		attention.AccumF16(acc, p, ld, l.v16[first*d:], at, g, t, d, attention.Ahead[uint16]{Data: l.k16[first*d:], At: next})
	case l.v8 != nil:
		attention.AccumQ8(acc, p, ld, l.v8[first*d:], l.vScale[first:], at, g, t, d, attention.Ahead[int8]{Data: l.k8[first*d:], At: next})
	default:
		for i := range g {
			for j := range t {
				vector.Axpy(acc[i*d:(i+1)*d], p[i*ld+j], vectorAt(l.v32, first, at, j, d))
			}
		}
	}
}

// vectorAt returns number j of groups at.
func vectorAt(x []float32, first int, at []int32, j, d int) []float32 {
	n := first + int(at[j/attention.KeyGroup]) + j%attention.KeyGroup
	return x[n*d : (n+1)*d]
}

// copyBlock copies the first rows tokens of block src to block dst, and those
// that share a group of keys with them.
func (st *store) copyBlock(dst, src int32, rows int) {
	for i := range st.layers {
		l := &st.layers[i]
		for h := range l.heads {
			to, from, n := l.FirstVector(dst, h), l.FirstVector(src, h), wholeGroups(rows)
			copyVectors(l.k16, to, from, n, l.dim)
			copyVectors(l.k32, to, from, n, l.dim)
			copyVectors(l.k8, to, from, n, l.dim)
			copyVectors(l.kScale, to, from, n, 1)
			copyVectors(l.v16, to, from, rows, l.dim)
			copyVectors(l.v32, to, from, rows, l.dim)
			copyVectors(l.v8, to, from, rows, l.dim)
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

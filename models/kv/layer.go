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
func newLayer(a *cpu.Arena, opt Options, heads, dim int) (Layer, error) {
	y := Layer{heads: heads, dim: dim, stride: wholeGroups(opt.BlockLen)}
	n := opt.Blocks * heads * y.stride
	return y, errors.Join(y.keys.reserve(a, opt.Type.Keys(), n, dim), y.values.reserve(a, opt.Type.Values(), n, dim))
}

// FirstVector returns the number of the first key and value of a head in block b.
func (l *Layer) FirstVector(b int32, head int) int { return (int(b)*l.heads + head) * l.stride }

// Blocks returns the size of the pool.
func (st *store) Blocks() int { return st.opt.Blocks }

// BlockLen returns the number of tokens a block holds.
func (st *store) BlockLen() int { return st.opt.BlockLen }

// Cold tells whether Open finds nothing.
func (st *store) Cold() bool { return st.opt.Cold }

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
	return layerBytes(st.shape, layer, st.opt) / int64(st.opt.BlockLen)
}

// Store writes the keys and values k, v [KVHeads][HeadDim] of one position.
func (st *store) Store(layer int, s *Sequence, pos int, k, v []float32) {
	l := &st.layers[layer]
	d := l.dim
	b, row := s.blocks[pos/st.opt.BlockLen], pos%st.opt.BlockLen
	for h := range l.heads {
		j := l.FirstVector(b, h) + row
		l.keys.storeKey(j, row%attention.KeyGroup, k[h*d:(h+1)*d])
		l.values.storeValue(j, v[h*d:(h+1)*d])
	}
	if s.c.residuals.used() {
		s.c.storeOwn(layer, b, row, k, v)
	}
}

// Queries are the queries of a KV head, in the form that a layer's keys want.
type Queries struct {
	Rows   []float32 // [rows][HeadDim]
	packed []byte    // for Int4
	tile   attention.Tile
}

// NewQueries makes room for n queries of d elements.
func NewQueries(n, d int) Queries {
	return Queries{Rows: make([]float32, n*d), packed: make([]byte, n*attention.QueryBytesQ4(d))}
}

// Prepare makes the first n queries ready for Scores, once they are set.
func (l *Layer) Prepare(q *Queries, n int) {
	if l.keys.int4 != nil {
		vector.Hadamard(q.Rows[:n*l.dim], rotationOf(l.dim))
		attention.PackQueriesQ4(q.packed, q.Rows[:n*l.dim])
	}
}

// TurnKey turns a vector of HeadDim elements as the layer's keys are.
func (l *Layer) TurnKey(x []float32) {
	if l.keys.int4 != nil {
		vector.Hadamard(x, rotationOf(l.dim))
	}
}

// Finish makes values of what a query has gathered from Accumulate.
func (l *Layer) Finish(x []float32) {
	if l.values.int4 != nil {
		vector.Hadamard(x, rotationOf(l.dim))
	}
}

// Scores sets dst[i*ld+j] = q[row+i]·key j for i < g, j < t, and may set more of the rows. The
// keys lie in groups at, counted from number first; see kernels/attention.
func (l *Layer) Scores(dst []float32, ld int, q *Queries, row, first int, at []int32, g, t int) {
	d, k, v := l.dim, &l.keys, &l.values
	rows := q.Rows[row*d:]
	switch tiled := attention.Tiled(g, d); {
	case tiled && k.f16 != nil:
		q.tile.KeysF16(k.f16[first*d:], at, t, d)
		q.tile.Scores(dst, ld, rows, g)
	case tiled && k.int8 != nil:
		q.tile.KeysQ8(k.int8[first*d:], k.scale[first:], at, t, d)
		q.tile.Scores(dst, ld, rows, g)
	case k.f16 != nil:
		attention.ScoresF16(dst, ld, rows, k.f16[first*d:], at, g, t, d, ahead(v.f16, first*d, at))
	case k.int8 != nil:
		attention.ScoresQ8(dst, ld, rows, k.int8[first*d:], k.scale[first:], at, g, t, d, ahead(v.int8, first*d, at))
	case k.int4 != nil:
		attention.ScoresQ4(dst, ld, q.packed[row*attention.QueryBytesQ4(d):], k.int4[first*d/2:], k.scale4[first*d/attention.PartQ4:], at, g, t, d, ahead(v.int4, first*d/2, at))
	default:
		for i := range g {
			for j := range t {
				dst[i*ld+j] = vector.Dot(rows[i*d:(i+1)*d], vectorAt(k.f32, first, at, j, d))
			}
		}
	}
}

// ahead names the groups at of s, from element first on, unless s has another format.
func ahead[T int8 | uint8 | uint16](s []T, first int, at []int32) attention.Ahead[T] {
	if s == nil {
		return attention.Ahead[T]{}
	}
	return attention.Ahead[T]{Data: s[first:], At: at}
}

// Accumulate adds Σ p[i*ld+j]·value j over j < t to acc[i] for i < g, with the values
// of groups at, counted from number first. Keys of the groups next, if as many, will
// be scored then. It may use the room of q.
func (l *Layer) Accumulate(acc, p []float32, ld int, q *Queries, first int, at, next []int32, g, t int) {
	if g == 0 || t == 0 {
		return
	}
	d, k, v := l.dim, &l.keys, &l.values
	switch tiled := attention.Tiled(g, d); {
	case tiled && v.f16 != nil:
		q.tile.ValuesF16(v.f16[first*d:], at, t, d)
		q.tile.Accum(acc, p, ld, g)
	case tiled && v.int8 != nil:
		q.tile.ValuesQ8(v.int8[first*d:], v.scale[first:], at, t, d)
		q.tile.Accum(acc, p, ld, g)
	case v.f16 != nil:
		attention.AccumF16(acc, p, ld, v.f16[first*d:], at, g, t, d, ahead(k.f16, first*d, next))
	case v.int8 != nil:
		attention.AccumQ8(acc, p, ld, v.int8[first*d:], v.scale[first:], at, g, t, d, ahead(k.int8, first*d, next))
	case v.int4 != nil:
		attention.AccumQ4(acc, p, ld, v.int4[first*d/2:], v.scale4[first*d/attention.PartQ4:], at, g, t, d, ahead(k.int4, first*d/2, next))
	default:
		for i := range g {
			for j := range t {
				vector.Axpy(acc[i*d:(i+1)*d], p[i*ld+j], vectorAt(v.f32, first, at, j, d))
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
			to, from := l.FirstVector(dst, h), l.FirstVector(src, h)
			l.keys.copy(to, from, wholeGroups(rows), l.dim)
			l.values.copy(to, from, rows, l.dim)
		}
	}
}

package delta

import (
	"fmt"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// Tile is the number of columns that are computed together.
const Tile = 16

// Chunk is the number of tokens whose corrections are added to a state together.
const Chunk = 16

// panel is the columns of a state that lie together.
const panel = 2 * Tile

// A head's state, of keys and values that are width long, is a piece of memory with
// these parts:
//
//	panels   [width/panel][width][panel]: the state before the chunk begun, by columns;
//	         the last panel of an odd number of tiles is one tile
//	keys     [Chunk][width]: of the chunk's tokens
//	correct  [Chunk][width]: their corrections
//	decays   [Chunk]: by how much each of them has decayed since
//	before   [Tile]: the first one is by how much the state has, the others are unused

// Size returns the numbers of the state of a head, whose keys and values are width long, a
// multiple of Tile. A new sequence has zeros.
func Size(width int) int { return (width+2*Chunk)*width + Chunk + Tile }

// Overwritten returns where the part of a state begins that tokens from to to overwrite: all of it if they end a chunk.
// They add to the rest.
func Overwritten(width, from, to int) int {
	if from/Chunk != to/Chunk {
		return 0
	}
	return (width + 2*Chunk) * width // decays
}

// Scratch returns the numbers that Update needs besides.
func Scratch(width int) int { return Chunk * 2 * width }

// Tokens holds the inputs of consecutive tokens, for one value head. Each slice
// begins with the first token's; the next token's are Stride elements on, in Decay
// and Beta Gates elements.
type Tokens struct {
	N           int
	Position    int       // of the first one in its sequence
	Q, K        []float32 // [width] normed
	V           []float32 // [width] values, replaced by the output
	Stride      int
	Decay, Beta []float32
	Gates       int
}

// Update takes the tokens through the state of a head, which must stand before them.
// By its definition (Yang et al. 2024, eq. 10) each token computes
//
//	d = beta·(v - decay·stateᵀk)
//	state = decay·state + k·dᵀ
//	output = stateᵀq
//
// S is the state before the token's chunk, i counts the chunk's tokens so far, and r0 and r[i] are the decays
// of S and of token i since then. So the same is:
//
//	d = beta·(v - r0·Sᵀk - Σ r[i]·(k[i]·k)·d[i])
//	output = r0·Sᵀq + Σ r[i]·(k[i]·q)·d[i] + (k·q)·d
func Update(state []float32, width int, t *Tokens, scratch []float32) {
	last := (t.N - 1) * t.Stride
	if t.N < 1 || t.Position < 0 || width < Tile || width%Tile != 0 || len(state) != Size(width) || len(scratch) < Scratch(width) || t.Stride < 0 || t.Gates < 0 ||
		len(t.Q) < last+width || len(t.K) < last+width || len(t.V) < last+width || len(t.Decay) <= (t.N-1)*t.Gates || len(t.Beta) <= (t.N-1)*t.Gates {
		panic(fmt.Sprintf("kernels: %d tokens %d apart through a state of %d", t.N, t.Stride, len(state)))
	}
	all, part := width*width, width*Chunk
	h := head{
		width: width, t: t, products: scratch[:2*part],
		state: state[:all], keys: state[all:][:part], correct: state[all+part:][:part], decays: state[all+2*part:],
	}
	for at := 0; at < t.N; {
		begun := (t.Position + at) % Chunk
		n := min(Chunk-begun, t.N-at)
		h.chunk(at, begun, n)
		at += n
	}
}

// head is a state and the tokens on their way through it.
type head struct {
	width    int
	t        *Tokens
	state    []float32
	keys     []float32
	correct  []float32
	decays   []float32 // and before
	products []float32 // [n][2][width] of each token's key, and of its query, with the state
}

// mix holds the factors with which a token's correction and output take the chunk's
// corrections, the state before it, and itself.
type mix struct {
	key, query   [Chunk]float32
	before, beta float32
}

// chunk takes n tokens from number at on through the state, which are part of one
// chunk with begun tokens before them.
func (h *head) chunk(at, begun, n int) {
	t, width := h.t, h.width
	q, k := t.Q[at*t.Stride:], t.K[at*t.Stride:]
	products(h.state, width, q, k, t.Stride, n, h.products)
	if begun == 0 {
		h.decays[Chunk] = 1
	}
	for i := range n {
		var m mix
		token, q, k, decay := begun+i, q[i*t.Stride:][:width], k[i*t.Stride:][:width], t.Decay[(at+i)*t.Gates]
		copy(h.keys[token*width:], k)
		dots(h.keys[:(token+1)*width], q, k, &m)
		decays := h.decays[:Chunk]
		for j := range token {
			r := faded(decays[j] * decay)
			decays[j] = r
			m.key[j] *= r
			m.query[j] *= r
		}
		decays[token] = 1
		h.decays[Chunk] = faded(h.decays[Chunk] * decay)
		m.before, m.beta = h.decays[Chunk], t.Beta[(at+i)*t.Gates]
		correct(h.correct, token, &m, h.products[2*i*width:][:2*width], t.V[(at+i)*t.Stride:][:width])
	}
	if begun+n < Chunk {
		return
	}
	for i, r := range h.decays[:Chunk] {
		vector.ScaleInto(h.correct[i*width:][:width], r)
	}
	fold(h.state, h.keys, h.correct, h.decays[Chunk], width)
}

// leastDecay bounds the decays that count, far below what float32 shows of a sum. Products with smaller ones would be
// subnormal, which costs some processors a hundred times as long.
const leastDecay = 1.0 / (1 << 63)

// faded returns a decay, or 0 for one that is too small to count.
func faded(decay float32) float32 {
	if decay < leastDecay {
		return 0
	}
	return decay
}

// products multiplies n keys and queries, stride apart, with the columns of a state: to
// out[n][2][width], of the key first.
func products(state []float32, width int, q, k []float32, stride, n int, out []float32) {
	if productsFast(state, width, q, k, stride, n, out) {
		return
	}
	for lo := 0; lo < width; lo += panel {
		columns := min(panel, width-lo)
		p := state[lo*width:][:columns*width]
		for i := range n {
			for of, x := range [2][]float32{k[i*stride:][:width], q[i*stride:][:width]} {
				sum := out[(2*i+of)*width+lo:][:columns]
				clear(sum)
				for j, f := range x {
					for c, s := range p[j*columns:][:columns] {
						sum[c] += f * s
					}
				}
			}
		}
	}
}

// dots sets the key and the query of m to the products of k and q with rows of keys.
func dots(keys, q, k []float32, m *mix) {
	if dotsFast(keys, q, k, m) {
		return
	}
	for i := 0; len(keys) > 0; i++ {
		m.key[i], m.query[i] = vector.Dot(keys[:len(k)], k), vector.Dot(keys[:len(q)], q)
		keys = keys[len(k):]
	}
}

// correct computes the correction of the token with that number of its chunk, which
// goes to all[Chunk][width], and its output in place of the values v. products holds
// the products of its key, then of its query, with the state.
func correct(all []float32, token int, m *mix, products, v []float32) {
	if correctFast(all, token, m, products, v) {
		return
	}
	width := len(v)
	for c := range v {
		u, o := m.before*products[c], m.before*products[width+c]
		for i := range token {
			d := all[i*width+c]
			u += m.key[i] * d
			o += m.query[i] * d
		}
		d := (v[c] - u) * m.beta
		all[token*width+c] = d
		v[c] = o + m.query[token]*d
	}
}

// fold adds the products of a full chunk's keys and corrections d, [Chunk][width], to
// its state, which has decayed by before.
func fold(state, keys, d []float32, before float32, width int) {
	if foldFast(state, keys, d, before, width) {
		return
	}
	for lo := 0; lo < width; lo += panel {
		columns := min(panel, width-lo)
		for i := range width {
			row := state[lo*width+i*columns:][:columns]
			for c := range row {
				row[c] *= before
			}
			for t := range Chunk {
				f := keys[t*width+i]
				for c, x := range d[t*width+lo:][:columns] {
					row[c] += f * x
				}
			}
		}
	}
}

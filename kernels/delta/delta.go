package delta

import "fmt"

// Tile is the number of columns that are updated together.
const Tile = 16

// chains is how many sums a column has, of every fourth row each.
const chains = 4

// Tokens are the numbers of consecutive tokens, of one value head. Each slice
// begins with the first token's; those of the next are Stride elements on, in Decay
// and Beta Gates elements.
type Tokens struct {
	N           int
	Q, K        []float32 // [keys] normed
	V           []float32 // [Tile] values, replaced by the output
	Stride      int
	Decay, Beta []float32
	Gates       int
}

// Update takes the tokens one after the other through a tile of a state,
// [keys][Tile], keys being a multiple of 4 (Yang et al. 2024, eq. 10):
//
//	d = beta·(v - decay·Σ k[i]·state[i])
//	state[i] = decay·state[i] + k[i]·d
//	output = Σ q[i]·state[i]
func Update(state []float32, t *Tokens) {
	keys := len(state) / Tile
	if last := (t.N - 1) * t.Stride; t.N < 1 || keys < 1 || keys%chains != 0 || keys*Tile != len(state) || t.Stride < 0 || t.Gates < 0 ||
		len(t.Q) < last+keys || len(t.K) < last+keys || len(t.V) < last+Tile || len(t.Decay) <= (t.N-1)*t.Gates || len(t.Beta) <= (t.N-1)*t.Gates {
		panic(fmt.Sprintf("kernels: %d tokens %d apart through a state of %d", t.N, t.Stride, len(state)))
	}
	if !updateFast(state, t) {
		update(state, keys, t)
	}
}

// update has the order of sums of the assembly.
func update(state []float32, keys int, t *Tokens) {
	for n := range t.N {
		at := n * t.Stride
		q, k, v := t.Q[at:at+keys], t.K[at:at+keys], t.V[at:at+Tile]
		decay, beta := t.Decay[n*t.Gates], t.Beta[n*t.Gates]
		var u, o [chains][Tile]float32
		for i, x := range k {
			row, sum := state[i*Tile:i*Tile+Tile], &u[i%chains]
			for c := range sum {
				sum[c] += x * row[c]
			}
		}
		var d [Tile]float32
		for c := range d {
			d[c] = beta * (v[c] - decay*total(&u, c))
		}
		for i, x := range k {
			row, sum, y := state[i*Tile:i*Tile+Tile], &o[i%chains], q[i]
			for c := range sum {
				s := decay*row[c] + x*d[c]
				row[c] = s
				sum[c] += y * s
			}
		}
		for c := range v {
			v[c] = total(&o, c)
		}
	}
}

// total is the sum of a column's chains.
func total(sums *[chains][Tile]float32, c int) float32 {
	return (sums[0][c] + sums[2][c]) + (sums[1][c] + sums[3][c])
}

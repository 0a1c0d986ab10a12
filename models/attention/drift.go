package attention

import (
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/kv"
)

// Drift is the bias that all keys of a layer share, and which rotates as they do. Biases of slow pairs are a hundred times
// as large as the numbers that tokens add (Qwen2.5), so that 4 or 8 bits would leave tokens few levels. Keys are stored
// without it: without the bias as it is in the middle of the key's span of positions, which differs little from the bias at the
// key. All scores of a span get the same number back.
type Drift struct {
	bias   []float32 // [KVHeads*dim], zero for fast pairs
	dim    int
	halves bool // the order of pairs: vector.RopeHalves, or RopePairs
	turns  Turns
}

// Turns are the cosines and sines in the middle of each span of positions, of all pairs.
type Turns [][]float32

// NewTurns makes the turns of n pairs up to context; angles sets cosines and sines of a position.
func NewTurns(n, context int, angles func(cos, sin []float32, position int32)) (t Turns) {
	for middle := DriftSpan / 2; middle < context+DriftSpan; middle += DriftSpan {
		turn := make([]float32, 2*n)
		angles(turn[:n], turn[n:], int32(middle))
		t = append(t, turn)
	}
	return t
}

// DriftSpan is the number of positions that have the same drift.
const DriftSpan = 64

// mostDrift bounds heads with a drift.
const mostDrift = 256

// NewDrift makes the drift of biases of heads of dim elements, nil for heads that have none. Pair i turns by freq[i] a
// position.
func NewDrift(bias []float32, dim int, halves bool, freq []float64, turns Turns) *Drift {
	const slow = 0.5 // radians between the middle of a span and its ends
	n := len(freq)
	if dim > mostDrift || 2*n > dim {
		return nil
	}
	d := &Drift{bias: make([]float32, len(bias)), dim: dim, halves: halves, turns: turns}
	for h := 0; h < len(bias); h += dim {
		for i, f := range freq {
			x, y := h+2*i, h+2*i+1
			if halves {
				x, y = h+i, h+n+i
			}
			if f*DriftSpan/2 <= slow {
				d.bias[x], d.bias[y] = bias[x], bias[y]
			}
		}
	}
	return d
}

// at sets mean to the drift of a head's keys at a position.
func (d *Drift) at(mean []float32, head, position int) {
	copy(mean, d.bias[head*d.dim:])
	turn := d.turns[position/DriftSpan]
	n := len(turn) / 2
	if d.halves {
		vector.RopeHalves(mean, d.dim, turn[:n], turn[n:])
		return
	}
	vector.RopePairs(mean, d.dim, turn[:n], turn[n:])
}

// DriftIn returns the drift that the keys of that cache are stored without, nil if they are stored whole.
func (m *Mask) DriftIn(cache *kv.Cache) *Drift {
	if keys := cache.Type().Keys(); keys != kv.Int4 && keys != kv.Int8 {
		return nil
	}
	return m.Drift
}

// Settle takes the drift from the keys [KVHeads*dim] of a position.
func (d *Drift) Settle(keys []float32, position int) {
	var mean [mostDrift]float32
	for h := 0; h < len(keys); h += d.dim {
		d.at(mean[:d.dim], h/d.dim, position)
		vector.Axpy(keys[h:h+d.dim], -1, mean[:d.dim])
	}
}

// Restore adds the drift to keys [n][dim] of a head in float16, which stand at positions from first on.
func (d *Drift) Restore(keys []uint16, head, first int) {
	if d == nil {
		return
	}
	var mean, key [mostDrift]float32
	for at := first; len(keys) > 0; at, keys = at+1, keys[d.dim:] {
		if at == first || at%DriftSpan == 0 {
			d.at(mean[:d.dim], head, at)
		}
		for i, h := range keys[:d.dim] {
			key[i] = vector.FromF16(h)
		}
		vector.AddInto(key[:d.dim], mean[:d.dim])
		vector.F32ToF16(keys[:d.dim], key[:d.dim])
	}
}

// ones spread a span's number over its scores.
var ones = func() (x [DriftSpan]float32) {
	for i := range x {
		x[i] = 1
	}
	return x
}()

// unsettle adds the drift to the scores of n queries. Their keys stand at count positions from lo on.
func (d *Drift) unsettle(scores []float32, ld int, layer *kv.Layer, q *kv.Queries, n, head, lo, count int) {
	var mean [mostDrift]float32
	for at := lo; at < lo+count; {
		end := min(lo+count, (at/DriftSpan+1)*DriftSpan)
		d.at(mean[:d.dim], head, at)
		layer.TurnKey(mean[:d.dim])
		for i := range n {
			vector.Axpy(scores[i*ld+at-lo:i*ld+end-lo], vector.Dot(q.Rows[i*d.dim:(i+1)*d.dim], mean[:d.dim]), ones[:])
		}
		at = end
	}
}

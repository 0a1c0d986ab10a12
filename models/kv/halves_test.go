package kv

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/vector"
)

func TestHalvesAreTheStoredKeysAndValues(t *testing.T) {
	shape := Shape{Layers: 2, Heads: 2, HeadDim: 96}
	for kind, within := range map[Type]float64{F16: 1e-3, Int8: 2e-2, F32: 1e-3, Int4: 0.6, TypeOf(F16, Int4): 0.6} {
		c, err := New(shape, Options{Type: kind, BlockLen: 12, Blocks: 4})
		if err != nil {
			t.Fatal(err)
		}
		const n = 30
		r, s := rand.New(rand.NewPCG(1, 1)), c.Open(nil)
		if err := s.Grow(n); err != nil {
			t.Fatal(err)
		}
		width := shape.Heads * shape.HeadDim
		k, v := make([]float32, n*width), make([]float32, n*width)
		for i := range k {
			k[i], v[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
		}
		for pos := range n {
			c.Store(1, s, pos, k[pos*width:(pos+1)*width], v[pos*width:(pos+1)*width])
		}
		const lo, hi, head = 5, 29, 1
		keys, values := make([]uint16, (hi-lo)*shape.HeadDim), make([]uint16, (hi-lo)*shape.HeadDim)
		s.Halves(keys, values, 1, head, lo, hi)
		for i := range keys {
			at := (lo+i/shape.HeadDim)*width + head*shape.HeadDim + i%shape.HeadDim
			for _, pair := range [][2]float32{{vector.FromF16(keys[i]), k[at]}, {vector.FromF16(values[i]), v[at]}} {
				if !(math.Abs(float64(pair[0]-pair[1])) <= within*max(1, math.Abs(float64(pair[1])))) {
					t.Fatalf("%v: number %d is %v, want %v", kind, i, pair[0], pair[1])
				}
			}
		}
		c.Close()
	}
}

package attention

import (
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/kv"
)

func TestAQueryReadsItsOwnBlockIn8BitsAndAllBeforeIn4(t *testing.T) {
	p := pool.New(1)
	defer p.Close()
	cfg := config{6, kv.Shape{Layers: 1, Heads: 2, HeadDim: 64}}
	const block, length = 16, 2*16 + 10
	for _, kind := range []kv.Type{kv.Int4, int8AndInt4, int4AndF16} {
		r := rand.New(rand.NewPCG(3, uint64(kind)))
		c := newTestCase(t, r, cfg, kv.Options{Type: kind, BlockLen: block}, Mask{Scale: 0.2}, []int{length}, length)
		worst := func(out []float32, from, to int) (most float64) {
			for row := from; row < to; row++ {
				for j, want := range c.exact(row) {
					most = max(most, want-float64(out[row*cfg.heads*cfg.HeadDim+j]), float64(out[row*cfg.heads*cfg.HeadDim+j])-want)
				}
			}
			return most
		}
		out := c.attend(pool.Workers{Pool: p}, 0, length)
		if most := worst(out, 0, block); most > kvError[kv.Int8] {
			t.Errorf("%v: a row of the first block is off by %v", kind, most)
		}
		if most := worst(out, block, length); most <= kvError[kv.Int8] {
			t.Errorf("%v: rows of later blocks are off by no more than %v", kind, most)
		}
		c.rows[0].Seq.Settle()
		if n := c.cache.FreeResiduals(); n != 2 {
			t.Errorf("%v: %d of %d residuals are free, and one block is written", kind, n, c.cache.Residuals())
		}
		sameBits(t, kind.String()+", blocks before without residuals", c.attend(pool.Workers{Pool: p}, 2*block, length), out[2*block*cfg.heads*cfg.HeadDim:])
	}
}

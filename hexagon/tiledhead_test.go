package hexagon

import (
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// A head in fp16, one of more columns than are multiplied at once too, and one of more rows than
// go by lookups, within the step's request and by the host between products.
func TestTheHeadOfAnyFormatIsInTheStepsRequest(t *testing.T) {
	p := newPool(t)
	wide := smallShape
	wide.Hidden, wide.FFN, wide.Layers = 5376, 256, 1
	for _, c := range []struct {
		name  string
		shape synthetic.Shape
		head  gguf.Type
		rows  int
	}{{"fp16", smallShape, gguf.F16, 3}, {"fp16, wide", wide, gguf.F16, 2}, {"Q4_0, rows", smallShape, gguf.Q4_0, 6}} {
		t.Run(c.name, func(t *testing.T) {
			tokens := make([]int32, 20)
			for i := range tokens {
				tokens[i] = int32(3 + i*31%290)
			}
			var logits [2][]float32
			for i := range logits {
				b := onDevice(t, "hexagon-go", Options{}, p, func() (*gguf.File, error) {
					return synthetic.Build(c.shape, synthetic.Options{Blocks: gguf.Q4_0, Head: c.head, Seed: 5})
				})
				d, f := backendOf(t, b), newFeeder(t, b.Model)
				for _, l := range d.plan.matrices {
					if l.Rows != c.shape.Vocab && l.lookups > 0 {
						l.lookups = 8 // as many as the step has rows
					}
				}
				for _, l := range d.plan.layers.layers {
					for _, s := range []*stack{l.qkv, l.o, l.gateUp, l.down} {
						s.most = 8
					}
				}
				if i == 1 {
					d.plan.layers.tiled = nil
				}
				f.feed(1, tokens[:8]...)
				before := d.Work().Runs
				logits[i] = slices.Clone(f.feed(c.rows-1, tokens[8:][:c.rows]...))
				if n := d.Work().Runs - before; (n == 1) != (i == 0) {
					t.Errorf("%d requests", n)
				}
			}
			if e := nmse(logits[0], logits[1]); len(logits[0]) != (c.rows-1)*c.shape.Vocab || !(e <= 1e-9) {
				t.Errorf("NMSE between the head in the request and behind it is %.3g", e)
			}
		})
	}
}

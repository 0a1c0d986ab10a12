package kv

import (
	"github.com/lutra-lm/lutra/kernels/attention"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// Halves copies the keys and values of positions [lo, hi) of one layer and KV head to keys
// and values, [hi-lo][HeadDim], for attention elsewhere than on the CPU. They are float16;
// other types of cache are rounded to it.
func (s *Sequence) Halves(keys, values []uint16, layer, head, lo, hi int) {
	c := s.c
	l := &c.layers[layer]
	d, n := l.dim, c.opt.BlockLen
	for pos := lo; pos < hi; pos++ {
		j := l.FirstVector(s.blocks[pos/n], head) + pos%n
		l.keys.halves(keys[(pos-lo)*d:][:d], j, pos%n%attention.KeyGroup)
		l.values.halves(values[(pos-lo)*d:][:d], j, -1)
	}
}

// halves reads key j, which is number in of its group, or value j if in is negative.
func (x *vectors) halves(to []uint16, j, in int) {
	d, first, step := len(to), j*len(to), 1
	if in >= 0 && x.f32 == nil {
		first, step = (j-in)*d+in, attention.KeyGroup
	}
	switch {
	case x.f16 != nil:
		for i := range to {
			to[i] = x.f16[first+i*step]
		}
	case x.int8 != nil:
		for i := range to {
			to[i] = vector.ToF16(x.scale[j] * float32(x.int8[first+i*step]))
		}
	case x.int4 != nil:
		plain := make([]float32, d)
		if in >= 0 {
			j -= in
			attention.LoadKeyQ4(plain, x.int4[j*d/2:], x.scale4[j*d/attention.PartQ4:], in)
		} else {
			attention.LoadValueQ4(plain, x.int4[j*d/2:], x.scale4[j*d/attention.PartQ4:])
		}
		vector.Hadamard(plain, rotationOf(d))
		vector.F32ToF16(to, plain)
	default:
		vector.F32ToF16(to, x.f32[first:first+d])
	}
}

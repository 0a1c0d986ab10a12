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
		l.halves(keys[(pos-lo)*d:][:d], values[(pos-lo)*d:][:d], j, pos%n%attention.KeyGroup)
	}
}

// halves reads vector j, which is number in of its group of keys.
func (l *Layer) halves(key, value []uint16, j, in int) {
	d := len(key)
	group := (j - in) * d // of interleaved keys
	switch {
	case l.k16 != nil:
		for i := range key {
			key[i] = l.k16[group+i*attention.KeyGroup+in]
		}
		copy(value, l.v16[j*d:])
	case l.k8 != nil:
		for i := range key {
			key[i] = vector.ToF16(l.kScale[j] * float32(l.k8[group+i*attention.KeyGroup+in]))
			value[i] = vector.ToF16(l.vScale[j] * float32(l.v8[j*d+i]))
		}
	default:
		vector.F32ToF16(key, l.k32[j*d:][:d])
		vector.F32ToF16(value, l.v32[j*d:][:d])
	}
}

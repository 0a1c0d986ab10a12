package kv

// Plain gives the key and the value of one position, layer and KV head of a
// F32 cache, [HeadDim] each, to read or write in place. It is for reference
// models, which need not be fast; attention reads whole blocks.
func (s *Sequence) Plain(layer, head, pos int) (key, value []float32) {
	l, n := &s.c.layers[layer], s.c.opt.BlockLen
	at := (l.FirstVector(s.blocks[pos/n], head) + pos%n) * l.dim
	return l.keys.f32[at : at+l.dim], l.values.f32[at : at+l.dim]
}

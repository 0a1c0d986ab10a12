package models

// Plain gives the key and the value of one position, layer and KV head of a
// KVF32 cache, [HeadDim] each, to read or write in place. It is the plainest
// way into the cache, for reference models; architectures walk blocks instead.
func (s *KVSeq) Plain(layer, head, pos int) (key, value []float32) {
	c, l := s.c, s.c.opt.BlockLen
	at := (c.vectors(s.blocks[pos/l], head) + pos%l) * c.dim
	return c.layers[layer].k32[at : at+c.dim], c.layers[layer].v32[at : at+c.dim]
}

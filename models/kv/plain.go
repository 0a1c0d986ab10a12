package kv

// Plain gives the key and the value of one position, layer and KV head of a
// F32 cache, [HeadDim] each, to read or write in place. It is for reference
// models, which need not be fast; attention reads whole blocks.
func (s *Sequence) Plain(layer, head, pos int) (key, value []float32) {
	c, l := s.c, s.c.opt.BlockLen
	at := (c.FirstVector(s.blocks[pos/l], head) + pos%l) * c.shape.HeadDim
	return c.layers[layer].k32[at : at+c.shape.HeadDim], c.layers[layer].v32[at : at+c.shape.HeadDim]
}

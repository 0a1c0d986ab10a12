package models

import (
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
)

// encoder adds to a decoder's graph what an encoder has besides. Tokens attend to all of their sequence. For
// every row:
//
//	x = norm(embedding of the token + of its type + of its position)
//	in each layer:
//		x = norm(x + attention(x))
//		x = norm(x + feedForward(x))
//
// with LayerNorm (Ba et al. 2016) throughout. ModernBERT's layers have their norms where a decoder has them, and
// the end has one. Texts are of the first type, except the second text of a ranked pair. EmbeddingGemma is a
// decoder whose tokens see all others.
type encoder struct {
	kinds     [][]float32  // [Hidden] embeddings of the types; none, one, or two where pairs are ranked
	separator int32        // with two kinds: the token that ends the first text of a pair
	positions *gguf.Tensor // [Context][Hidden]; nil: positions are rotations or lower scores
	norm      rowNorm      // of embeddings; EmbeddingGemma has none
	layers    []encoderNorms
}

// encoderNorms are the norms of one layer, after its halves.
type encoderNorms struct{ attention, ffn rowNorm }

// loadEncoder loads an encoder's embeddings and norms.
func loadEncoder(t *tensors, m *spec) *encoder {
	e := &encoder{kinds: loadKinds(t, m)}
	if m.arch.norms.layerNorms() {
		e.norm = loadLayerNorm(t, m, "token_embd_norm")
	}
	if m.arch.positions.embedded {
		e.positions = t.Tensor(positionTensor, m.Hidden, m.longest)
	}
	for i := 0; i < m.Layers && m.arch.norms.after; i++ {
		y := &m.layers[i]
		e.layers = append(e.layers, encoderNorms{loadLayerNorm(t, m, y.tensor("attn_output_norm")), loadLayerNorm(t, m, y.tensor("layer_output_norm"))})
	}
	return e
}

// loadKinds loads the embeddings of the types that texts have: only ranking takes the second.
func loadKinds(t *tensors, m *spec) (kinds [][]float32) {
	x := t.File().Tensor("token_types.weight")
	if x == nil {
		return nil
	}
	wanted := 1
	if m.poolingType == poolingRank {
		wanted = min(2, x.Rows())
	}
	x = t.Tensor(x.Name, m.Hidden, x.Rows())
	for i := 0; i < wanted && x != nil; i++ {
		kind := make([]float32, m.Hidden)
		if err := x.Dequantize(kind, i*m.Hidden); err != nil {
			t.Fail("%v", err)
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// normsAfter tells whether norms stand after the halves of layers.
func (e *encoder) normsAfter() bool { return e != nil && len(e.layers) > 0 }

// secondTexts appends to dst, for each token of b, whether it belongs to the second text of a pair, which
// begins after the first separator. It appends nothing if all texts are first ones.
func (e *encoder) secondTexts(dst []bool, b *Batch) []bool {
	if e == nil || len(e.kinds) < 2 {
		return dst
	}
	for i := range b.Spans {
		second := false
		for _, token := range b.Tokens[b.Spans[i].Start:b.Spans[i].End] {
			dst = append(dst, second)
			second = second || token == e.separator
		}
	}
	return dst
}

// begin turns the embeddings of tokens into the embeddings of rows.
func (e *encoder) begin(s *rowShard) {
	if s.second != nil {
		addKinds(s, e.kinds)
	} else if len(e.kinds) > 0 {
		s.ops.addBias(s.x, s.rows, e.kinds[0])
	}
	if e.positions != nil {
		addPositions(s, e.positions)
	}
	s.ops.layerNorm(s.x, s.rows, e.norm.weight, e.norm.bias, s.cfg.NormEps)
}

// feedForward ends a layer with norms behind its halves, whose attention is in y.
func (e *encoder) feedForward(s *rowShard, layer int, f rowFunction) {
	n := &e.layers[layer]
	s.ops.add(s.x, s.y, s.rows, s.cfg.Hidden)
	s.ops.layerNorm(s.x, s.rows, n.attention.weight, n.attention.bias, s.cfg.NormEps)
	copy(s.h, s.x[:s.rows*s.cfg.Hidden])
	f.run(s)
	s.ops.add(s.x, s.y, s.rows, s.cfg.Hidden)
	s.ops.layerNorm(s.x, s.rows, n.ffn.weight, n.ffn.bias, s.cfg.NormEps)
}

// addKinds adds the embeddings of the rows' types to x.
func addKinds(s *rowShard, kinds [][]float32) {
	o := &s.ops
	o.shard, o.a, o.b = s, kinds[0], kinds[1]
	o.each(s.rows, s.cfg.Hidden, func(o *rowOps, i int) {
		kind := o.a
		if o.shard.second[i] {
			kind = o.b
		}
		vector.AddInto(rowOf(o.shard.x, i, len(kind)), kind)
	})
}

// addPositions adds the embeddings of the rows' positions to x.
func addPositions(s *rowShard, table *gguf.Tensor) {
	o := &s.ops
	o.shard, o.table = s, table
	o.each(s.rows, s.cfg.Hidden, func(o *rowOps, i int) {
		width := o.shard.cfg.Hidden
		row := rowOf(o.shard.h, i, width) // not in use yet
		if err := o.table.Dequantize(row, o.shard.rowPos[i].Pos*width); err != nil {
			failed := err // a variable of its own, so that only a failure allocates one
			o.failed.Store(&failed)
			clear(row)
		}
		vector.AddInto(rowOf(o.shard.x, i, width), row)
	})
}

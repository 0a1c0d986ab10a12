package models

import (
	"math"
	"math/bits"

	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
)

// encoder is what the graph of an encoder has besides a decoder's. Tokens attend to all
// of their sequence. Of every row:
//
//	x = norm(embedding of the token + of its type + of its position)
//	in each layer:
//		x = norm(x + attention(x))
//		x = norm(x + feedForward(x))
//
// with LayerNorm (Ba et al. 2016) throughout. ModernBERT's layers have their norms where
// a decoder has them, and the end has one. Texts are of the first type, but for the second
// text of a pair that is ranked.
type encoder struct {
	kinds     [][]float32  // [Hidden] embeddings of the types; none, one, or two where pairs are ranked
	separator int32        // with two kinds: the token that ends the first text of a pair
	positions *gguf.Tensor // [Context][Hidden]; nil: positions are rotations or lower scores
	norm      rowNorm      // of embeddings
	layers    []encoderNorms
}

// encoderNorms are those of one layer, behind its halves.
type encoderNorms struct{ attention, ffn rowNorm }

// encoder loads an encoder's embeddings and norms.
func (l *loader) encoder() *encoder {
	c := &l.cfg
	if c.Whole = true; l.Err() != nil {
		return nil
	}
	e := &encoder{norm: l.layerNorm("token_embd_norm"), kinds: l.kinds()}
	if l.arch.positions.embedded {
		if e.positions = l.Tensor("position_embd.weight", c.Hidden, l.count("context_length", 1, 1<<30, required)); l.Err() != nil {
			return e
		}
	}
	for i := 0; i < c.Layers && l.arch.norms.after; i++ {
		name := layerNames(i)
		e.layers = append(e.layers, encoderNorms{l.layerNorm(name("attn_output_norm")), l.layerNorm(name("layer_output_norm"))})
	}
	return e
}

// kinds are the embeddings of the types that texts have: only ranking takes the second.
func (l *loader) kinds() (kinds [][]float32) {
	t := l.file.Tensor("token_types.weight")
	if t == nil {
		return nil
	}
	wanted := 1
	if l.ranks() {
		wanted = min(2, t.Rows())
	}
	t = l.Tensor(t.Name, l.cfg.Hidden, t.Rows())
	for i := 0; i < wanted && t != nil; i++ {
		kind := make([]float32, l.cfg.Hidden)
		if err := t.Dequantize(kind, i*l.cfg.Hidden); err != nil {
			l.Fail("%v", err)
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// layerNorm loads a LayerNorm. ModernBERT's have no bias.
func (l *loader) layerNorm(name string) rowNorm {
	n := rowNorm{weight: l.Vector(name+".weight", l.cfg.Hidden), centred: true}
	if l.arch.norms.kind == layerNormBare {
		n.bias = make([]float32, l.cfg.Hidden)
	} else {
		n.bias = l.Vector(name+".bias", l.cfg.Hidden)
	}
	return n
}

// normsBehind tells whether norms stand behind the halves of layers.
func (e *encoder) normsBehind() bool { return e != nil && len(e.layers) > 0 }

// secondTexts appends to dst, for each token of b, whether it belongs to the second text
// of a pair, which begins behind the first separator; nothing where that is all one.
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

// begin makes of the tokens' embeddings those of rows.
func (e *encoder) begin(s *rowShard) {
	if s.second != nil {
		s.ops.addKinds(s, e.kinds)
	} else if len(e.kinds) > 0 {
		s.ops.addBias(s.x, s.rows, e.kinds[0])
	}
	if e.positions != nil {
		s.ops.addPositions(s, e.positions)
	}
	s.ops.layerNorm(s.x, s.rows, &e.norm, s.cfg.NormEps)
}

// feedForward ends a layer with norms behind its halves, whose attention is in y.
func (e *encoder) feedForward(s *rowShard, layer int, f rowFunction) {
	n := &e.layers[layer]
	s.ops.add(s.x, s.y, s.rows, s.cfg.Hidden)
	s.ops.layerNorm(s.x, s.rows, &n.attention, s.cfg.NormEps)
	copy(s.h, s.x[:s.rows*s.cfg.Hidden])
	f.run(s)
	s.ops.add(s.x, s.y, s.rows, s.cfg.Hidden)
	s.ops.layerNorm(s.x, s.rows, &n.ffn, s.cfg.NormEps)
}

// addKinds adds the embeddings of the rows' types to x.
func (o *rowOps) addKinds(s *rowShard, kinds [][]float32) {
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
func (o *rowOps) addPositions(s *rowShard, table *gguf.Tensor) {
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

// layerNorm is n of the rows of x, in place.
func (o *rowOps) layerNorm(x []float32, rows int, n *rowNorm, eps float32) {
	if n.weight == nil {
		return
	}
	o.dst, o.w, o.b, o.eps = x, n.weight, n.bias, eps
	o.each(rows, len(n.weight), func(o *rowOps, i int) {
		vector.LayerNorm(rowOf(o.dst, i, len(o.w)), o.w, o.b, o.eps)
	})
}

// gelu sets x[n][width] to gelu(x).
func (o *rowOps) gelu(x []float32, n, width int) {
	o.dst, o.width = x, width
	o.each(n, width, func(o *rowOps, i int) { vector.GELU(rowOf(o.dst, i, o.width)) })
}

// alibiSlopes are those of so many heads: powers of 2^(-8/n) for the largest power of two
// n, and for further heads every other one of 2^(-4/n) (Press et al. 2022, §3).
func alibiSlopes(heads int) []float32 {
	n := 1 << (bits.Len(uint(heads)) - 1)
	slopes := make([]float32, heads)
	for i := range slopes {
		exponent := -8 * float64(i+1) / float64(n)
		if i >= n {
			exponent = -4 * float64(2*(i-n)+1) / float64(n)
		}
		slopes[i] = float32(math.Exp2(exponent))
	}
	return slopes
}

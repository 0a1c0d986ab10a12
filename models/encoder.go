package models

import (
	"math"
	"math/bits"

	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
)

// encoder is what the graph of an encoder has in place of a decoder's norms. Tokens
// attend to all of their sequence. Of every row:
//
//	x = norm(embedding of the token + of its type + of its position)
//	in each layer:
//		x = norm(x + attention(x))
//		x = norm(x + feedForward(x))
//
// with LayerNorm (Ba et al. 2016) throughout. All texts are of the first type.
type encoder struct {
	kind      []float32    // [Hidden] embedding of the type
	positions *gguf.Tensor // [Context][Hidden]; nil: positions are rotations
	norm      layerNorm    // of embeddings
	layers    []encoderNorms
}

// encoderNorms are those of one layer.
type encoderNorms struct{ attention, ffn layerNorm }

// layerNorm is the weights of one, [Hidden] each.
type layerNorm struct{ weight, bias []float32 }

// encoder loads an encoder's embeddings and norms.
func (l *loader) encoder() *encoder {
	c := &l.cfg
	if c.Whole = true; l.Err() != nil {
		return nil
	}
	e := &encoder{norm: l.layerNorm("token_embd_norm")}
	if t := l.file.Tensor("token_types.weight"); t != nil {
		e.kind = make([]float32, c.Hidden)
		if t = l.Tensor(t.Name, c.Hidden, t.Rows()); t != nil {
			if err := t.Dequantize(e.kind, 0); err != nil {
				l.Fail("%v", err)
			}
		}
	}
	if l.variant.positions {
		if e.positions = l.Tensor("position_embd.weight", c.Hidden, l.count("context_length", 1, 1<<30, required)); l.Err() != nil {
			return e
		}
	}
	for i := range c.Layers {
		name := layerNames(i)
		e.layers = append(e.layers, encoderNorms{l.layerNorm(name("attn_output_norm")), l.layerNorm(name("layer_output_norm"))})
	}
	return e
}

func (l *loader) layerNorm(name string) layerNorm {
	return layerNorm{l.Vector(name+".weight", l.cfg.Hidden), l.Vector(name+".bias", l.cfg.Hidden)}
}

// begin makes of the tokens' embeddings those of rows.
func (e *encoder) begin(s *rowShard) {
	s.ops.addBias(s.x, s.rows, e.kind)
	if e.positions != nil {
		s.ops.addPositions(s, e.positions)
	}
	s.ops.layerNorm(s.x, s.rows, &e.norm, s.cfg.NormEps)
}

// feedForward ends a layer, whose attention is in y.
func (e *encoder) feedForward(s *rowShard, layer int, f rowFunction) {
	n := &e.layers[layer]
	s.ops.add(s.x, s.y, s.rows, s.cfg.Hidden)
	s.ops.layerNorm(s.x, s.rows, &n.attention, s.cfg.NormEps)
	copy(s.h, s.x[:s.rows*s.cfg.Hidden])
	f.run(s)
	s.ops.add(s.x, s.y, s.rows, s.cfg.Hidden)
	s.ops.layerNorm(s.x, s.rows, &n.ffn, s.cfg.NormEps)
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

// layerNorm normalises the rows of x[n] in place.
func (o *rowOps) layerNorm(x []float32, n int, norm *layerNorm, eps float32) {
	o.dst, o.w, o.b, o.eps = x, norm.weight, norm.bias, eps
	o.each(n, len(norm.weight), func(o *rowOps, i int) {
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

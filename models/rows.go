package models

import (
	"sync/atomic"

	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
)

// rowOps runs what the graph does to each row by itself. Arguments stand in
// fields, so that handing them to workers allocates nothing.
type rowOps struct {
	workers pool.Workers
	n       int // rows
	part    int // rows a part
	do      func(o *rowOps, row int)

	dst, a, b, w []float32
	width        int // elements of a row of dst
	stride       int // of a
	eps, scale   float32
	tokens       []int32
	table        *gguf.Tensor
	unit         gatedUnit
	shard        *rowShard
	weights      *selfAttention
	delta        *gatedDelta
	turn         *rotation
	failed       atomic.Pointer[error] // of embed, since the last err
}

// partElements is about how many elements make a part worth handing over.
const partElements = 1 << 13

// each calls do for all rows [0, n) of width elements.
func (o *rowOps) each(n, width int, do func(*rowOps, int)) {
	o.n, o.do = n, do
	o.part = max(1, partElements/max(1, width))
	m := o.workers.Pool.Meter()
	start := m.Start()
	o.workers.Run(o, pool.Parts(n, o.part))
	m.Stop(meter.Rows, start, o.workers.N(), 0, 0)
}

// Do runs one part.
func (o *rowOps) Do(_, part int) {
	for row := part * o.part; row < min(o.n, (part+1)*o.part); row++ {
		o.do(o, row)
	}
}

// rowOf is row i of x, which has rows of width elements.
func rowOf(x []float32, i, width int) []float32 { return x[i*width : (i+1)*width] }

// embed sets dst[n][width] to scale times the rows of table that tokens name.
// err reports a failure to read them.
func (o *rowOps) embed(dst []float32, width int, table *gguf.Tensor, tokens []int32, scale float32) {
	o.dst, o.width, o.table, o.tokens, o.scale = dst, width, table, tokens, scale
	o.each(len(tokens), width, func(o *rowOps, i int) {
		row := rowOf(o.dst, i, o.width)
		if err := o.table.Dequantize(row, int(o.tokens[i])*o.width); err != nil {
			failed := err // a variable of its own, so that only a failure allocates one
			o.failed.Store(&failed)
			clear(row)
		}
		if o.scale != 1 {
			vector.ScaleInto(row, o.scale)
		}
	})
}

// err is the last error since the last call.
func (o *rowOps) err() error {
	if err := o.failed.Swap(nil); err != nil {
		return *err
	}
	return nil
}

// softCap draws x into (-limit, limit), in pieces, however few rows it has.
func (o *rowOps) softCap(x []float32, limit float32) {
	o.dst, o.scale = x, limit
	o.each(pool.Parts(len(x), partElements), partElements, func(o *rowOps, i int) {
		vector.SoftCap(o.dst[i*partElements:min(len(o.dst), (i+1)*partElements)], o.scale)
	})
}

// norm sets dst[n][len(w)] to the RMSNorm of x.
func (o *rowOps) norm(dst, x []float32, n int, w []float32, eps float32) {
	o.dst, o.a, o.w, o.eps = dst, x, w, eps
	o.each(n, len(w), func(o *rowOps, i int) {
		vector.RMSNorm(rowOf(o.dst, i, len(o.w)), rowOf(o.a, i, len(o.w)), o.w, o.eps)
	})
}

// addNorm adds y to x and sets dst to the RMSNorm of the sum, all [n][len(w)].
func (o *rowOps) addNorm(dst, x, y []float32, n int, w []float32, eps float32) {
	o.dst, o.a, o.b, o.w, o.eps = dst, x, y, w, eps
	o.each(n, len(w), func(o *rowOps, i int) {
		x := rowOf(o.a, i, len(o.w))
		vector.AddInto(x, rowOf(o.b, i, len(o.w)))
		vector.RMSNorm(rowOf(o.dst, i, len(o.w)), x, o.w, o.eps)
	})
}

// add adds y to x, both [n][width].
func (o *rowOps) add(x, y []float32, n, width int) {
	o.dst, o.a, o.width = x, y, width
	o.each(n, width, func(o *rowOps, i int) { vector.AddInto(rowOf(o.dst, i, o.width), rowOf(o.a, i, o.width)) })
}

// multiply multiplies x[n][width] by a factor, if it is not one.
func (o *rowOps) multiply(x []float32, n, width int, factor float32) {
	if factor == 1 {
		return
	}
	o.dst, o.width, o.scale = x, width, factor
	o.each(n, width, func(o *rowOps, i int) { vector.ScaleInto(rowOf(o.dst, i, o.width), o.scale) })
}

// normInto is norm in place, and nothing without w.
func (o *rowOps) normInto(x []float32, n int, w []float32, eps float32) {
	if w != nil {
		o.norm(x, x, n, w, eps)
	}
}

// gate sets dst[n][width] to act(gate)·up, with gate and up side by side in gateUp.
func (o *rowOps) gate(unit gatedUnit, dst, gateUp []float32, n, width int) {
	o.dst, o.a, o.width, o.unit = dst, gateUp, width, unit
	o.each(n, width, func(o *rowOps, i int) {
		both := rowOf(o.a, i, 2*o.width)
		o.unit(rowOf(o.dst, i, o.width), both[:o.width], both[o.width:])
	})
}

// relu sets x[n][width] to max(x, 0).
func (o *rowOps) relu(x []float32, n, width int) {
	o.dst, o.width = x, width
	o.each(n, width, func(o *rowOps, i int) {
		x := rowOf(o.dst, i, o.width)
		for k, v := range x {
			x[k] = max(v, 0)
		}
	})
}

// addBias adds bias (nil: none) to the rows of x[n].
func (o *rowOps) addBias(x []float32, n int, bias []float32) {
	if bias == nil {
		return
	}
	o.dst, o.w = x, bias
	o.each(n, len(bias), func(o *rowOps, i int) { vector.AddInto(rowOf(o.dst, i, len(o.w)), o.w) })
}

// gateOutput multiplies x[n][width] by the sigmoid of the gates, which end the rows
// of qkv, stride each.
func (o *rowOps) gateOutput(x, qkv []float32, n, width, stride int) {
	o.dst, o.a, o.width, o.stride = x, qkv, width, stride
	o.each(n, width, func(o *rowOps, i int) {
		row := rowOf(o.dst, i, o.width)
		vector.GLU(row, rowOf(o.a, i, o.stride)[o.stride-o.width:], row)
	})
}

// storeKV finishes the queries, keys and values of a shard and writes the keys
// and values into their layer of the cache.
func (o *rowOps) storeKV(s *rowShard, a *selfAttention) {
	o.shard, o.weights = s, a
	o.each(s.rows, a.qkv.Sum, func(o *rowOps, i int) {
		s, a, p := o.shard, o.weights, &o.shard.rowPos[i]
		row, q, kv := rowOf(s.qkv, i, a.qkv.Sum), s.cfg.Heads*s.cfg.HeadDim, s.cfg.KVHeads*s.cfg.HeadDim
		queries, keys, values := row[:q], row[q:q+kv], row[q+kv:q+2*kv]
		a.qHeads.finish(s, i, queries)
		a.kHeads.finish(s, i, keys)
		if a.vBias != nil {
			vector.AddInto(values, a.vBias)
		}
		s.kv.Store(a.layer, p.Seq, p.Pos, keys, values)
	})
}

// finish does to heads x of row i what follows their product.
func (h *heads) finish(s *rowShard, i int, x []float32) {
	dim, at := s.cfg.HeadDim, &s.angles[h.ropeIndex]
	cos, sin := rowOf(at.cos, i, s.pairs), rowOf(at.sin, i, s.pairs)
	if h.bias != nil {
		vector.AddInto(x, h.bias)
	}
	for from := 0; h.norm != nil && from < len(x); from += len(h.norm) {
		head := x[from : from+len(h.norm)]
		vector.RMSNorm(head, head, h.norm, s.cfg.NormEps)
	}
	switch h.rope {
	case ropePairs:
		vector.RopePairs(x, dim, cos, sin)
	case ropeHalves:
		vector.RopeHalves(x, dim, cos, sin)
	}
}

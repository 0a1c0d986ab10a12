package models

import (
	"sync/atomic"

	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/load"
)

// rowOps runs what the graph does to each row by itself. Arguments stand in
// fields, so that handing them to workers allocates nothing. Each operation is a method,
// hence their number.
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
	unit         GatedUnit
	shard        *rowShard
	layer        any // the layer that calls, where do reads more of it
	rotation     *load.Rotation
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

// err returns the last error since the last call.
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

// normInto norms in place, and does nothing without w.
func (o *rowOps) normInto(x []float32, n int, w []float32, eps float32) {
	if w != nil {
		o.norm(x, x, n, w, eps)
	}
}

// gate sets dst[n][width] to act(gate)·up, with gate and up side by side in rows of made, or to act(gate)
// where they are width long.
func (o *rowOps) gate(unit GatedUnit, dst, made []float32, n, width, stride int) {
	o.dst, o.a, o.width, o.stride, o.unit = dst, made, width, stride, unit
	o.each(n, width, func(o *rowOps, i int) { o.unit.row(rowOf(o.dst, i, o.width), rowOf(o.a, i, o.stride)) })
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

// rotate replaces the rows x[n][width] by the input of rotated matrices.
func (o *rowOps) rotate(x []float32, n, width int, r *load.Rotation) {
	if r.Block == 0 {
		return
	}
	o.dst, o.width, o.rotation = x, width, r
	o.each(n, width, func(o *rowOps, i int) {
		row := rowOf(o.dst, i, o.width)
		if o.rotation.Signs != nil {
			vector.Mul(row, row, o.rotation.Signs)
		}
		vector.Hadamard(row, o.rotation.Block)
	})
}

// unrotate undoes rotate.
func (o *rowOps) unrotate(x []float32, n, width int, r *load.Rotation) {
	if r.Block == 0 {
		return
	}
	o.dst, o.width, o.rotation = x, width, r
	o.each(n, width, func(o *rowOps, i int) {
		row := rowOf(o.dst, i, o.width)
		vector.Hadamard(row, o.rotation.Block)
		if o.rotation.Signs != nil {
			vector.Mul(row, row, o.rotation.Signs)
		}
	})
}

// layerNorm sets x[n][len(w)] to its LayerNorm with bias b; nothing without w.
func (o *rowOps) layerNorm(x []float32, n int, w, b []float32, eps float32) {
	if w == nil {
		return
	}
	o.dst, o.w, o.b, o.eps = x, w, b, eps
	o.each(n, len(w), func(o *rowOps, i int) {
		vector.LayerNorm(rowOf(o.dst, i, len(o.w)), o.w, o.b, o.eps)
	})
}

// rowOf returns row i of x, which has rows of width elements.
func rowOf(x []float32, i, width int) []float32 { return x[i*width : (i+1)*width] }

// rowsOf returns rows [lo, hi) of x, which has rows of width elements.
func rowsOf(x []float32, lo, hi, width int) []float32 { return x[lo*width : hi*width] }

func moveRow(x []float32, to, from, width int) { copy(rowOf(x, to, width), rowOf(x, from, width)) }

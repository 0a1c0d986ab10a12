package models

import (
	"math"

	"github.com/lutra-lm/lutra/kernels"
)

// attention is causal grouped-query attention over the paged cache, in the
// manner of FlashAttention (Dao et al., §3.1): keys pass by in chunks, with a
// running softmax and a running weighted sum of values.
//
//	part = tile of query rows × KV head;  chunk = chunkKeys keys
//
// What a row gets depends on its query and position alone: chunks start at
// absolute positions, and in the chunk that holds the row's own position the
// row is computed by itself. So neither the neighbours in the batch nor the
// way a prompt was cut show in the result.
type attention struct {
	pool    *kernels.Pool
	group   int // query heads a KV head
	dim     int
	tile    int // rows of a tile
	tiles   []attTile
	scratch []attScratch // one a worker

	// The run under way.
	kv     *KVCache
	layer  int
	out, q []float32 // [T][Heads*dim]
}

// attTile is a run of query rows of one sequence.
type attTile struct {
	seq  *KVSeq
	row  int // first row in the batch
	rows int
	pos  int // position of the first row
}

// attScratch is what one worker needs for one part.
type attScratch struct {
	q, acc []float32               // [tile*group][dim]
	scores []float32               // [tile*group][chunk]
	soft   []kernels.OnlineSoftmax // [tile*group]
}

// chunkKeys is about how many keys share one softmax update.
const chunkKeys = 64

// tileQueries is about how many queries of a KV head meet each block of keys
// while it is in the cache.
const tileQueries = 32

func newAttention(pool *kernels.Pool, cfg Config) *attention {
	a := &attention{pool: pool, group: cfg.Heads / cfg.KVHeads, dim: cfg.HeadDim}
	a.tile = max(1, tileQueries/a.group)
	a.scratch = make([]attScratch, pool.Threads())
	n := a.tile * a.group
	for i := range a.scratch {
		a.scratch[i] = attScratch{
			q: make([]float32, n*a.dim), acc: make([]float32, n*a.dim),
			soft: make([]kernels.OnlineSoftmax, n),
		}
	}
	return a
}

// plan cuts runs of rows into tiles, for the runs until the next plan.
func (a *attention) plan(runs []rowRun) {
	a.tiles = a.tiles[:0]
	for _, r := range runs {
		for lo := 0; lo < r.rows; lo += a.tile {
			a.tiles = append(a.tiles, attTile{seq: r.seq, row: r.row + lo, rows: min(a.tile, r.rows-lo), pos: r.pos + lo})
		}
	}
}

// run sets out[T][Heads*dim] to the attention of the planned rows' queries q
// over a layer's cache, which must hold the rows' own keys and values already.
func (a *attention) run(out, q []float32, kv *KVCache, layer int) {
	if n := a.tile * a.group * kv.chunk(); len(a.scratch[0].scores) < n {
		for i := range a.scratch {
			a.scratch[i].scores = make([]float32, n)
		}
	}
	a.kv, a.layer, a.out, a.q = kv, layer, out, q
	a.pool.Run(a, len(a.tiles)*kv.heads)
	a.kv, a.out, a.q = nil, nil, nil
}

// Do computes one part. The last tiles of a prompt see the most keys and go first.
func (a *attention) Do(worker, part int) {
	t, head := &a.tiles[len(a.tiles)-1-part/a.kv.heads], part%a.kv.heads
	s, width := &a.scratch[worker], a.group*a.dim
	scale := float32(1 / math.Sqrt(float64(a.dim)))
	stride := width * a.kv.heads
	n := t.rows * a.group
	for i := range t.rows {
		from := (t.row+i)*stride + head*width
		kernels.Scale(s.q[i*width:(i+1)*width], a.q[from:], scale)
	}
	clear(s.acc[:n*a.dim])
	for i := range n {
		s.soft[i] = kernels.NewOnlineSoftmax()
	}
	chunk := a.kv.chunk()
	for lo := 0; lo < t.pos+t.rows; lo += chunk {
		// Rows that see part of the chunk go one by one, the rest together.
		row := max(0, lo-t.pos)
		whole := max(row, min(t.rows, lo+chunk-1-t.pos))
		for ; row < whole; row++ {
			a.attend(s, t.seq, head, row, row+1, lo, t.pos+row+1-lo)
		}
		if whole < t.rows {
			a.attend(s, t.seq, head, whole, t.rows, lo, chunk)
		}
	}
	for i := range n {
		s.soft[i].Finish(s.acc[i*a.dim : (i+1)*a.dim])
	}
	for i := range t.rows {
		to := (t.row+i)*stride + head*width
		copy(a.out[to:to+width], s.acc[i*width:])
	}
}

// attend brings rows [rowLo, rowHi) of a tile forward over the n keys from position lo on.
func (a *attention) attend(s *attScratch, seq *KVSeq, head, rowLo, rowHi, lo, n int) {
	c, layer := a.kv, &a.kv.layers[a.layer]
	l, ld := c.opt.BlockLen, c.chunk()
	first, g := rowLo*a.group, (rowHi-rowLo)*a.group
	q := s.q[first*a.dim:]
	acc := s.acc[first*a.dim:]
	for j := 0; j < n; j += l {
		vec := c.vector(seq.blocks[(lo+j)/l], head, 0)
		layer.scores(s.scores[j:], ld, q, vec, g, min(l, n-j), a.dim)
	}
	for i := range g {
		s.soft[first+i].Block(s.scores[i*ld:i*ld+n], acc[i*a.dim:(i+1)*a.dim])
	}
	for j := 0; j < n; j += l {
		vec := c.vector(seq.blocks[(lo+j)/l], head, 0)
		layer.accumulate(acc, s.scores[j:], ld, vec, g, min(l, n-j), a.dim)
	}
}

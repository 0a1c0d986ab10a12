package models

import (
	"math"
	"slices"

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
//
// Rows of a tile that see a whole chunk through the same blocks take it
// together: those of one prompt, and those of forks, whose shared prefix is
// then read once for all of them.
type attention struct {
	crew    crew
	group   int // query heads a KV head
	dim     int
	rows    []place
	tile    int          // rows of a tile
	scratch []attScratch // one a worker

	// The run under way.
	kv     *KVCache
	layer  int
	out, q []float32 // [T][Heads*dim]
}

// attScratch is what one worker needs for one part.
type attScratch struct {
	q, acc []float32               // [maxTile*group][dim]
	scores []float32               // [maxTile*group][chunk]
	soft   []kernels.OnlineSoftmax // [maxTile*group]
}

// chunkKeys is about how many keys share one softmax update.
const chunkKeys = 64

// tileQueries is about how many queries of a KV head meet each block of keys
// while it is in the cache, if that leaves partsPerThread parts for every worker.
const (
	tileQueries    = 32
	partsPerThread = 4
)

func newAttention(c crew, cfg Config) *attention {
	a := &attention{crew: c, group: cfg.Heads / cfg.KVHeads, dim: cfg.HeadDim, scratch: make([]attScratch, c.size())}
	n := a.maxTile() * a.group
	for i := range a.scratch {
		a.scratch[i] = attScratch{
			q: make([]float32, n*a.dim), acc: make([]float32, n*a.dim),
			soft: make([]kernels.OnlineSoftmax, n),
		}
	}
	return a
}

func (a *attention) maxTile() int { return max(1, tileQueries/a.group) }

// run sets out[T][Heads*dim] to the attention of the rows' queries q over a
// layer's cache, which must hold the rows' own keys and values already.
func (a *attention) run(out, q []float32, rows []place, kv *KVCache, layer int) {
	if n := a.maxTile() * a.group * kv.chunk(); len(a.scratch[0].scores) < n {
		for i := range a.scratch {
			a.scratch[i].scores = make([]float32, n)
		}
	}
	meter := a.crew.pool.Meter()
	start := meter.Start()
	a.rows, a.kv, a.layer, a.out, a.q = rows, kv, layer, out, q
	a.tile = a.maxTile()
	if !a.crew.alone {
		a.tile = min(a.tile, max(1, len(rows)*kv.heads/(partsPerThread*a.crew.size())))
	}
	a.crew.run(a, ceilDiv(len(rows), a.tile)*kv.heads)
	if meter.Enabled() {
		macs, bytes := a.work()
		meter.Stop(kernels.KernelAttention, start, a.crew.size(), macs, bytes)
	}
	a.rows, a.kv, a.out, a.q = nil, nil, nil, nil
}

// work is what the run does: multiply-accumulates, and bytes of keys and
// values as if each sequence's were read once.
func (a *attention) work() (macs, bytes int64) {
	width := int64(a.kv.heads * a.dim)
	perKey := KVBytesPerBlock(Config{Layers: 1, KVHeads: a.kv.heads, HeadDim: a.dim}, a.kv.opt) / int64(a.kv.opt.BlockLen)
	for i := range a.rows {
		r, keys := &a.rows[i], int64(a.rows[i].pos+1)
		macs += 2 * keys * width * int64(a.group)
		if i+1 == len(a.rows) || a.rows[i+1].seq != r.seq {
			bytes += keys * perKey
		}
	}
	return macs, bytes
}

// Do computes one part. The last tiles of a prompt see the most keys and go first.
func (a *attention) Do(worker, part int) {
	first := (ceilDiv(len(a.rows), a.tile) - 1 - part/a.kv.heads) * a.tile
	rows, head := a.rows[first:min(len(a.rows), first+a.tile)], part%a.kv.heads
	s, width := &a.scratch[worker], a.group*a.dim
	stride := width * a.kv.heads
	scale := float32(1 / math.Sqrt(float64(a.dim)))
	keys, n := 0, len(rows)*a.group
	for i := range rows {
		from := (first+i)*stride + head*width
		kernels.Scale(s.q[i*width:(i+1)*width], a.q[from:], scale)
		keys = max(keys, rows[i].pos+1)
	}
	clear(s.acc[:n*a.dim])
	for i := range n {
		s.soft[i] = kernels.NewOnlineSoftmax()
	}
	chunk := a.kv.chunk()
	for lo := 0; lo < keys; lo += chunk {
		for i, j := 0, 0; i < len(rows); i = j {
			j = i + 1
			if see := rows[i].pos + 1 - lo; see >= chunk {
				for j < len(rows) && a.kv.sameChunk(&rows[i], &rows[j], lo, chunk) {
					j++
				}
				a.attend(s, rows[i].seq, head, i, j, lo, chunk)
			} else if see > 0 {
				a.attend(s, rows[i].seq, head, i, j, lo, see)
			}
		}
	}
	for i := range n {
		s.soft[i].Finish(s.acc[i*a.dim : (i+1)*a.dim])
	}
	for i := range rows {
		to := (first+i)*stride + head*width
		copy(a.out[to:to+width], s.acc[i*width:])
	}
}

// sameChunk tells whether row b, too, sees all n keys from position lo on, and
// in the same blocks as row a.
func (c *KVCache) sameChunk(a, b *place, lo, n int) bool {
	if b.pos+1-lo < n {
		return false
	}
	lo, hi := lo/c.opt.BlockLen, (lo+n)/c.opt.BlockLen
	return a.seq == b.seq || slices.Equal(a.seq.blocks[lo:hi], b.seq.blocks[lo:hi])
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

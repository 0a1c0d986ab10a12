package models

import (
	"github.com/lutra-lm/lutra/kernels/attention"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/kv"
)

// attentionPass is causal grouped-query attention over the paged cache, in the
// manner of FlashAttention (Dao et al., §3.1): keys pass by in chunks, with a
// running softmax and a running weighted sum of values. Long contexts are cut into
// spans that workers take apart, as in Flash-Decoding (Dao et al. 2023), and what
// a query got from each is folded in the order of the spans.
//
//	part = tile of query rows × KV head × span of spanKeys keys;  chunk = chunkKeys keys
//
// What a row gets depends on its query and position alone: spans and chunks start at
// absolute positions, a score is one chain of additions whoever else reads the
// key, and values are added in the order of their positions. So neither the
// neighbours in the batch nor the way a prompt was cut nor the number of workers show
// in the result.
type attentionPass struct {
	exec    executor
	group   int // query heads a KV head
	dim     int
	scratch []attScratch // one a worker
	partial partials

	// The run under way.
	plan   *attPlan
	rowPos []rowPos
	kv     *kv.Cache
	layer  int
	lens   *lens
	out    []float32 // [T][Heads*dim]
	qkv    []float32 // [T][(Heads+2·KVHeads)*dim], queries first
	wave   wave
}

// attScratch is what one worker needs for one part.
type attScratch struct {
	q, acc []float32           // [maxTile*group][dim]
	scores []float32           // [maxTile*group][chunk]
	soft   []attention.Softmax // [maxTile*group]
	groups []int32
}

// chunkKeys is about how many keys share one softmax update, spanKeys about how
// many make a part of their own: some tens of microseconds for one row.
const (
	chunkKeys = 64
	spanKeys  = 512
)

// tileQueries is about how many queries of a KV head meet each block of keys
// while it is in the cache, if that leaves partsPerThread parts for every worker.
const (
	tileQueries    = 32
	partsPerThread = 4
)

// chunkOf is chunkKeys in whole blocks.
func chunkOf(cache *kv.Cache) int {
	return max(1, chunkKeys/cache.BlockLen()) * cache.BlockLen()
}

// spanOf is spanKeys in whole chunks.
func spanOf(cache *kv.Cache) int { return max(1, spanKeys/chunkOf(cache)) * chunkOf(cache) }

func newAttention(c executor, cfg Config) *attentionPass {
	a := &attentionPass{exec: c, group: cfg.Heads / cfg.KVHeads, dim: cfg.HeadDim, scratch: make([]attScratch, c.size())}
	n := a.maxTile() * a.group
	for i := range a.scratch {
		a.scratch[i] = attScratch{
			q: make([]float32, n*a.dim), acc: make([]float32, n*a.dim),
			soft: make([]attention.Softmax, n),
		}
	}
	return a
}

func (a *attentionPass) maxTile() int { return max(1, tileQueries/a.group) }

// makePlan plans for rows.
func (a *attentionPass) makePlan(p *attPlan, rows []rowPos, cache *kv.Cache) {
	tile := a.maxTile()
	if !a.exec.alone {
		span, spans := spanOf(cache), 0
		for i := range rows {
			spans += rows[i].pos/span + 1
		}
		tile = min(tile, max(1, spans*cache.Shape().Heads/(partsPerThread*a.exec.size())))
	}
	p.make(rows, cache, tile, a.group)
}

// run sets out[T][Heads*dim] to the attention of the planned rows' queries,
// which begin the rows of qkv, over a layer's cache, which must hold the rows'
// own keys and values already.
func (a *attentionPass) run(out, qkv []float32, plan *attPlan, rows []rowPos, cache *kv.Cache, layer int, l *lens) {
	if n := a.maxTile() * a.group * plan.scoreRow(); len(a.scratch[0].scores) < n {
		for i := range a.scratch {
			a.scratch[i].scores = make([]float32, n)
		}
	}
	m := a.exec.pool.Meter()
	start := m.Start()
	a.plan, a.rowPos, a.kv, a.layer, a.lens, a.out, a.qkv = plan, rows, cache, layer, l, out, qkv
	for lo := 0; lo < len(plan.spans); lo = a.wave.hi {
		a.begin(lo)
		a.exec.run(a, (a.wave.end-a.wave.first)*cache.Shape().Heads)
		if len(plan.spans) > 1 {
			a.fold()
		}
	}
	if m.Enabled() {
		macs, bytes := a.work()
		m.Stop(meter.Attention, start, a.exec.size(), macs, bytes)
	}
	a.plan, a.rowPos, a.kv, a.out, a.qkv = nil, nil, nil, nil, nil
}

// work is what the run does: multiply-accumulates, and bytes of keys and
// values as if each sequence's were read once.
func (a *attentionPass) work() (macs, bytes int64) {
	width := int64(a.kv.Shape().Heads * a.dim)
	perKey := a.kv.TokenBytes()
	for i := range a.rowPos {
		r, keys := &a.rowPos[i], int64(a.rowPos[i].pos+1)
		macs += 2 * keys * width * int64(a.group)
		if i+1 == len(a.rowPos) || a.rowPos[i+1].seq != r.seq {
			bytes += keys * perKey
		}
	}
	return macs, bytes
}

// Do computes one part.
func (a *attentionPass) Do(worker, part int) {
	turns := a.wave.end - a.wave.first
	turn, head := part%turns, part/turns
	if a.exec.alone { // what lies side by side is read one after another
		turn, head = part/a.kv.Shape().Heads, part%a.kv.Shape().Heads
	}
	turn += a.wave.first
	number := int(a.plan.order[turn])
	pass := &a.plan.passes[number]
	first := int(pass.tile) * a.plan.tile
	rows := a.rowPos[first:min(len(a.rowPos), first+a.plan.tile)]
	s, width := &a.scratch[worker], a.group*a.dim
	stride, n := width*a.kv.Shape().Heads, len(rows)*a.group
	for i := range rows {
		vector.Scale(s.q[i*width:(i+1)*width], a.qkv[(first+i)*(stride+2*a.kv.Shape().Heads*a.dim)+head*width:], a.lens.scale)
	}
	begin, passes := a.plan.passesOf(int(pass.tile))
	whole := passes == begin+1
	acc, soft := s.acc, s.soft
	if !whole {
		acc, soft = a.partial.of(a, turn, head)
	}
	clear(acc[:n*a.dim])
	for i := range n {
		soft[i] = attention.NewSoftmax()
	}
	chunk, end := a.plan.chunksOf(number)
	_, runs := a.plan.runsOf(end - 1)
	for lo := (number - begin) * a.plan.span; chunk < end; chunk, lo = chunk+1, lo+a.plan.chunk {
		if a.lens.reaches(rows, lo+a.plan.chunk) {
			a.chunk(s, acc, soft, rows, head, chunk, lo, runs)
		}
	}
	for i := 0; whole && i < n; i++ {
		to := (first+i/a.group)*stride + head*width + i%a.group*a.dim
		soft[i].Finish(a.out[to:to+a.dim], acc[i*a.dim:])
	}
}

// chunk brings the rows of a tile forward over a chunk of keys, those from position lo on.
// Chunks go on until the end of runs.
func (a *attentionPass) chunk(s *attScratch, acc []float32, soft []attention.Softmax, rows []rowPos, head, chunk, lo, runs int) {
	p, layer, ld, g, d := a.plan, a.kv.Layer(a.layer), a.plan.scoreRow(), a.group, a.dim
	vector := a.kv.Vectors(0, head)
	first, end := p.runsOf(chunk)
	for i := first; i < end; i++ {
		r := &p.runs[i]
		row, n := int(r.row)*g, int(r.rows)*g
		layer.Scores(s.scores[row*ld+int(r.at):(row+n)*ld], ld, s.q[row*d:], vector, p.groupsOf(i), n, int(r.most), d)
	}
	n, seen := len(rows)*g, p.seen[p.chunks[chunk].seen:]
	a.lens.look(s.scores[:n*ld], ld, g, rows, seen, lo)
	attention.SoftmaxBlock(soft[:n], s.scores, ld, seen, acc, d)
	for i := first; i < end; i++ {
		r := &p.runs[i]
		row, n, least := int(r.row)*g, int(r.rows)*g, int(r.least)
		weights := s.scores[row*ld+int(r.at):]
		var next []int32
		if like := i + end - first; like < runs {
			next = p.groupsOf(like)
		}
		layer.Accumulate(acc[row*d:], weights, ld, vector, p.groupsOf(i), next, n, least, d)
		if r.most > r.least {
			a.corner(s, acc, rows, i, vector, lo)
		}
	}
	if a.lens.window > 0 {
		forget(soft[:n], acc, d)
	}
}

// corner adds the values of a run that only some of its rows see, which all
// stand in its last block.
func (a *attentionPass) corner(s *attScratch, acc []float32, rows []rowPos, run, vector, lo int) {
	r, groups := &a.plan.runs[run], a.plan.groupsOf(run)
	layer, ld, g, d := a.kv.Layer(a.layer), a.plan.scoreRow(), a.group, a.dim
	least := int(r.least)
	s.groups = s.groups[:0]
	first := groups[least/attention.KeyGroup] + r.least%attention.KeyGroup
	for n := r.least; n < r.most; n += attention.KeyGroup {
		s.groups = append(s.groups, first+n-r.least)
	}
	for i := range int(r.rows) {
		row := int(r.row) + i
		more := rows[row].sees(lo+int(r.at), int(r.most)) - least
		layer.Accumulate(acc[row*g*d:], s.scores[row*g*ld+int(r.at)+least:], ld, vector, s.groups, nil, g, more, d)
	}
}

package attention

import (
	"slices"

	kernel "github.com/lutra-lm/lutra/kernels/attention"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/kv"
)

// Pass is causal grouped-query attention over the paged cache, in the manner of FlashAttention (Dao et al.,
// §3.1): it reads keys in chunks, with a running softmax and a running weighted sum of values. Long contexts are
// cut into splits, as in Flash-Decoding (Dao et al. 2023). Workers compute them separately, and the results of a
// query are folded in the order of the splits.
//
//	part = tile of query rows × KV head × split of splitKeys keys;  chunk = chunkKeys keys
//
// A row's result depends on its query and position alone. Splits and chunks start at absolute positions, a score
// is one chain of additions whoever else reads the key, and values are added in the order of their positions. So
// neighbours in the batch, chunks of prefill and the number of workers never change it.
type Pass struct {
	workers pool.Workers
	first   int // of the layers it is for
	heads   int // KV heads
	group   int // query heads a KV head
	dim     int
	scratch []scratch // one a worker
	partial partials

	// The run under way.
	plan   *Plan
	rowPos []RowPos
	cache  *kv.Cache
	layer  int
	mask   *Mask
	out    []float32 // [T][Heads*dim]
	qkv    []float32 // [T][(Heads+2·KVHeads)*dim], queries first
	wave   wave
}

// scratch holds the buffers that one worker needs for one part.
type scratch struct {
	q      kv.Queries       // [maxTile*group]
	acc    []float32        // [maxTile*group][dim]
	scores []float32        // [maxTile*group][chunk]
	soft   []kernel.Softmax // [maxTile*group]
	groups []int32
	own    kv.Layer // of the run's rows
}

// chunkKeys is about how many keys share one softmax update, splitKeys about how
// many make a part of their own: some tens of microseconds for one row.
const (
	chunkKeys = 64
	splitKeys = 512
)

// partsPerThread is the number of parts for every worker that tiles are made small for.
const partsPerThread = 4

// chunkOf returns chunkKeys in whole blocks.
func chunkOf(cache *kv.Cache) int {
	return max(1, chunkKeys/cache.BlockLen()) * cache.BlockLen()
}

// splitOf returns splitKeys in whole chunks.
func splitOf(cache *kv.Cache) int { return max(1, splitKeys/chunkOf(cache)) * chunkOf(cache) }

// RowPos is where a row's token stands.
type RowPos struct {
	Seq *kv.Sequence
	Pos int
	All int // the sequence's length, if the row attends to all of it; 0: not to the tokens after it
}

// keys returns the number of positions that the row attends to.
func (r *RowPos) keys() int { return max(r.Pos+1, r.All) }

// New makes a pass over models of heads query heads whose keys and values have shape, nil if no layer has any.
func New(w pool.Workers, heads int, shape kv.Shape) *Pass {
	if shape.Layers == 0 {
		return nil
	}
	return newPass(w, heads, 0, shape.Heads, shape.HeadDim)
}

// NewOthers makes a pass over the other layers of such models, nil if there are none.
func NewOthers(w pool.Workers, heads int, shape kv.Shape) *Pass {
	if shape.Others.Layers == 0 {
		return nil
	}
	return newPass(w, heads, shape.Layers, shape.Others.Heads, shape.Others.HeadDim)
}

func newPass(w pool.Workers, heads, first, kvHeads, dim int) *Pass {
	a := &Pass{workers: w, first: first, heads: kvHeads, group: heads / kvHeads, dim: dim, scratch: make([]scratch, w.N())}
	n := a.maxTile() * a.group
	for i := range a.scratch {
		a.scratch[i] = scratch{
			q: kv.NewQueries(n, a.dim), acc: make([]float32, n*a.dim),
			soft: make([]kernel.Softmax, n),
		}
	}
	return a
}

func (a *Pass) maxTile() int { return max(1, kernel.TileQueries()/a.group) }

// MakePlan plans for rows.
func (a *Pass) MakePlan(p *Plan, rows []RowPos, cache *kv.Cache) {
	tile := a.maxTile()
	if !a.workers.Alone {
		split, splits := splitOf(cache), 0
		for i := range rows {
			splits += pool.Parts(rows[i].keys(), split)
		}
		tile = min(tile, max(1, splits*a.heads/(partsPerThread*a.workers.N())))
	}
	tile = cpu.TileWidth(max(1, len(rows)), tile) // so that all parts are about as long
	p.build(rows, cache, a.first, tile, a.group)
}

// Run sets out[T][Heads*dim] to the attention of the planned rows' queries, which begin the T rows of qkv, over
// a layer's cache. The cache must hold the rows' own keys and values already.
func (a *Pass) Run(out, qkv []float32, plan *Plan, rows []RowPos, cache *kv.Cache, layer int, mask *Mask) {
	if n := a.maxTile() * a.group * plan.scoreRow(); len(a.scratch[0].scores) < n {
		for i := range a.scratch {
			a.scratch[i].scores = make([]float32, n)
		}
	}
	m := a.workers.Pool.Meter()
	start := m.Start()
	a.plan, a.rowPos, a.cache, a.layer, a.mask, a.out, a.qkv = plan, rows, cache, layer, mask, out, qkv
	for lo := 0; lo < len(plan.splits); lo = a.wave.hi {
		a.begin(lo)
		a.workers.Run(a, (a.wave.end-a.wave.first)*a.heads)
		if len(plan.splits) > 1 {
			a.fold()
		}
	}
	if m.Enabled() {
		macs, bytes := a.work()
		m.Stop(meter.Attention, start, a.workers.N(), macs, bytes)
	}
	a.plan, a.rowPos, a.cache, a.out, a.qkv = nil, nil, nil, nil, nil
}

// work returns what the run computes and reads: multiply-accumulates, and bytes of keys
// and values as if each sequence's were read once.
func (a *Pass) work() (macs, bytes int64) {
	width := int64(a.heads * a.dim)
	perKey := a.cache.TokenBytes(a.layer)
	for i := range a.rowPos {
		r, keys := &a.rowPos[i], int64(a.rowPos[i].keys())
		macs += 2 * keys * width * int64(a.group)
		if i+1 == len(a.rowPos) || a.rowPos[i+1].Seq != r.Seq {
			bytes += keys * perKey
		}
	}
	return macs, bytes
}

// Do computes one part.
func (a *Pass) Do(worker, part int) {
	ranks := a.wave.end - a.wave.first
	rank, head := part%ranks, part/ranks
	if a.workers.Alone { // read in the order of addresses
		rank, head = part/a.heads, part%a.heads
	}
	rank += a.wave.first
	number := int(a.plan.order[rank])
	item := &a.plan.items[number]
	first := int(item.tile) * a.plan.tile
	rows := a.rowPos[first:min(len(a.rowPos), first+a.plan.tile)]
	s, width := &a.scratch[worker], a.group*a.dim
	stride, n := width*a.heads, len(rows)*a.group
	rowWidth := len(a.qkv) / len(a.rowPos)
	for i := range rows {
		vector.Scale(s.q.Rows[i*width:(i+1)*width], a.qkv[(first+i)*rowWidth+head*width:], a.mask.Scale)
	}
	layer := a.cache.Layer(a.layer)
	layer.Prepare(&s.q, n)
	begin, end := a.plan.itemsOf(int(item.tile))
	whole := end == begin+1
	acc, soft := s.acc, s.soft
	if !whole {
		acc, soft = a.partial.of(a, rank, head)
	}
	clear(acc[:n*a.dim])
	for i := range n {
		soft[i] = kernel.NewSoftmax()
	}
	chunk, end := a.plan.chunksOf(number)
	_, runs := a.plan.runsOf(end - 1)
	for lo := (number - begin) * a.plan.split; chunk < end; chunk, lo = chunk+1, lo+a.plan.chunk {
		if a.mask.reaches(rows, lo, lo+a.plan.chunk) {
			a.chunk(s, acc, soft, rows, head, chunk, lo, runs)
		}
	}
	for i := 0; whole && i < n; i++ {
		to := (first+i/a.group)*stride + head*width + i%a.group*a.dim
		a.mask.finish(&soft[i], a.out[to:to+a.dim], acc[i*a.dim:], head*a.group+i%a.group)
		layer.Finish(a.out[to : to+a.dim])
	}
}

// chunk adds a chunk of keys, those from position lo on, to what the rows of a
// tile have gathered. The work item's runs end at runs.
func (a *Pass) chunk(s *scratch, acc []float32, soft []kernel.Softmax, rows []RowPos, head, chunk, lo, runs int) {
	p, layer, ld, g, d := a.plan, a.cache.Layer(a.layer), a.plan.scoreRow(), a.group, a.dim
	vector := layer.FirstVector(0, head)
	first, end := p.runsOf(chunk)
	for i := first; i < end; i++ {
		r := &p.runs[i]
		row, n := int(r.row)*g, int(r.rows)*g
		a.layerOf(s, r).Scores(s.scores[row*ld+int(r.at):(row+n)*ld], ld, &s.q, row, vector, p.groupsOf(i), n, int(r.most))
	}
	n, seen := len(rows)*g, p.seen[p.chunks[chunk].seen:]
	if drift := a.mask.DriftIn(a.cache); drift != nil {
		drift.unsettle(s.scores, ld, layer, &s.q, n, head, lo, int(slices.Max(seen[:n])))
	}
	a.mask.apply(s.scores[:n*ld], ld, head, g, rows, seen, lo)
	kernel.SoftmaxBlock(soft[:n], s.scores, ld, seen, acc, d)
	a.mask.drop(s.scores, ld, g, rows, seen, lo)
	for i := first; i < end; i++ {
		r := &p.runs[i]
		row, n, least := int(r.row)*g, int(r.rows)*g, int(r.least)
		weights := s.scores[row*ld+int(r.at):]
		var next []int32
		if like := i + end - first; like < runs && p.runs[like].residual == r.residual { // of the same vectors
			next = p.groupsOf(like)
		}
		a.layerOf(s, r).Accumulate(acc[row*d:], weights, ld, &s.q, vector, p.groupsOf(i), next, n, least)
		if r.most > r.least {
			a.causalCorner(s, acc, rows, i, vector, lo)
		}
	}
	if a.mask.Window > 0 {
		restart(soft[:n])
	}
}

// layerOf returns the keys and values that a run's groups count in.
func (a *Pass) layerOf(s *scratch, r *run) *kv.Layer {
	if r.residual == kv.NoResidual {
		return a.cache.Layer(a.layer)
	}
	s.own = a.cache.Own(a.layer, r.residual)
	return &s.own
}

// causalCorner adds the values of a run that only some of its rows see, which all
// stand in its last block.
func (a *Pass) causalCorner(s *scratch, acc []float32, rows []RowPos, run, vector, lo int) {
	r, groups := &a.plan.runs[run], a.plan.groupsOf(run)
	layer, ld, g, d := a.layerOf(s, r), a.plan.scoreRow(), a.group, a.dim
	least := int(r.least)
	s.groups = s.groups[:0]
	first := groups[least/kernel.KeyGroup] + r.least%kernel.KeyGroup
	for n := r.least; n < r.most; n += kernel.KeyGroup {
		s.groups = append(s.groups, first+n-r.least)
	}
	for i := range int(r.rows) {
		row := int(r.row) + i
		more := rows[row].sees(lo+int(r.at), int(r.most)) - least
		layer.Accumulate(acc[row*g*d:], s.scores[row*g*ld+int(r.at)+least:], ld, &s.q, vector, s.groups, nil, g, more)
	}
}

package attention

import (
	kernel "github.com/lutra-lm/lutra/kernels/attention"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// partials holds the partial results of queries from the splits of a wave, for tiles that
// take several.
type partials struct {
	acc  []float32        // [ranks][KVHeads][tile*group][dim]
	soft []kernel.Softmax // [ranks][KVHeads][tile*group]
	// The results of the waves before; their sums of values stand in the output.
	state []kernel.Softmax // [T][Heads]
}

// wave is the splits [lo, hi), and the ranks [first, end) of their work items,
// whose partials are in memory at the same time.
type wave struct{ lo, hi, first, end int }

// waveFloats is about how many floats of partials a worker has, so that memory
// does not grow with the context: more than 16 parts for each.
const waveFloats = 1 << 16

// begin prepares the wave that starts with split lo: as many splits as there is
// room for, at least one.
func (a *Pass) begin(lo int) {
	p, heads := a.plan, a.heads
	a.wave = wave{lo: lo, hi: lo + 1}
	a.wave.first, a.wave.end = p.ranks(lo, lo+1)
	each := heads * p.tile * a.group // queries of a rank
	for a.wave.hi < len(p.splits) {
		_, end := p.ranks(lo, a.wave.hi+1)
		if (end-a.wave.first)*each*a.dim > waveFloats*a.workers.N() {
			break
		}
		a.wave.hi, a.wave.end = a.wave.hi+1, end
	}
	if len(p.splits) == 1 {
		return
	}
	n := (a.wave.end - a.wave.first) * each
	if len(a.partial.soft) < n {
		a.partial.soft, a.partial.acc = make([]kernel.Softmax, n), make([]float32, n*a.dim)
	}
	if lo > 0 {
		return
	}
	queries := len(a.rowPos) * heads * a.group
	if len(a.partial.state) < queries {
		a.partial.state = make([]kernel.Softmax, queries)
	}
	for i := range queries {
		a.partial.state[i] = kernel.NewSoftmax()
	}
}

// of returns the room for the work item of that rank.
func (p *partials) of(a *Pass, rank, head int) (acc []float32, soft []kernel.Softmax) {
	n := a.plan.tile * a.group
	at := ((rank-a.wave.first)*a.heads + head) * n
	return p.acc[at*a.dim : (at+n)*a.dim], p.soft[at : at+n]
}

// fold merges the partials of the wave into the output.
func (a *Pass) fold() {
	a.workers.Run((*folding)(a), pool.Parts(len(a.rowPos)*a.heads*a.group, a.foldPart()))
}

// foldPart returns the number of queries whose partials one part folds.
func (a *Pass) foldPart() int {
	return max(1, len(a.rowPos)*a.heads*a.group/(partsPerThread*a.workers.N()))
}

// folding is a pass that folds.
type folding Pass

// Do folds the partials of some queries, each in the order of the splits.
func (f *folding) Do(_, part int) {
	a := (*Pass)(f)
	heads := a.heads * a.group
	n := a.foldPart()
	for i := part * n; i < min(len(a.rowPos)*heads, (part+1)*n); i++ {
		a.foldQuery(i/heads, i%heads)
	}
}

// foldQuery folds the partials of one query of a row.
func (a *Pass) foldQuery(row, query int) {
	p, heads := a.plan, a.heads*a.group
	tile := row / p.tile
	first, end := p.itemsOf(tile)
	if end-first == 1 {
		return // one split was all
	}
	at := row*heads + query
	acc, state := a.out[at*a.dim:(at+1)*a.dim], &a.partial.state[at]
	own := (row-tile*p.tile)*a.group + query%a.group
	splits := pool.Parts(a.rowPos[row].keys(), p.split)
	for split := a.wave.lo; split < min(splits, a.wave.hi); split++ {
		more, soft := a.partial.of(a, int(p.items[first+split].rank), query/a.group)
		state.Merge(acc, soft[own], more[own*a.dim:(own+1)*a.dim])
	}
	if a.wave.lo < splits && splits <= a.wave.hi {
		a.mask.finish(state, acc, acc, query)
		a.cache.Layer(a.layer).Finish(acc)
	}
}

package models

import (
	"github.com/lutra-lm/lutra/kernels/attention"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// partials are what the queries of a wave's passes got from their spans, for
// tiles that pass several.
type partials struct {
	acc  []float32           // [turns][KVHeads][tile*group][dim]
	soft []attention.Softmax // [turns][KVHeads][tile*group]
	// What the waves before came to; its sums of values stand in the output.
	state []attention.Softmax // [T][Heads]
}

// wave is the spans [lo, hi), and the turns [first, end) of the passes by them,
// whose partials are in memory at the same time.
type wave struct{ lo, hi, first, end int }

// waveFloats is about how many floats of partials a worker has, so that memory
// does not grow with the context: more than 16 parts for each.
const waveFloats = 1 << 16

// begin makes ready for the wave that starts with span lo: as many spans as
// there is room for, and one at least.
func (a *attentionPass) begin(lo int) {
	p, heads := a.plan, a.kv.Shape().Heads
	a.wave = wave{lo: lo, hi: lo + 1}
	a.wave.first, a.wave.end = p.turns(lo, lo+1)
	each := heads * p.tile * a.group // queries of a turn
	for a.wave.hi < len(p.spans) {
		_, end := p.turns(lo, a.wave.hi+1)
		if (end-a.wave.first)*each*a.dim > waveFloats*a.exec.size() {
			break
		}
		a.wave.hi, a.wave.end = a.wave.hi+1, end
	}
	if len(p.spans) == 1 {
		return
	}
	n := (a.wave.end - a.wave.first) * each
	if len(a.partial.soft) < n {
		a.partial.soft, a.partial.acc = make([]attention.Softmax, n), make([]float32, n*a.dim)
	}
	if lo > 0 {
		return
	}
	queries := len(a.rowPos) * heads * a.group
	if len(a.partial.state) < queries {
		a.partial.state = make([]attention.Softmax, queries)
	}
	for i := range queries {
		a.partial.state[i] = attention.NewSoftmax()
	}
}

// of is the room for the pass whose turn it is.
func (p *partials) of(a *attentionPass, turn, head int) (acc []float32, soft []attention.Softmax) {
	n := a.plan.tile * a.group
	at := ((turn-a.wave.first)*a.kv.Shape().Heads + head) * n
	return p.acc[at*a.dim : (at+n)*a.dim], p.soft[at : at+n]
}

// fold takes the partials of the wave into the output.
func (a *attentionPass) fold() {
	a.exec.run((*attFold)(a), pool.Parts(len(a.rowPos)*a.kv.Shape().Heads*a.group, a.foldPart()))
}

// foldPart is the number of queries whose partials one part folds.
func (a *attentionPass) foldPart() int {
	return max(1, len(a.rowPos)*a.kv.Shape().Heads*a.group/(partsPerThread*a.exec.size()))
}

// attFold is an attention at folding.
type attFold attentionPass

// Do folds the partials of some queries, each in the order of the spans.
func (f *attFold) Do(_, part int) {
	a := (*attentionPass)(f)
	heads := a.kv.Shape().Heads * a.group
	n := a.foldPart()
	for i := part * n; i < min(len(a.rowPos)*heads, (part+1)*n); i++ {
		a.foldQuery(i/heads, i%heads)
	}
}

// foldQuery folds the partials of one query of a row.
func (a *attentionPass) foldQuery(row, query int) {
	p, heads := a.plan, a.kv.Shape().Heads*a.group
	tile := row / p.tile
	first, end := p.passesOf(tile)
	if end-first == 1 {
		return // its pass was all
	}
	at := row*heads + query
	acc, state := a.out[at*a.dim:(at+1)*a.dim], &a.partial.state[at]
	own := (row-tile*p.tile)*a.group + query%a.group
	spans := a.rowPos[row].pos/p.span + 1
	for span := a.wave.lo; span < min(spans, a.wave.hi); span++ {
		more, soft := a.partial.of(a, int(p.passes[first+span].turn), query/a.group)
		state.Merge(acc, soft[own], more[own*a.dim:(own+1)*a.dim])
	}
	if a.wave.lo < spans && spans <= a.wave.hi {
		state.Finish(acc, acc)
	}
}

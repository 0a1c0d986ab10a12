package models

import (
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/models/load"
)

// perHead multiplies each head of rows by a matrix of its own: a head a worker.
type perHead struct {
	own []headWorker

	shard    *rowShard
	matrices *headMatrices
	dst, src headRows
}

// headMatrices has a matrix for each head, of one tensor.
type headMatrices struct {
	list []load.Stacked
	on   *adapterSite // what adapters add to
}

// loadPerHead loads the matrices [rows][cols] of heads.
func loadPerHead(t *tensors, name string, heads, rows, cols int) (m headMatrices) {
	if m.on = t.adapterSite(cols, load.Rows{Tensor: name, N: rows, Of: heads * rows}); m.on != nil {
		m.on.matrices = heads
	}
	for h := 0; h < heads && t.Err() == nil; h++ {
		m.list = append(m.list, t.Stack(t.Rows(name, h*rows, (h+1)*rows, cols, rows, heads)))
	}
	return m
}

// headRows says where heads stand in rows.
type headRows struct {
	x      []float32
	stride int // of rows
	each   int // of heads in a row
	width  int // what counts of a head
}

// headWorker is a worker's memory.
type headWorker struct {
	acts    kernels.Acts
	in, out []float32
	part    []float32
	adapt   adaptScratch
}

func newPerHead(workers int) perHead {
	p := perHead{own: make([]headWorker, workers)}
	for i := range p.own {
		p.own[i].acts.Pin(i)
	}
	return p
}

// run sets dst, of all rows of s, to the products of src with matrices.
func (p *perHead) run(s *rowShard, matrices *headMatrices, dst, src headRows) {
	p.shard, p.matrices, p.dst, p.src = s, matrices, dst, src
	s.ops.workers.Run(p, len(matrices.list))
	p.shard, p.matrices, p.dst, p.src = nil, nil, headRows{}, headRows{}
}

// Do multiplies one head.
func (p *perHead) Do(worker, head int) {
	s, w, n, dst, src := p.shard, &p.own[worker], p.shard.rows, &p.dst, &p.src
	acts := &w.acts
	if s.ops.workers.Alone { // whose number the shard's know
		acts = &s.acts
	}
	w.in, w.out = cpu.Grow(w.in, n*src.width), cpu.Grow(w.out, n*dst.width)
	for i := range n {
		copy(rowOf(w.in, i, src.width), src.x[i*src.stride+head*src.each:])
	}
	acts.Set(w.in, n, src.width)
	p.matrices.list[head].Mul(w.out, acts, &w.part)
	if len(s.adapters.groups) > 0 {
		w.adapt.pin(acts.Worker())
		w.adapt.addAll(adaptProduct{on: p.matrices.on, matrix: head, read: acts, y: w.out}, s.adapters.groups)
	}
	for i := range n {
		copy(dst.x[i*dst.stride+head*dst.each:], rowOf(w.out, i, dst.width))
	}
}

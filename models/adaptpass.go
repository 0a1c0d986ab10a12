package models

import (
	"slices"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// adaptGroup is rows of a shard that one adapter adds to.
type adaptGroup struct {
	round   int // rows with several adapters take them one after the other
	adapter *Adapter
	rows    []int32
	scales  []float32 // [rows]
}

// adaptPlan groups the rows of a shard by their adapters: round k has the adapter that is
// number k of a row's.
type adaptPlan struct{ groups []adaptGroup }

// make groups rows by their variants.
func (p *adaptPlan) make(variants []*Variant) {
	p.groups = p.groups[:0]
	for round, more := 0, true; more; round++ {
		more = false
		begin := len(p.groups)
		for row, v := range variants {
			if v == nil || round >= len(v.Uses) {
				continue
			}
			more = more || round+1 < len(v.Uses)
			use := &v.Uses[round]
			i := begin + slices.IndexFunc(p.groups[begin:], func(g adaptGroup) bool { return g.adapter == use.Adapter })
			if i < begin {
				i = len(p.groups)
				p.groups = slices.Grow(p.groups, 1)[:i+1] // with the memory of a former group
				g := &p.groups[i]
				*g = adaptGroup{round: round, adapter: use.Adapter, rows: g.rows[:0], scales: g.scales[:0]}
			}
			g := &p.groups[i]
			g.rows, g.scales = append(g.rows, int32(row)), append(g.scales, use.Scale)
		}
	}
}

// adaptPass adds the products of adapters to a target's. A row's sum does not depend on the rows beside it.
type adaptPass struct {
	workers pool.Workers
	all     adaptScratch   // of products that the workers divide
	own     []adaptScratch // one a worker

	adaptProduct // of the run under way
	shard        *rowShard
	parts        []adaptPart
}

// adaptProduct is a product that adapters add to.
type adaptProduct struct {
	on     *adapterSite
	matrix int           // which of the target's
	read   *kernels.Acts // the rows that it reads
	at     []int32       // which of them is row i of y; nil: i
	y      []float32     // [rows][on.width]
}

// lowOf returns what an adapter has for a product, nil: nothing.
func (p *adaptProduct) lowOf(a *Adapter) *lowRank {
	if list := a.on[p.on]; list != nil {
		return list[p.matrix]
	}
	return nil
}

// adaptPart is rows of a group for one worker.
type adaptPart struct {
	group  *adaptGroup
	lo, hi int
}

// adaptScratch is the memory for products of some rows.
type adaptScratch struct {
	read, low   kernels.Acts
	x           []float32 // [n][cols] the rows
	down, lows  []float32 // [n][ranks], [n][rank]
	out, spread []float32 // [n][outputs] and of stacked matrices
}

func newAdaptPass(w pool.Workers) adaptPass {
	return adaptPass{workers: w, own: make([]adaptScratch, w.N())}
}

// adapt adds to y, the products of target t with the rows that acts has been set to, what
// adapters make of these rows.
func (s *rowShard) adapt(y []float32, t *adapterSite) { s.adaptOf(y, t, &s.acts) }

// adaptOf does as adapt, of rows of the shard that other acts hold.
func (s *rowShard) adaptOf(y []float32, t *adapterSite, read *kernels.Acts) {
	if len(s.adapters.groups) == 0 || t == nil {
		return
	}
	p := &s.adapting
	p.shard, p.adaptProduct = s, adaptProduct{on: t, read: read, y: y}
	for lo, groups := 0, s.adapters.groups; lo < len(groups); {
		hi := lo + 1
		for hi < len(groups) && groups[hi].round == groups[lo].round {
			hi++
		}
		p.run(groups[lo:hi])
		lo = hi
	}
}

// run adds the products of the groups of one round. With as many parts as workers, each takes
// rows of its own; fewer rows are divided product by product.
func (p *adaptPass) run(groups []adaptGroup) {
	rows := 0
	for i := range groups {
		if p.lowOf(groups[i].adapter) != nil {
			rows += len(groups[i].rows)
		}
	}
	most := pool.Parts(rows, p.workers.N())
	p.parts = p.parts[:0]
	for i := range groups {
		g := &groups[i]
		if p.lowOf(g.adapter) == nil {
			continue
		}
		n := len(g.rows)
		for k, parts := 0, pool.Parts(n, most); k < parts; k++ {
			p.parts = append(p.parts, adaptPart{g, k * n / parts, (k + 1) * n / parts})
		}
	}
	if p.workers.Alone || len(p.parts) >= p.workers.N() {
		p.workers.Run(p, len(p.parts))
		return
	}
	for i := range p.parts {
		p.all.add(&p.adaptProduct, &p.parts[i])
	}
}

// Do adds the products of one part.
func (p *adaptPass) Do(worker, part int) {
	s := &p.own[worker]
	if p.workers.Alone {
		worker = p.shard.acts.Worker()
	}
	s.pin(worker)
	s.add(&p.adaptProduct, &p.parts[part])
}

// pin makes one worker compute the products with s.
func (s *adaptScratch) pin(worker int) {
	s.read.Pin(worker)
	s.low.Pin(worker)
}

// addAll adds the products of all groups, one after the other.
func (s *adaptScratch) addAll(p adaptProduct, groups []adaptGroup) {
	for i := range groups {
		if g := &groups[i]; p.lowOf(g.adapter) != nil {
			s.add(&p, &adaptPart{g, 0, len(g.rows)})
		}
	}
}

// add adds the products of one part.
func (s *adaptScratch) add(p *adaptProduct, part *adaptPart) {
	low, rows, scales := p.lowOf(part.group.adapter), part.group.rows[part.lo:part.hi], part.group.scales[part.lo:part.hi]
	n, cols := len(rows), p.on.cols
	s.x = cpu.Grow(s.x, n*cols)
	for i, row := range rows {
		if p.at != nil {
			row = p.at[row]
		}
		copy(rowOf(s.x, i, cols), p.read.Row(int(row)))
	}
	s.read.Set(s.x, n, cols)
	s.down = cpu.Grow(s.down, n*low.down.Sum)
	low.down.Mul(s.down, &s.read, &s.spread)
	for i := range low.up {
		u := &low.up[i]
		s.lows, s.out = cpu.Grow(s.lows, n*u.rank), cpu.Grow(s.out, n*u.n)
		for k := range n {
			dst := rowOf(s.lows, k, u.rank)
			copy(dst, rowOf(s.down, k, low.down.Sum)[u.from:])
			vector.ScaleInto(dst, u.strength*scales[k])
		}
		s.low.Set(s.lows, n, u.rank)
		u.b.Mul(s.out, &s.low, &s.spread)
		for k, row := range rows {
			vector.AddInto(rowOf(p.y, int(row), p.on.width)[u.to:u.to+u.n], rowOf(s.out, k, u.n))
		}
	}
}

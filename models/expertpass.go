package models

import (
	"cmp"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// expertPass takes the rows of a step through a mixture, with the memory for that.
// Rows are grouped by expert, so that each expert is one product of its own rows and
// is read once a step, however many sequences want it:
//
//	row       0    1    2            expert    0  1     3     7
//	experts   3 1  1 0  3 7    ──▶   rows      1  0 1   0 2   2
//	                                 places    0  1 2   3 4   5
//
// A large group is a product of the whole pool. Small ones share a launch: each
// worker takes one at a time, the largest first, and computes all of it.
type expertPass struct {
	pool  *pool.Pool
	local bool // the experts are the CPU's, so that workers may multiply by themselves

	choice
	active []int32 // of groups, those being multiplied, the one of most rows first
	large  int     // of active: the whole pool multiplies each

	gateUp, gate, out []float32    // [places] × [makes(width)], [width], [reads]
	latent, back      []float32    // [rows] × [reads], [Hidden] of a latent space
	all               expertWorker // the whole pool, which multiplies large groups
	own               []expertWorker

	request       Experts   // of the Accelerator
	sharedWeights []float32 // [rows] of it
	untaken       int       // of groups, those that the Accelerator has not

	m    *expertSet
	s    *rowShard
	what expertWork
}

// choice is the experts that the rows of a step chose, and the rows grouped by expert.
type choice struct {
	logits  []float32 // [rows][experts] of the router
	experts []int32   // [rows][chosen]
	weights []float32 // [rows][chosen]
	places  []int32   // [rows][chosen] where the row stands among those grouped by expert
	first   []int32   // [experts+1] each expert's first place
	rowAt   []int32   // [places] the row that stands there
	groups  []int32   // experts that rows chose
}

// reserve makes room for n rows that choose so many of the experts.
func (c *choice) reserve(n, chosen, experts int) {
	c.logits = cpu.Grow(c.logits, n*experts)
	c.experts, c.weights = cpu.Grow(c.experts, n*chosen), cpu.Grow(c.weights, n*chosen)
	c.places, c.rowAt = cpu.Grow(c.places, n*chosen), cpu.Grow(c.rowAt, n*chosen)
	c.first = cpu.Grow(c.first, experts+1)
	c.groups = slices.Grow(c.groups[:0], experts)
}

// expertWorker is the memory for a worker that multiplies an expert by itself.
type expertWorker struct {
	acts kernels.Acts
	part []float32 // outputs of one of several stacked matrices

	variants []*Variant // [rows] of an expert
	adapters adaptPlan  // of variants
	adapt    adaptScratch
}

// plan groups the rows of a shard that stand at numbers by their adapters.
func (w *expertWorker) plan(s *rowShard, at []int32) {
	w.variants = w.variants[:0]
	for _, row := range at {
		if s.variants != nil {
			w.variants = append(w.variants, s.variants[row])
		}
	}
	w.adapters.make(w.variants)
}

// expertWork is a part of a pass's task.
type expertWork uint8

const (
	routeRows   expertWork = iota // expertRows rows
	multiplyOne                   // a small group
	combineRows                   // expertRows rows
)

// expertRows is the rows of a part that routes or combines.
const expertRows = 4

// smallShare: a group is small if it is at most this part of a worker's share of the
// places. Workers that take such groups as they come end close together.
const smallShare = 4

func newExpertPass(p *pool.Pool, local bool) *expertPass {
	x := &expertPass{pool: p, local: local, own: make([]expertWorker, p.Threads())}
	for i := range x.own {
		x.own[i].acts.Pin(i)
		x.own[i].adapt.pin(i)
	}
	return x
}

// run sets y of the rows of s.
func (x *expertPass) run(m *expertSet, s *rowShard) {
	x.choose(m, s)
	x.finish()
}

// choose has the rows of s choose their experts.
func (x *expertPass) choose(m *expertSet, s *rowShard) {
	x.m, x.s = m, s
	x.reserve()
	if m.routerNorm != nil {
		s.ops.norm(s.h, s.x, s.rows, m.routerNorm, s.cfg.NormEps)
	}
	s.acts.Set(s.h, s.rows, s.cfg.Hidden)
	m.router.multiply(s, x.logits)
	if m.norm != nil {
		s.ops.norm(s.h, s.x, s.rows, m.norm, s.cfg.NormEps)
		s.acts.Set(s.h, s.rows, s.cfg.Hidden)
	}
	x.rows(routeRows)
	if m.routed != nil {
		m.routed(x.experts, x.weights)
	}
	x.group(m.chosen)
	x.ask()
}

// finish sets y by the choices of the rows.
func (x *expertPass) finish() {
	x.multiplyShared()
	x.intoLatent()
	x.multiplyAll()
	x.rows(combineRows)
	x.outOfLatent()
	x.end()
}

// multiplyAll sets out: the backend computes the experts that it has, and the CPU the others beside it. Each writes at
// the places of its own.
func (x *expertPass) multiplyAll() {
	if x.request.set == nil {
		x.multiplyHere()
		return
	}
	x.groups = slices.DeleteFunc(x.groups, func(e int32) bool { return x.m.taken[e] })
	if len(x.groups) == 0 {
		x.s.device.accelerator.RunExperts(&x.request)
		return
	}
	var backend parallel.Group
	defer backend.Wait() // though the CPU panics: the memory is the step's
	backend.Go(func() { x.s.device.accelerator.RunExperts(&x.request) })
	x.multiplyHere()
}

// multiplyHere has the CPU multiply the rows of x.groups.
func (x *expertPass) multiplyHere() {
	for _, packing := range x.m.packings {
		x.s.acts.Quantise(x.pool, packing)
	}
	for rest := x.groups; len(rest) > 0; {
		n := x.begin(rest)
		if n == 0 { // the step has failed
			clear(x.out)
			return
		}
		x.multiplyActive(rest[:n])
		rest = rest[n:]
	}
}

func (x *expertPass) end() { x.m, x.s, x.active = nil, nil, nil }

// begin has the first n of the experts in memory: the others wait for them to be multiplied.
func (x *expertPass) begin(experts []int32) (n int) {
	m := x.m
	if m.store == nil {
		return len(experts)
	}
	n = m.store.begin(m.layer, experts)
	for _, e := range experts[:n] {
		for _, packing := range m.store.at(m.layer, e).gateUp.Packings {
			x.s.acts.Quantise(x.pool, packing)
		}
	}
	return n
}

// multiplyActive multiplies the rows of experts that are in memory.
func (x *expertPass) multiplyActive(experts []int32) {
	x.divide(experts)
	for _, e := range x.active[:x.large] {
		x.multiply(e, &x.all)
	}
	x.what = multiplyOne
	x.pool.Run(x, len(x.active)-x.large)
}

// reserve makes room for the rows.
func (x *expertPass) reserve() {
	m, n := x.m, x.s.rows
	places := n * m.chosen
	x.choice.reserve(n, m.chosen, m.routing.experts)
	values := max(places*m.width, n*m.shared.width)
	x.gateUp, x.gate, x.out = cpu.Grow(x.gateUp, m.makes(values)), cpu.Grow(x.gate, values), cpu.Grow(x.out, places*m.reads)
	if m.latent != nil {
		x.latent, x.back = cpu.Grow(x.latent, n*m.reads), cpu.Grow(x.back, n*x.s.cfg.Hidden)
	}
}

// rows does what there is to do with every row.
func (x *expertPass) rows(what expertWork) {
	x.what = what
	start := x.pool.Meter().Start()
	x.pool.Run(x, pool.Parts(x.s.rows, expertRows))
	x.pool.Meter().Stop(meter.Rows, start, x.pool.Threads(), 0, 0)
}

// group gives every row a place among the rows of each expert that it chose.
func (c *choice) group(chosen int) {
	clear(c.first)
	for _, e := range c.experts {
		c.first[e+1]++
	}
	for e, n := range c.first[1:] {
		if n > 0 {
			c.groups = append(c.groups, int32(e))
		}
		c.first[e+1] += c.first[e]
	}
	for i, e := range c.experts { // first is where the next row of each stands
		at := c.first[e]
		c.first[e]++
		c.places[i], c.rowAt[at] = at, int32(i/chosen)
	}
	copy(c.first[1:], c.first[:len(c.first)-1])
	c.first[0] = 0
}

// divide says which groups of experts the whole pool multiplies: what is left is for a
// worker each.
func (x *expertPass) divide(experts []int32) {
	slices.SortFunc(experts, func(a, b int32) int {
		if d := cmp.Compare(x.size(b), x.size(a)); d != 0 {
			return d
		}
		return cmp.Compare(a, b)
	})
	places := 0
	for _, e := range experts {
		places += x.size(e)
	}
	threads := x.pool.Threads()
	x.active, x.large = experts, 0
	for x.large < len(experts) && (!x.local || x.size(experts[x.large])*smallShare*threads > places) {
		x.large++
	}
	if len(experts)-x.large < threads {
		x.large = len(experts) // too few to share
	}
}

// size returns the rows of an expert.
func (c *choice) size(e int32) int { return int(c.first[e+1] - c.first[e]) }

// Do runs a part of the work under way.
func (x *expertPass) Do(worker, part int) {
	if x.what == multiplyOne {
		x.multiply(x.active[x.large+part], &x.own[worker])
		return
	}
	for i := part * expertRows; i < min(x.s.rows, (part+1)*expertRows); i++ {
		if x.what == routeRows {
			x.route(i)
		} else {
			x.combine(i)
		}
	}
}

// route chooses the experts of row i.
func (x *expertPass) route(i int) {
	r := &x.m.routing
	lo, hi := i*r.chosen, (i+1)*r.chosen
	logits := rowOf(x.logits, i, r.experts)
	if x.m.bias != nil {
		vector.AddInto(logits, x.m.bias)
	}
	r.route(x.experts[lo:hi], x.weights[lo:hi], logits, x.m.prefer)
	if x.m.factors != nil {
		for k, e := range x.experts[lo:hi] {
			x.weights[lo+k] *= x.m.factors[e]
		}
	}
}

// multiply sets out of the places of expert e, with what w has.
func (x *expertPass) multiply(e int32, w *expertWorker) {
	m, lo, n := x.m, int(x.first[e]), x.size(e)
	ex, a, at, makes := m.expert(e), &w.acts, x.rowAt[lo:lo+n], m.makes(m.width)
	w.plan(x.s, at)
	var gateUpBias, downBias []float32
	if m.downBias != nil {
		gateUpBias, downBias = rowOf(m.gateUpBias, int(e), makes), rowOf(m.downBias, int(e), m.reads)
	}
	a.Gather(&x.s.acts.Rows, at)
	if !x.local {
		a.MakeRows(x.pool) // a device quantises by itself
	}
	gateUp, gate := rowsOf(x.gateUp, lo, lo+n, makes), rowsOf(x.gate, lo, lo+n, m.width)
	ex.gateUp.Mul(gateUp, a, &w.part)
	w.adapt.addAll(adaptProduct{on: m.onUp, matrix: int(e), read: &x.s.acts, at: at, y: gateUp}, w.adapters.groups)
	if a.Pinned() {
		start := x.pool.Meter().Start()
		for i := range n {
			both := rowOf(gateUp, i, makes)
			if gateUpBias != nil {
				vector.AddInto(both, gateUpBias)
			}
			m.unit.row(rowOf(gate, i, m.width), both)
		}
		x.pool.Meter().Stop(meter.Rows, start, 1, 0, 0)
	} else {
		x.s.ops.addBias(gateUp, n, gateUpBias)
		x.s.ops.gate(m.unit, gate, gateUp, n, m.width, makes)
	}
	a.Set(gate, n, m.width)
	out := rowsOf(x.out, lo, lo+n, m.reads)
	ex.down.Mul(out, a, &w.part)
	w.adapt.addAll(adaptProduct{on: m.onDown, matrix: int(e), read: a, y: out}, w.adapters.groups)
	for i := 0; i < n && downBias != nil; i++ {
		vector.AddInto(rowOf(out, i, m.reads), downBias)
	}
}

// multiplyShared sets y to the output of the expert that all rows take, if there is one.
func (x *expertPass) multiplyShared() {
	m, s, width := x.m, x.s, x.m.shared.width
	if width == 0 || x.request.Shared != nil {
		return
	}
	m.shared.gateUp.Mul(x.gateUp, &s.acts, &x.all.part)
	s.adapt(x.gateUp, m.shared.onUp)
	s.ops.gate(m.unit, x.gate, x.gateUp, s.rows, width, m.makes(width))
	x.all.acts.Set(x.gate, s.rows, width)
	m.shared.down.Mul(s.y, &x.all.acts, &x.all.part)
	s.adaptOf(s.y, m.shared.onDown, &x.all.acts)
}

// combine adds to row i of y, or of the latent space, the weighted sum of its experts' outputs, the best
// expert first.
func (x *expertPass) combine(i int) {
	m, s, hidden := x.m, x.s, x.s.cfg.Hidden
	y := rowOf(s.y, i, hidden)
	if m.latent != nil {
		y = rowOf(x.latent, i, m.reads)
	}
	switch {
	case m.shared.width == 0 || m.latent != nil:
		clear(y)
	case m.shared.gate != nil:
		vector.ScaleInto(y, m.sharedWeight(rowOf(s.h, i, hidden)))
	}
	for j := i * m.chosen; j < (i+1)*m.chosen; j++ {
		out := rowOf(x.out, int(x.places[j]), m.reads)
		if !m.joins {
			vector.Axpy(y, x.weights[j], out)
			continue
		}
		vector.ScaleInto(out, x.weights[j]) // rounded as where the backend adds them
		vector.AddInto(y, out)
	}
}

// sharedWeight returns the weight of what the shared expert makes of h.
func (m *expertSet) sharedWeight(h []float32) float32 {
	if m.shared.gate == nil {
		return 1
	}
	return float32(1 / (1 + math.Exp(-float64(vector.Dot(h, m.shared.gate)))))
}

// ask makes the request of the backend of the experts that it has.
func (x *expertPass) ask() {
	m, s := x.m, x.s
	x.request = Experts{List: x.request.List[:0]}
	if m.taken == nil || s.device.backend.Err() != nil {
		return
	}
	for _, e := range x.groups {
		if m.taken[e] {
			x.request.List = append(x.request.List, e)
		}
	}
	x.untaken = len(x.groups) - len(x.request.List)
	x.request = Experts{
		Layer: m.layer, Rows: s.rowPos, H: s.h, List: x.request.List, First: x.first, RowAt: x.rowAt,
		GateUp: x.gateUp, Gate: x.gate, Out: x.out, Hidden: s.cfg.Hidden, Width: m.width, set: m,
		Chosen: m.chosen, Weights: x.weights, Places: x.places,
	}
	if m.shared.taken && !s.device.adapted {
		x.sharedWeights = cpu.Grow(x.sharedWeights, s.rows)
		for i := range s.rows {
			x.sharedWeights[i] = m.sharedWeight(rowOf(s.h, i, s.cfg.Hidden))
		}
		x.request.Shared, x.request.SharedWeights = s.y[:s.rows*s.cfg.Hidden], x.sharedWeights
	}
}

// fusedRequest returns the request if it has all experts that the rows have chosen, else nil.
func (x *expertPass) fusedRequest() *Experts {
	if x.request.set == nil || x.untaken > 0 || x.m.shared.width > 0 && x.request.Shared == nil {
		return nil
	}
	return &x.request
}

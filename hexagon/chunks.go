package hexagon

import (
	"slices"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models"
)

// chunkWork takes the rows of a step through the experts of a layer:
//
//	rows of chunks ──by expert, up to its capacity──▶ a launch for each group: gatedExpert
//	               ──beyond it──────────────────────▶ the host
//	other rows ─────────────────────────────────────▶ the host, or with Options.Decode a launch
//
// All rows get the device's bits. Where the host has what is between an expert's products, a group is a
// launch of gate and up, and one of down.
type chunkWork struct {
	of       []int32 // [rows] the chunk of each, from 1 on; none: no chunk
	chunks   int32
	ints     []int32   // memory of lists
	products []product // of a launch
	acts     kernels.Acts
	in, out  []float32 // rows of a matrix that the CPU has
}

// groupWork is the rows of a chunk for a group's experts: whole ones have a list, others parts, with rows beyond a capacity.
type groupWork struct {
	*experts.Group
	list   []gatedRows
	parts  []share
	beyond []share
}

// share is the part of an expert's rows that a launch computes.
type share struct {
	expert int32
	places []int32 // at most the group's capacity
}

const none = 0

// expertRuns computes the experts of steps: chunk by chunk, group by group.
type expertRuns struct {
	s        *session
	q        *request
	products *products
	mixture  *mixturePlan
	gated    *gatedRuns // on the device
	beside   *gatedRuns // on the host, perhaps meanwhile
	work     chunkWork
	groups   []groupWork
}

// Begin implements models.Accelerator: the host computes steps without chunks.
func (b *Backend) Begin(rows []models.RowPos) {
	if b.plan.mixture == nil || b.session.dev == nil {
		return
	}
	b.session.mu.Lock()
	defer b.session.mu.Unlock()
	er, c := b.experts, b.session.counts
	n := er.work.divide(rows, b.plan.mixture.plan.Chunk)
	c.Chunks += int64(er.work.chunks)
	c.Tokens += int64(n)
	er.on(n == 0 && !b.opt.Decode)
}

// on has the host compute what follows, or the device.
func (er *expertRuns) on(host bool) {
	er.q.hosted, er.products.resident = host, resident{}
}

// divide puts rows into chunks of at most most, and returns how many it put there.
func (w *chunkWork) divide(rows []models.RowPos, most int) (n int) {
	w.of, w.chunks = w.of[:0], 0
	filled := most
	for lo, hi := 0, 0; lo < len(rows); lo = hi {
		hi = lo + 1
		for hi < len(rows) && rows[hi].Seq == rows[lo].Seq {
			hi++
		}
		for range hi - lo {
			chunk := int32(none)
			if hi-lo >= leastChunk {
				if filled == most {
					w.chunks, filled = w.chunks+1, 0
				}
				chunk, filled, n = int32(w.chunks), filled+1, n+1
			}
			w.of = append(w.of, chunk)
		}
	}
	return n
}

// RunExperts implements models.Accelerator.
func (b *Backend) RunExperts(x *models.Experts) {
	b.session.mu.Lock()
	defer b.session.mu.Unlock()
	b.experts.run(x)
}

// run computes the experts that x names.
func (er *expertRuns) run(x *models.Experts) {
	w, c := &er.work, er.s.counts
	w.ints = w.ints[:0]
	routed := int64(w.divide(x.Rows, er.mixture.plan.Chunk)) * int64(len(x.RowAt)/max(1, len(x.Rows)))
	before := *c
	groups := er.mixture.plan.Layers[x.Layer].Groups
	rest := slices.Contains(w.of, none)
	er.beside.work.of, er.beside.work.ints = w.of, er.beside.work.ints[:0]
	for chunk := range w.chunks {
		er.runChunk(x, groups, chunk+1, rest && chunk == 0 && !er.s.opt.Decode)
	}
	if rest {
		er.runRest(x)
	}
	c.Routed += routed
	c.Cold += routed - (c.Computed - before.Computed) - (c.Overflow - before.Overflow)
	if er.s.err() != nil {
		for _, e := range x.List { // the step fails for it; the CPU may still write the other places
			clear(x.Out[int(x.First[e])*x.Hidden : int(x.First[e+1])*x.Hidden])
		}
		clear(x.Shared)
	}
}

// sharedRows adds the rows of a chunk among [lo, hi) to a list, as the shared expert's: by the path of whole chunks, of as
// many as there are.
func (gr *gatedRuns) sharedRows(list []gatedRows, x *models.Experts, chunk int32, lo, hi int) []gatedRows {
	w, g := gr.work, &gr.mixture.gated
	if x.Shared == nil {
		return list
	}
	from, room := len(w.ints), 0
	for i := range x.Rows {
		if w.of[i] == chunk {
			if room++; i >= lo && i < hi {
				w.ints = append(w.ints, int32(i))
			}
		}
	}
	if chunk != none {
		room = g.chunk
	}
	rows := w.ints[from:len(w.ints):len(w.ints)]
	return g.split(list, g.shared[x.Layer], rows, len(rows), room)
}

// placesOf lists the places of an expert whose rows are in that chunk.
func (w *chunkWork) placesOf(x *models.Experts, e, chunk int32) []int32 {
	from := len(w.ints)
	for p := x.First[e]; p < x.First[e+1]; p++ {
		if w.of[x.RowAt[p]] == chunk {
			w.ints = append(w.ints, p)
		}
	}
	return w.ints[from:len(w.ints):len(w.ints)]
}

// runRest computes the rows of no chunk of experts that are whole.
func (gr *gatedRuns) runRest(x *models.Experts) {
	for lo, hi := 0, 0; lo < len(x.Rows); lo = hi {
		hi = gr.writeChunk(x, none, lo)
		gr.list = gr.sharedRows(gr.list[:0], x, none, lo, hi)
		for _, e := range x.List {
			if of := gr.mixture.gated.of[x.Layer][e]; of != nil {
				places := gr.work.placesOf(x, e, none)
				room := len(places)
				places = slices.DeleteFunc(places, func(p int32) bool { return x.RowAt[p] < int32(lo) || x.RowAt[p] >= int32(hi) })
				gr.list = gr.mixture.gated.split(gr.list, of, places, len(places), room)
			}
		}
		gr.run(x, gr.list)
	}
}

// runRest computes the rows of no chunk that are not computed yet.
func (er *expertRuns) runRest(x *models.Experts) {
	hosted := er.q.hosted
	er.on(!er.s.opt.Decode)
	switch {
	case er.s.opt.Decode:
		er.gated.runRest(x)
	case er.work.chunks == 0:
		er.beside.runRest(x)
	}
	for _, e := range x.List {
		places := er.work.placesOf(x, e, none)
		er.s.counts.Decoded += int64(len(places))
		if er.mixture.gated.of[x.Layer][e] == nil && len(places) > 0 {
			er.runHere(x, e, places, 0)
		}
	}
	er.on(hosted)
}

// runChunk launches the groups for a chunk. Meanwhile the host computes what they have no room for and, with rest, the rows
// of no chunk.
func (er *expertRuns) runChunk(x *models.Experts, groups []experts.Group, chunk int32, rest bool) {
	gr, beside := er.gated, er.beside
	gr.writeChunk(x, chunk, 0)
	gr.all = gr.sharedRows(gr.all[:0], x, chunk, 0, len(x.Rows))
	er.groups, gr.list, beside.beyond = er.groups[:0], gr.list[:0], beside.beyond[:0]
	for i := range groups {
		er.divideGroup(x, &groups[i], chunk)
	}
	var host parallel.Group
	defer host.Wait()
	if rest || len(beside.beyond) > 0 {
		host.Go(func() {
			if rest {
				beside.runRest(x)
			}
			beside.writeChunk(x, chunk, 0)
			beside.run(x, beside.beyond)
		})
	}
	for i := range er.groups {
		er.launchGroup(x, &er.groups[i])
	}
	gr.run(x, gr.all) // where no group is whole
}

// divideGroup divides the rows of a chunk that chose a group's experts into those that a launch computes, and those that the
// experts have no room for.
func (er *expertRuns) divideGroup(x *models.Experts, g *experts.Group, chunk int32) {
	if g.Placement != experts.NPU {
		return
	}
	gated, beside := &er.mixture.gated, er.beside
	er.groups = slices.Grow(er.groups, 1)[:len(er.groups)+1]
	work, rows := &er.groups[len(er.groups)-1], 0
	work.Group, work.list, work.parts, work.beyond = g, work.list[:0], work.parts[:0], work.beyond[:0]
	for _, e := range g.Experts {
		part, whole := share{expert: int32(e)}, gated.of[x.Layer][e]
		over := share{expert: int32(e)}
		if slices.Contains(x.List, int32(e)) { // else it is an empty slice, or a matrix that the CPU has
			part.places = er.work.placesOf(x, int32(e), chunk)
			rows += len(part.places)
			room := min(g.Capacity, len(part.places))
			part.places, over.places = part.places[:room], part.places[room:]
			er.s.counts.Overflow += int64(len(over.places))
		}
		if whole != nil {
			work.list = gated.split(work.list, whole, part.places, g.Capacity, g.Capacity)
			beside.beyond = gated.split(beside.beyond, whole, over.places, len(over.places), g.Capacity)
			continue
		}
		if work.parts = append(work.parts, part); len(over.places) > 0 {
			work.beyond = append(work.beyond, over)
		}
	}
	if rows == 0 {
		er.groups = er.groups[:len(er.groups)-1]
	}
}

// launchGroup launches a group's experts.
func (er *expertRuns) launchGroup(x *models.Experts, g *groupWork) {
	if er.s.err() != nil {
		return
	}
	for _, over := range g.beyond {
		er.runHere(x, over.expert, over.places, g.Capacity)
	}
	for _, r := range g.list {
		er.computed(r.places, r.n)
	}
	if len(g.list) > 0 {
		er.gated.list = append(append(er.gated.list[:0], er.gated.all...), g.list...)
		er.gated.run(x, er.gated.list)
		er.gated.all = er.gated.all[:0]
	}
	if len(g.parts) == 0 {
		return
	}
	er.launchPart(x, g, gateUp)
	for _, part := range g.parts {
		er.computed(part.places, g.Capacity)
		for _, p := range part.places {
			x.GLU(part.expert, int(p))
		}
	}
	er.launchPart(x, g, down)
	for _, part := range g.parts {
		for _, p := range part.places {
			x.AddBias(part.expert, int(p))
		}
	}
}

// computed counts rows of an expert in a launch of its group, n with padding.
func (er *expertRuns) computed(places []int32, n int) {
	er.s.counts.Computed += int64(len(places))
	er.s.counts.Padded += int64(n - len(places))
}

// matrixOf is one of the two matrices of an expert.
type matrixOf uint8

const (
	gateUp matrixOf = iota
	down
)

// product lists the product of an expert's matrix and the rows at places.
func (w *chunkWork) product(x *models.Experts, e int32, which matrixOf, places []int32) (p product, lin kernels.Linear) {
	g, d := x.Matrices(e)
	if p = (product{n: len(places), to: places}); which == down {
		p.x, p.from, p.y, lin = x.Gate, places, x.Out, d
	} else {
		from := len(w.ints)
		for _, at := range places {
			w.ints = append(w.ints, x.RowAt[at])
		}
		p.x, p.from, p.y, lin = x.H, w.ints[from:len(w.ints):len(w.ints)], x.GateUp, g
	}
	p.linear, _ = lin.(*linear)
	return p, lin
}

// launchPart launches one of the matrices of each of a group's experts. Those that the
// device does not hold the CPU multiplies.
func (er *expertRuns) launchPart(x *models.Experts, g *groupWork, which matrixOf) {
	w, c := &er.work, er.s.counts
	w.products = w.products[:0]
	for _, part := range g.parts {
		p, lin := w.product(x, part.expert, which, part.places)
		if p.linear == nil {
			w.multiply(x, &p, lin, which)
			continue
		}
		p.capacity, p.lookup = g.Capacity, g.Capacity <= p.lookups
		w.products = append(w.products, p)
		c.BytesIn += int64(p.rowBytes())
		c.BytesOut += int64(p.outBytes())
	}
	if len(w.products) == 0 {
		return
	}
	c.Launches++
	c.Synced--                         // which a run counts as
	_ = er.products.launch(w.products) // RunExperts sees to a fault
}

// runHere computes rows of an expert: on the host those beyond a capacity, as the device
// would; with capacity 0 as rows of any matrix.
func (er *expertRuns) runHere(x *models.Experts, e int32, places []int32, capacity int) {
	hosted := er.q.hosted
	er.on(hosted || capacity > 0)
	for _, which := range []matrixOf{gateUp, down} {
		p, lin := er.work.product(x, e, which, places)
		if p.linear == nil {
			er.work.multiply(x, &p, lin, which)
		} else {
			rows := capacity
			if rows == 0 {
				rows = p.n
			}
			er.products.multiply(&p, rows <= p.lookups)
		}
		if which == gateUp {
			for _, at := range places {
				x.GLU(e, int(at))
			}
		}
	}
	for _, at := range places {
		x.AddBias(e, int(at))
	}
	er.on(hosted)
}

// multiply has the CPU multiply by a matrix of its own.
func (w *chunkWork) multiply(x *models.Experts, p *product, lin kernels.Linear, which matrixOf) {
	if p.n == 0 {
		return
	}
	in, out := x.Hidden, 2*x.Width
	if which == down {
		in, out = x.Width, x.Hidden
	}
	w.in, w.out = slices.Grow(w.in[:0], p.n*in)[:p.n*in], slices.Grow(w.out[:0], p.n*out)[:p.n*out]
	for i, at := range p.from {
		copy(w.in[i*in:(i+1)*in], p.x[int(at)*in:])
	}
	w.acts.Set(w.in, p.n, in)
	lin.Mul(w.out, &w.acts)
	for i, at := range p.to {
		copy(p.y[int(at)*out:][:out], w.out[i*out:])
	}
}

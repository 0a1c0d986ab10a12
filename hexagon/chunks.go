package hexagon

import (
	"slices"

	"github.com/lutra-lm/lutra/hexagon/experts"
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
	parts    []share   // of the group under way
	products []product // of a launch
	acts     kernels.Acts
	in, out  []float32 // rows of a matrix that the CPU has
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
	gated    *gatedRuns
	work     chunkWork
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
	for chunk := range w.chunks {
		er.gated.writeChunk(x, chunk+1, 0)
		er.gated.all = er.gated.sharedRows(er.gated.all[:0], x, chunk+1, 0, len(x.Rows))
		for i := range groups {
			er.runGroup(x, &groups[i], chunk+1)
		}
		er.gated.run(x, er.gated.all) // where no group is whole
	}
	er.runRest(x)
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

// runRest computes the rows of no chunk.
func (er *expertRuns) runRest(x *models.Experts) {
	w, g := &er.work, er.gated
	hosted := er.q.hosted
	er.on(!er.s.opt.Decode)
	for lo, hi := 0, 0; lo < len(x.Rows); lo = hi {
		hi = er.gated.writeChunk(x, none, lo)
		g.list = er.gated.sharedRows(g.list[:0], x, none, lo, hi)
		for _, e := range x.List {
			places := w.placesOf(x, e, none)
			if lo == 0 {
				er.s.counts.Decoded += int64(len(places))
			}
			if of := er.mixture.gated.of[x.Layer][e]; of != nil {
				room := len(places)
				places = slices.DeleteFunc(places, func(p int32) bool { return x.RowAt[p] < int32(lo) || x.RowAt[p] >= int32(hi) })
				g.list = er.mixture.gated.split(g.list, of, places, len(places), room)
			} else if lo == 0 && len(places) > 0 {
				er.runHere(x, e, places, 0)
			}
		}
		er.gated.run(x, g.list)
	}
	er.on(hosted)
}

// runGroup launches a group's experts for the rows of a chunk that chose them. The host
// computes what they have no room for.
func (er *expertRuns) runGroup(x *models.Experts, g *experts.Group, chunk int32) {
	if g.Placement != experts.NPU || er.s.err() != nil {
		return
	}
	w, c, of := &er.work, er.s.counts, er.gated
	w.parts, of.list, of.beyond = w.parts[:0], append(of.list[:0], of.all...), of.beyond[:0]
	rows := 0
	for _, e := range g.Experts {
		part, whole := share{expert: int32(e)}, er.mixture.gated.of[x.Layer][e]
		var beyond []int32
		if slices.Contains(x.List, int32(e)) { // else it is an empty slice, or a matrix that the CPU has
			part.places = w.placesOf(x, int32(e), chunk)
			rows += len(part.places)
			room := min(g.Capacity, len(part.places))
			part.places, beyond = part.places[:room], part.places[room:]
			c.Overflow += int64(len(beyond))
		}
		switch {
		case whole != nil:
			of.list = er.mixture.gated.split(of.list, whole, part.places, g.Capacity, g.Capacity)
			of.beyond = er.mixture.gated.split(of.beyond, whole, beyond, len(beyond), g.Capacity)
		default:
			w.parts = append(w.parts, part)
			if len(beyond) > 0 {
				er.runHere(x, int32(e), beyond, g.Capacity)
			}
		}
	}
	if rows == 0 {
		return
	}
	for _, r := range of.list[len(of.all):] {
		er.computed(r.places, r.n)
	}
	if len(of.list) > len(of.all) {
		er.gated.run(x, of.list)
		of.all = of.all[:0]
	}
	hosted := er.q.hosted
	er.on(true)
	er.gated.run(x, of.beyond)
	er.on(hosted)
	if len(w.parts) == 0 {
		return
	}
	er.launchPart(x, g, gateUp)
	for _, part := range w.parts {
		er.computed(part.places, g.Capacity)
		for _, p := range part.places {
			x.GLU(part.expert, int(p))
		}
	}
	er.launchPart(x, g, down)
	for _, part := range w.parts {
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
func (er *expertRuns) launchPart(x *models.Experts, g *experts.Group, which matrixOf) {
	w, c := &er.work, er.s.counts
	w.products = w.products[:0]
	for _, part := range w.parts {
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

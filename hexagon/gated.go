package hexagon

import (
	"slices"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/models"
)

// gatedExpert is an expert that the device computes whole, in float32 but for the products:
//
//	rows ──OpCollect──▶ gate and up, with biases ──OpGLU──▶ down, with its bias ──▶ results
//
// What becomes of a row depends on the row and on how many there is room for, which says the path of
// products. The device, in whatever launch, and the host beside it run the same packets: this is the
// one definition of what an expert computes.
type gatedExpert struct {
	number       int32  // models.SharedExpert: all rows take it
	gateUp, down *stack // down nil: the CPU has it, and gets what it reads
	up, width    int    // where the numbers of up begin, and how many there are
	unit         unit
}

// gatedPlan holds the gated experts of all layers, and the memory of their launches.
type gatedPlan struct {
	of     [][]*gatedExpert // [layer][expert] nil: the host has what is between its products
	shared []*gatedExpert   // [layer]
	vectors
	hidden int
	width  int // of the widest
	chunk  int // rows
	most   int // rows of an expert

	device, host launchMemory // the host computes beside the device
}

// launchMemory is where launches of one after the other lie: the rows of a chunk, from which experts collect theirs, and the
// result of each row of a launch.
type launchMemory struct {
	rowBuffers
	h      span   // of the chunk, and a row of zeros
	table  uint32 // of the rows in h that are collected
	x      span   // of an expert
	rows   int    // of a launch
	gateUp span
	gated  span
	out    span
}

// gatedRuns makes launches of gated experts, has the device or the host run them, and takes in the results.
type gatedRuns struct {
	s       *session
	q       *request
	mixture *mixturePlan
	mem     *launchMemory
	work    *chunkWork
	slots   []int32 // of the step's rows those in h
	list    []gatedRows
	beyond  []gatedRows
	all     []gatedRows // of a chunk's shared expert, until a group's launch has it
	outs    []uint32    // of a launch: where the results of places are
	scratch []float32
}

// gatedRows is rows of an expert in a launch: those at places, and zeros up to n. Places of the shared expert are rows
// of the step.
type gatedRows struct {
	*gatedExpert
	places []int32
	n      int
	room   int // whose path the products take
	first  int // in the launch
}

// GatedExpert implements models.Accelerator. It takes experts whose products have no bits of the CPU's,
// and whose rows are whole vectors.
func (b *Backend) GatedExpert(layer, expert int, x *models.GatedExpert) bool {
	mixture, a := b.plan.mixture, &b.plan.arena
	hidden, v := mixture.plan.Shape.Hidden, &mixture.gated.vectors
	for _, r := range expertRules {
		if r.refuses(b.opt, hidden, x) {
			b.plan.refuse("experts", layer, r.why)
			return false
		}
	}
	g := &gatedExpert{number: int32(expert), gateUp: newStack(a, v, hidden, x.GateUp...), up: x.Width, width: x.Width, unit: units[x.Unit]}
	if g.gateUp == nil {
		b.plan.refuse("experts", layer, "the device does not hold the matrices of its gate")
		return false
	}
	if len(g.gateUp.parts) > 1 {
		g.up = g.gateUp.col[1]
	}
	g.gateUp.addBias(v, a, x.GateUpBias)
	if g.down = newStack(a, v, x.Width, x.Down); g.down != nil {
		g.down.addBias(v, a, x.DownBias)
	}
	if expert == models.SharedExpert {
		if g.down == nil {
			b.plan.refuse("experts", layer, "the device does not hold the matrix after the gate of the shared expert")
			return false
		}
		mixture.gated.shared[layer] = g
		return true
	}
	mixture.gated.of[layer][expert] = g
	return true
}

// expertRules are the reasons for which the host has what is between an expert's products.
var expertRules = []struct {
	why     string
	refuses func(opt *Options, hidden int, x *models.GatedExpert) bool
}{
	{"the device does not know the expert's unit", func(_ *Options, _ int, x *models.GatedExpert) bool {
		_, known := units[x.Unit]
		return !known
	}},
	{"products of the path int8 have the CPU's bits, so the CPU computes what is between them", func(opt *Options, _ int, _ *models.GatedExpert) bool { return opt.Path == PathInt8 }},
	{"rows are not whole tiles of 32 numbers", func(_ *Options, hidden int, x *models.GatedExpert) bool {
		return hidden%layout.Tile+x.Width%layout.Tile != 0
	}},
	{"the expert has no matrix after its gate", func(_ *Options, _ int, x *models.GatedExpert) bool { return x.Down == nil }},
}

// begin makes room for the experts of a plan.
func (g *gatedPlan) begin(p *experts.Plan) {
	g.hidden, g.of, g.shared = p.Shape.Hidden, make([][]*gatedExpert, p.Shape.Layers), make([]*gatedExpert, p.Shape.Layers)
	for i := range g.of {
		g.of[i] = make([]*gatedExpert, p.Shape.Experts)
	}
}

// reserve lays out launches of the plan's groups, and of rows of no chunk.
func (g *gatedPlan) reserve(a *arena, p *experts.Plan) {
	gateUp, out, k, outs, lookups, shared := 0, 0, 0, 0, 0, 0
	g.chunk, g.most = p.Chunk, tileRows
	launched := tileRows
	for i, layer := range g.of {
		if g.shared[i] != nil {
			shared = roundUp(p.Chunk, layout.Tile)
		}
		for _, x := range append(slices.Clone(layer), g.shared[i]) {
			if x == nil {
				continue
			}
			gateUp, g.width = max(gateUp, x.gateUp.width), max(g.width, x.width)
			parts := x.gateUp.parts
			if x.down != nil {
				parts, out = append(slices.Clone(parts), x.down.parts...), max(out, x.down.width)
			}
			for _, l := range parts {
				k, outs = max(k, l.K), max(outs, l.M)
				if l.lookups > 0 {
					lookups = max(lookups, l.tableRows())
				}
			}
		}
		for j := range p.Layers[i].Groups {
			if of := &p.Layers[i].Groups[j]; of.Placement == experts.NPU {
				g.most = max(g.most, min(of.Capacity, device.MaxTiles)) // which OpCollect brings
				launched = max(launched, len(of.Experts)*roundUp(of.Capacity, layout.Tile))
			}
		}
	}
	if gateUp == 0 {
		return
	}
	rows := func(n, width int) span { return span{a.reserve(4 * width * n), uint32(4 * width)} }
	g.device.rows, g.host.rows = launched+shared, roundUp(g.most, layout.Tile)
	for _, m := range []*launchMemory{&g.device, &g.host} {
		m.h, m.x, m.table = rows(g.chunk+1, p.Shape.Hidden), rows(g.most, p.Shape.Hidden), a.reserve(4*m.rows)
		m.gateUp, m.gated, m.out = rows(m.rows, gateUp), rows(m.rows, g.width), rows(m.rows, out)
		m.rowBuffers = a.rowBuffers(k, outs, lookups, tileRows)
	}
}

// start puts into the memory what does not change.
func (g *gatedPlan) start(mem []byte) {
	g.place(mem)
	for _, m := range []*launchMemory{&g.device, &g.host} {
		if m.rows > 0 {
			clear(mem[m.h.row(g.chunk).at:][:m.h.stride])
		}
	}
}

// writeChunk has the device see the rows of a chunk from row lo on, as many as there is room for, and
// returns the row that is next.
func (gr *gatedRuns) writeChunk(x *models.Experts, chunk int32, lo int) int {
	g, n := &gr.mixture.gated, 0
	if gr.mem.rows == 0 {
		return len(x.Rows)
	}
	gr.slots = slices.Grow(gr.slots[:0], len(x.Rows))[:len(x.Rows)]
	for ; lo < len(x.Rows) && (n < g.chunk || gr.work.of[lo] != chunk); lo++ {
		if gr.work.of[lo] == chunk {
			copy(device.View[float32](gr.q.mem, gr.mem.h.row(n).at, g.hidden), x.H[lo*g.hidden:])
			gr.slots[lo], n = int32(n), n+1
		}
	}
	gr.sent(4 * g.hidden * n)
	return lo
}

// sent counts bytes that the host wrote for experts, and received those that it read.
func (gr *gatedRuns) sent(n int) {
	gr.q.count(&gr.q.work.Written, n)
	gr.q.count(&gr.s.counts.BytesIn, n)
}
func (gr *gatedRuns) received(n int) {
	gr.q.count(&gr.q.work.Read, n)
	gr.q.count(&gr.s.counts.BytesOut, n)
}

// split adds rows of an expert in pieces that fit a launch. Those at places are computed, and zeros up to n.
func (g *gatedPlan) split(list []gatedRows, e *gatedExpert, places []int32, n, room int) []gatedRows {
	for n > 0 {
		some := min(n, g.most)
		have := min(some, len(places))
		list = append(list, gatedRows{gatedExpert: e, places: places[:have], n: some, room: room})
		places, n = places[have:], n-some
	}
	return list
}

// run computes rows of a layer's experts, in one launch if they fit.
func (gr *gatedRuns) run(x *models.Experts, list []gatedRows) {
	for len(list) > 0 {
		gr.q.spilled = spilled{} // what a launch asks depends on nothing before it
		n := gr.queue(x, list)
		if gr.s.compute(gr.q) != nil {
			return // RunExperts sees to it
		}
		for i := range list[:n] {
			gr.take(x, &list[i])
		}
		if gr.probe(x, list[:n]) != nil {
			return
		}
		list = list[n:]
	}
}

// queue queues a launch of the first n of a list, for which there is room.
func (gr *gatedRuns) queue(x *models.Experts, list []gatedRows) (n int) {
	for rows := 0; n < len(list) && rows+list[n].n <= gr.mem.rows; n++ {
		list[n].first, rows = rows, rows+roundUp(list[n].n, layout.Tile)
		gr.queueExpert(x, &list[n])
	}
	if !gr.q.hosted {
		gr.s.counts.Launches++
		gr.s.counts.Synced-- // which a run counts as
	}
	return n
}

// rowAt returns which of the step's rows is the i-th.
func (r *gatedRows) rowAt(x *models.Experts, i int) int32 {
	if r.number == models.SharedExpert {
		return r.places[i]
	}
	return x.RowAt[r.places[i]]
}

// queueExpert queues what the device does for rows of an expert.
func (gr *gatedRuns) queueExpert(x *models.Experts, r *gatedRows) {
	g, chunk := gr.mem, gr.mixture.gated.chunk
	at := g.table + uint32(4*r.first)
	for i, table := 0, device.View[uint32](gr.q.mem, at, r.n); i < r.n; i++ {
		slot := chunk
		if i < len(r.places) {
			slot = int(gr.slots[r.rowAt(x, i)])
		}
		table[i] = g.h.row(slot).at
	}
	gr.sent(4 * r.n)
	gr.q.add(device.OpCollect, g.x.at, at, uint32(r.n), g.x.stride, 0, g.x.stride)
	most := r.gateUp.atOnce(r.room)
	if r.down != nil {
		most = min(most, r.down.atOnce(r.room))
	}
	for lo := 0; lo < r.n; lo += most {
		n := min(most, r.n-lo)
		both, gated := g.gateUp.row(r.first+lo), g.gated.row(r.first+lo)
		gr.q.mulRows(&g.rowBuffers, r.gateUp, r.room, g.x.row(lo), both, n)
		gr.q.gate(r.unit, gated, both, both.from(r.up), n, r.width)
		if r.down != nil {
			gr.q.mulRows(&g.rowBuffers, r.down, r.room, gated, g.out.row(r.first+lo), n)
		}
	}
}

// take takes in the results, which the CPU's down may read.
func (gr *gatedRuns) take(x *models.Experts, r *gatedRows) {
	g := gr.mem
	from, to, width := g.out, x.Out, gr.mixture.gated.hidden
	switch {
	case r.number == models.SharedExpert:
		to = x.Shared
	case r.down == nil:
		from, to, width = g.gated, x.Gate, r.width
	}
	for i, place := range r.places {
		copy(to[int(place)*width:][:width], device.View[float32](gr.q.mem, from.row(r.first+i).at, width))
	}
	if gr.received(4 * width * len(r.places)); r.down != nil {
		return
	}
	p, lin := gr.work.product(x, r.number, down, r.places)
	gr.work.multiply(x, &p, lin, down)
	for _, place := range r.places {
		x.AddBias(r.number, int(place))
	}
}

// probe has one of the device's products looked at: what it read and made is still there.
func (gr *gatedRuns) probe(x *models.Experts, list []gatedRows) error {
	if gr.q.hosted {
		return nil
	}
	g, hidden := gr.mem, gr.mixture.gated.hidden
	r := &list[gr.s.probes%uint64(len(list))]
	if len(r.places) == 0 {
		gr.s.probes++
		return nil
	}
	turn := gr.s.probes / uint64(len(list))
	i, part := int(turn%uint64(len(r.places))), int(turn/2)
	s, read, made := r.gateUp, x.H[int(r.rowAt(x, i))*hidden:][:hidden], g.gateUp.row(r.first+i)
	if turn%2 == 0 && r.down != nil {
		s, read, made = r.down, device.View[float32](gr.q.mem, g.gated.row(r.first+i).at, r.width), g.out.row(r.first+i)
	}
	part %= len(s.parts)
	l := s.parts[part]
	gr.scratch = append(gr.scratch[:0], device.View[float32](gr.q.mem, made.from(s.col[part]).at, l.Rows)...)
	if bias := s.bias[part]; bias != 0 {
		for m, v := range device.View[float32](gr.q.mem, bias, l.Rows) {
			gr.scratch[m] -= v
		}
	}
	gr.received(4 * (len(read) + l.Rows))
	return gr.s.probe(&product{linear: l, n: 1, x: read, from: firstRow, y: gr.scratch})
}

// firstRow is the one row of a product.
var firstRow = []int32{0}

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

// gatedExperts are those of all layers, and what launches of them share: the rows of a chunk, which
// experts collect theirs of, and what becomes of each row of a launch.
type gatedExperts struct {
	of     [][]*gatedExpert // [layer][expert] nil: the host has what is between its products
	shared []*gatedExpert   // [layer]
	vectors
	rowBuffers
	hidden  int
	width   int  // of the widest
	h       span // chunk rows, and one of zeros
	chunk   int
	slots   []int32 // of the step's rows those in h
	table   uint32  // of the rows in h that are collected
	x       span    // most rows of an expert
	most    int
	rows    int // of a launch
	gateUp  span
	gated   span
	out     span
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
	s, v := &b.mix.plan.Shape, &b.mix.gated.vectors
	u, known := units[x.Unit]
	if !known || b.opt.Path == PathInt8 || s.Hidden%layout.Tile+x.Width%layout.Tile != 0 || x.Down == nil {
		return false
	}
	g := &gatedExpert{number: int32(expert), gateUp: b.stack(v, s.Hidden, x.GateUp...), up: x.Width, width: x.Width, unit: u}
	if g.gateUp == nil {
		return false
	}
	if len(g.gateUp.parts) > 1 {
		g.up = g.gateUp.col[1]
	}
	g.gateUp.addBias(v, b, x.GateUpBias)
	if g.down = b.stack(v, x.Width, x.Down); g.down != nil {
		g.down.addBias(v, b, x.DownBias)
	}
	if expert == models.SharedExpert {
		if g.down == nil {
			return false
		}
		b.mix.gated.shared[layer] = g
		return true
	}
	b.mix.gated.of[layer][expert] = g
	return true
}

// begin makes room for the experts of a plan.
func (g *gatedExperts) begin(p *experts.Plan) {
	g.hidden, g.of, g.shared = p.Shape.Hidden, make([][]*gatedExpert, p.Shape.Layers), make([]*gatedExpert, p.Shape.Layers)
	for i := range g.of {
		g.of[i] = make([]*gatedExpert, p.Shape.Experts)
	}
}

// reserve lays out launches of the plan's groups, and of rows of no chunk.
func (g *gatedExperts) reserve(b *Backend, p *experts.Plan) {
	gateUp, out, k, outs, lookups, shared := 0, 0, 0, 0, 0, 0
	g.chunk, g.most, g.rows = p.Chunk, tileRows, tileRows
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
				g.rows = max(g.rows, len(of.Experts)*roundUp(of.Capacity, layout.Tile))
			}
		}
	}
	if gateUp == 0 {
		return
	}
	g.rows += shared
	rows := func(n, width int) span { return span{b.reserve(4 * width * n), uint32(4 * width)} }
	g.h, g.x, g.table = rows(g.chunk+1, p.Shape.Hidden), rows(g.most, p.Shape.Hidden), b.reserve(4*g.rows)
	g.gateUp, g.gated, g.out = rows(g.rows, gateUp), rows(g.rows, g.width), rows(g.rows, out)
	g.rowBuffers = b.rowBuffers(k, outs, lookups, tileRows)
}

// start puts into the memory what does not change.
func (g *gatedExperts) start(mem []byte) {
	g.place(mem)
	if g.x.stride > 0 {
		clear(mem[g.h.row(g.chunk).at:][:g.h.stride])
	}
}

// writeChunk has the device see the rows of a chunk from row lo on, as many as there is room for, and
// returns the row that is next.
func (b *Backend) writeChunk(x *models.Experts, chunk int32, lo int) int {
	g, n := &b.mix.gated, 0
	if g.x.stride == 0 {
		return len(x.Rows)
	}
	g.slots = slices.Grow(g.slots[:0], len(x.Rows))[:len(x.Rows)]
	for ; lo < len(x.Rows) && (n < g.chunk || b.mix.work.of[lo] != chunk); lo++ {
		if b.mix.work.of[lo] == chunk {
			copy(device.View[float32](b.mem, g.h.row(n).at, g.hidden), x.H[lo*g.hidden:])
			g.slots[lo], n = int32(n), n+1
		}
	}
	b.sent(4 * g.hidden * n)
	return lo
}

// sent counts bytes that the host wrote for experts, and received those that it read.
func (b *Backend) sent(n int) {
	b.count(&b.work.Written, n)
	b.count(&b.mix.counts.BytesIn, n)
}
func (b *Backend) received(n int) {
	b.count(&b.work.Read, n)
	b.count(&b.mix.counts.BytesOut, n)
}

// split adds rows of an expert in pieces that fit a launch. Those at places are computed, and zeros up to n.
func (g *gatedExperts) split(list []gatedRows, e *gatedExpert, places []int32, n, room int) []gatedRows {
	for n > 0 {
		some := min(n, g.most)
		have := min(some, len(places))
		list = append(list, gatedRows{gatedExpert: e, places: places[:have], n: some, room: room})
		places, n = places[have:], n-some
	}
	return list
}

// runGated computes rows of a layer's experts, in one launch if they fit.
func (b *Backend) runGated(x *models.Experts, list []gatedRows) {
	for len(list) > 0 {
		b.spilled = spilled{} // what a launch asks depends on nothing before it
		n := b.queueGated(x, list)
		if b.run() != nil {
			return // RunExperts sees to it
		}
		for i := range list[:n] {
			b.takeGated(x, &list[i])
		}
		if b.probeGated(x, list[:n]) != nil {
			return
		}
		list = list[n:]
	}
}

// queueGated queues a launch of the first n of a list, for which there is room.
func (b *Backend) queueGated(x *models.Experts, list []gatedRows) (n int) {
	for rows := 0; n < len(list) && rows+list[n].n <= b.mix.gated.rows; n++ {
		list[n].first, rows = rows, rows+roundUp(list[n].n, layout.Tile)
		b.queueExpert(x, &list[n])
	}
	if !b.hosted {
		b.mix.counts.Launches++
		b.mix.counts.Synced-- // which a run counts as
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
func (b *Backend) queueExpert(x *models.Experts, r *gatedRows) {
	g := &b.mix.gated
	at := g.table + uint32(4*r.first)
	for i, table := 0, device.View[uint32](b.mem, at, r.n); i < r.n; i++ {
		slot := g.chunk
		if i < len(r.places) {
			slot = int(g.slots[r.rowAt(x, i)])
		}
		table[i] = g.h.row(slot).at
	}
	b.sent(4 * r.n)
	b.add(device.OpCollect, g.x.at, at, uint32(r.n), g.x.stride, 0, g.x.stride)
	most := r.gateUp.atOnce(r.room)
	if r.down != nil {
		most = min(most, r.down.atOnce(r.room))
	}
	for lo := 0; lo < r.n; lo += most {
		n := min(most, r.n-lo)
		both, gated := g.gateUp.row(r.first+lo), g.gated.row(r.first+lo)
		b.mulRows(&g.rowBuffers, r.gateUp, r.room, g.x.row(lo), both, n)
		b.gate(r.unit, gated, both, both.from(r.up), n, r.width)
		if r.down != nil {
			b.mulRows(&g.rowBuffers, r.down, r.room, gated, g.out.row(r.first+lo), n)
		}
	}
}

// takeGated takes in the results, which the CPU's down may read.
func (b *Backend) takeGated(x *models.Experts, r *gatedRows) {
	g, from, to, width := &b.mix.gated, b.mix.gated.out, x.Out, b.mix.gated.hidden
	switch {
	case r.number == models.SharedExpert:
		to = x.Shared
	case r.down == nil:
		from, to, width = g.gated, x.Gate, r.width
	}
	for i, place := range r.places {
		copy(to[int(place)*width:][:width], device.View[float32](b.mem, from.row(r.first+i).at, width))
	}
	if b.received(4 * width * len(r.places)); r.down != nil {
		return
	}
	p, lin := b.mix.work.product(x, r.number, down, r.places)
	b.mix.work.multiply(x, &p, lin, down)
	for _, place := range r.places {
		x.AddBias(r.number, int(place))
	}
}

// probeGated has one of the device's products looked at: what it read and made is still there.
func (b *Backend) probeGated(x *models.Experts, list []gatedRows) error {
	g := &b.mix.gated
	r := &list[b.probes%uint64(len(list))]
	if b.hosted || len(r.places) == 0 {
		b.probes++
		return nil
	}
	turn := b.probes / uint64(len(list))
	i, part := int(turn%uint64(len(r.places))), int(turn/2)
	s, read, made := r.gateUp, x.H[int(r.rowAt(x, i))*g.hidden:][:g.hidden], g.gateUp.row(r.first+i)
	if turn%2 == 0 && r.down != nil {
		s, read, made = r.down, device.View[float32](b.mem, g.gated.row(r.first+i).at, r.width), g.out.row(r.first+i)
	}
	part %= len(s.parts)
	l := s.parts[part]
	g.scratch = append(g.scratch[:0], device.View[float32](b.mem, made.from(s.col[part]).at, l.Rows)...)
	if bias := s.bias[part]; bias != 0 {
		for m, v := range device.View[float32](b.mem, bias, l.Rows) {
			g.scratch[m] -= v
		}
	}
	b.received(4 * (len(read) + l.Rows))
	return b.probe(&product{linear: l, n: 1, x: read, from: firstRow, y: g.scratch})
}

// firstRow is the one row of a product.
var firstRow = []int32{0}

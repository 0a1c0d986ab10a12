package hexagon

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
	"github.com/lutra-lm/lutra/models"
)

// step makes the packets of one request of what layers do to some rows: of the plan and of the rows
// alone. It writes to the memory what the packets read of the host's, and runs nothing.
type step struct {
	stepRows
	q      *request
	plan   *layerPlan
	att    *stepAttention
	rec    *recurrence
	out    int // of the step's logits
	head   bool
	wanted []int // rows that want logits
	probed struct {
		at int // products until the one that is probed
		*product
		bias []float32
	}
}

// stepRows are the rows of a step that a request has.
type stepRows struct {
	s    *models.DenseStep
	rows []models.RowPos
	lo   int // of the step's rows the first
	n    int
	last int // the layer behind the last
	ran  int // layers before it have run
}

// stepAttention makes the packets of attention.
type stepAttention struct {
	*stepRows
	q     *request
	plan  *layerPlan
	keys  *keys
	tcm   *attentionTCM
	views [2]view // of layers that see all keys, and of those with windows
	slots []int32 // of the rows, in the layer whose packets are made
	lists [][]*list
}

// recurrence makes the packets of short convolutions and delta nets.
type recurrence struct {
	*stepRows
	q     *request
	plan  *layerPlan
	tails *tails
	parts []convPart
}

// newStep returns a step without rows.
func newStep(q *request, k *keys, tcm *attentionTCM) *step {
	r := &step{q: q}
	r.att = &stepAttention{stepRows: &r.stepRows, q: q, keys: k, tcm: tcm}
	r.rec = &recurrence{stepRows: &r.stepRows, q: q, tails: &tails{q: q}}
	return r
}

// follow has the step make packets of a plan.
func (r *step) follow(d *layerPlan) {
	if r.plan != d {
		r.plan, r.att.plan, r.rec.plan, r.rec.tails.tailShape = d, d, d, &d.tails
	}
}

// view is the queries of layers that see the same keys, as tiles.
type view struct {
	keyMask
	wanted bool // a layer of the step has it
	tiles  []queryTile
	masks  int // tiles of them
}

// queryTile is up to 32 queries of one KV head and sequence.
type queryTile struct {
	lo, hi   int    // rows of the request that the sequence has
	of       int    // the query head of the group whose rows these are; -1: all heads of a row, then of the next
	seq      int    // number of the sequence
	begin, n int    // of the queries of those rows
	from     int    // the first key that they see, a multiple of 32
	keys     int    // the one behind the last
	seen     [2]int // from and keys of all queries of the sequence
	states   int    // the first of its states, one for each chunk of keys
	mask     uint32 // where those of its first tiles of keys are
	masked   int
}

// begin lays out rows for layers before last; turn is the turn of the product that is probed. It returns
// false where they do not fit the device.
func (r *step) begin(rows stepRows, out int, head bool, turn uint64) bool {
	r.stepRows, r.out, r.head, r.wanted = rows, out, head, r.wanted[:0]
	r.probed.product, r.probed.bias = nil, nil
	r.att.slots, r.att.lists = r.att.slots[:0], r.att.lists[:0]
	s, lo, m := r.s, r.lo, r.plan.m
	for i := range r.n {
		if s.Wanted[lo+i] {
			r.wanted = append(r.wanted, i)
		}
	}
	if r.last > s.First && !r.att.cutAll() {
		return false
	}
	r.att.keys.open(0)
	r.q.writeRows(r.plan.at.x, m.Hidden, s.X[lo*m.Hidden:(lo+r.n)*m.Hidden])
	for i := range r.plan.at.angles {
		r.angles(i)
	}
	clear(device.View[uint32](r.q.mem, r.plan.at.saturated, layout.Tile))
	products := 0
	for _, l := range r.plan.layers[s.First:r.last] {
		for _, of := range l.stacks {
			products += len(of.parts)
		}
	}
	r.probed.at = int(turn % uint64(max(1, products)))
	return true
}

// writeRows writes rows of width numbers.
func (q *request) writeRows(to span, width int, x []float32) {
	for i := range len(x) / width {
		copy(device.View[float32](q.mem, to.row(i).at, width), x[i*width:])
	}
	q.count(&q.work.Written, 4*len(x))
}

// angles writes cosines and sines of a rope as OpRope wants them.
func (r *step) angles(rope int) {
	for _, l := range r.plan.layers[r.s.First:r.last] {
		if l.Rope != rope || l.Rotated == 0 {
			continue
		}
		pairs := l.Rotated / 2
		for i := range r.n {
			cos, sin := r.s.Cos[rope][(r.lo+i)*pairs:][:pairs], r.s.Sin[rope][(r.lo+i)*pairs:][:pairs]
			to := device.View[float32](r.q.mem, r.plan.at.angles[rope]+uint32(8*l.Rotated*i), 2*l.Rotated)
			for k := range pairs {
				a, b := k, k+pairs
				if l.RotationOfDistance == 1 {
					a, b = 2*k, 2*k+1
				}
				to[a], to[b] = cos[k], cos[k]
				to[l.Rotated+a], to[l.Rotated+b] = -sin[k], sin[k]
			}
		}
		r.q.count(&r.q.work.Written, 8*l.Rotated*r.n)
		return
	}
}

// cutAll makes the views that the step's layers want.
func (r *stepAttention) cutAll() bool {
	for i := range r.views {
		r.views[i] = view{tiles: r.views[i].tiles[:0]}
	}
	for _, l := range r.plan.layers[r.s.First:r.last] {
		if l.attends() {
			v := r.view(l)
			v.wanted, v.keyMask = true, keyMask{l.Window, l.Both}
		}
	}
	states := 0
	for i := range r.views {
		if v := &r.views[i]; v.wanted && !r.cut(v, &states) {
			return false
		}
	}
	return true
}

// view returns that of a layer.
func (r *stepAttention) view(l *layer) *view {
	if l.Window > 0 {
		return &r.views[1]
	}
	return &r.views[0]
}

// cut cuts the rows' queries into tiles, and writes the states that each begins with, from state
// *states on, and its masks.
func (r *stepAttention) cut(v *view, states *int) bool {
	a, group, slots, lists := r.tcm, r.plan.m.Heads/r.plan.m.KVHeads, 0, 0
	for lo, hi, seq := 0, 0, 0; lo < r.n; lo, seq = hi, seq+1 {
		for hi = lo + 1; hi < r.n && r.rows[hi].Seq == r.rows[lo].Seq; hi++ {
		}
		seen := [2]int{v.begin(&r.rows[lo]), v.end(&r.rows[hi-1])}
		slots += (roundUp(max(seen[1], r.rows[hi-1].Pos+1), layout.Tile) - seen[0]) / layout.Tile
		lists += roundUp(seen[1], a.chunk)/a.chunk - seen[0]/a.chunk
		heads, each, apart := 1, group, hi-lo >= layout.Tile // tiles that see the same keys, and queries of a row in each
		if apart {
			heads, each = group, 1
		}
		for begin := 0; begin < (hi-lo)*each; begin += layout.Tile {
			t := queryTile{lo: lo, hi: hi, of: -1, seq: seq, begin: begin, n: min(layout.Tile, (hi-lo)*each-begin), seen: seen, states: *states}
			row := func(i int) *models.RowPos { return &r.rows[lo+(begin+i)/each] }
			t.from, t.keys, t.masked = v.begin(row(0)), v.end(row(t.n-1)), v.masked(row(0), row(t.n-1))
			first := t.from / a.chunk
			if *states += roundUp(t.keys, a.chunk)/a.chunk - first; *states > mostStates || v.masks+t.masked > r.plan.mostMasks {
				return false
			}
			if t.mask = r.plan.at.masks + uint32(v.masks*layout.TileBytes); t.masked > 0 {
				v.write(r.q.mem, t.mask, t.n, row)
				v.masks += t.masked
				r.q.count(&r.q.work.Written, t.masked*layout.TileBytes)
			}
			for i := range heads {
				if apart {
					t.of = i
				}
				v.tiles = append(v.tiles, t)
			}
			for c := first; c*a.chunk < t.keys; c++ {
				words := device.View[uint32](r.q.mem, r.states(&t, c-first), layout.Tile*device.StateBytes/4)
				clear(words)
				from := max(t.from, c*a.chunk)
				for i := range layout.Tile {
					if words[6*i] = lowest; i < t.n {
						words[6*i+1] = uint32(max(0, min((c+1)*a.chunk, v.end(row(i)))-from))
					}
				}
				r.q.count(&r.q.work.Written, 4*len(words))
			}
		}
	}
	return slots <= len(r.keys.slots) && lists <= listCount
}

// states returns where the states are that a tile begins a chunk of keys with.
func (r *stepAttention) states(t *queryTile, chunk int) uint32 {
	return r.plan.at.states + uint32((t.states+chunk)*layout.Tile*device.StateBytes)
}

// fits tells whether there is room for the keys and values of a layer beside those of the layers whose
// packets are queued, and finds it.
func (r *step) fits(i int) (room, slots bool) {
	l, at := r.plan.layers[i], &r.plan.at
	slots = !l.attends() || r.att.acquire(l.KV, r.att.view(l))
	return r.plan.m.Bidirectional || i-r.ran < int(at.qkv.size)/(r.n*int(at.qkvStride)), slots
}

// layer queues a layer, for which there is room.
func (r *step) layer(i int) {
	l, m, at := r.plan.layers[i], r.plan.m, &r.plan.at
	r.q.addPowers()
	qkv, read := r.plan.qkvOf(i, r.n), r.normed(&l.norm)
	if r.mul(l.qkv, read, qkv, r.n); l.gates != nil {
		r.mul(l.gates, read, qkv.from(l.qkv.width), r.n)
	}
	mix := r.attention
	switch {
	case l.Conv != nil:
		mix = r.convolve
	case l.Delta != nil:
		mix = r.deltaNet
	}
	r.mul(l.o, mix(l, qkv), at.y, r.n)
	if r.residual(l.oPostNorm, &l.sumNorm); l.Mixture {
		return
	}
	if !m.Parallel {
		read = r.normed(&l.ffnNorm)
	}
	r.mul(l.gateUp, read, at.gateUp, r.n)
	gate := at.gateUp
	r.unit(l, gate)
	if l.downNorm != 0 {
		r.q.norm(gate, gate, l.downNorm, r.n, 1, l.Width, r.plan.m.Eps)
	}
	r.mul(l.down, gate, at.y, r.n)
	r.residual(l.downPostNorm, &l.ffnSumNorm)
}

// unit queues that of a layer's feed-forward.
func (r *step) unit(l *layer, gate span) {
	u, up := units[l.Unit], l.Width
	switch {
	case l.Ungated:
		u, up = unit{kind: ref.GLUErfAlone}, 0
	case len(l.gateUp.parts) > 1:
		up = l.gateUp.col[1]
	}
	r.q.gate(u, gate, gate, gate.from(up), r.n, l.Width)
}

// attention queues a layer's attention, from queries, keys and values on. It returns what O reads.
func (r *step) attention(l *layer, qkv span) span {
	m, at := r.plan.m, &r.plan.at
	q, kv := m.Heads*m.HeadDim, m.KVHeads*m.HeadDim
	keys, values, gates := l.columns(m)
	r.heads(l, qkv, l.qNorm, &l.Q, q)
	r.heads(l, qkv.from(keys), l.kNorm, &l.K, kv)
	for i, next := 0, 0; i < r.n; i = next {
		for next = i + 1; next < r.n && r.att.slots[next] == r.att.slots[i] && r.rows[next].Pos == r.rows[next-1].Pos+1; next++ {
		}
		row := func(col int) uint32 { return qkv.at + uint32(i)*qkv.stride + uint32(4*col) }
		slot, n, col, head := r.att.keys.at(r.att.slots[i]), uint32(next-i), uint32(r.rows[i].Pos%layout.Tile), uint32(r.att.keys.head)
		d := uint32(m.HeadDim)
		r.q.add(device.OpToTiles, slot, row(keys), n, uint32(m.KVHeads), d, qkv.stride, head, col, 1, oneBits)
		r.q.add(device.OpToTiles, slot+d/layout.Tile*layout.TileBytes, row(values), n, uint32(m.KVHeads), d, qkv.stride, head, col, 0, oneBits)
	}
	if r.att.attend(l, qkv); l.Gated {
		r.q.gate(unit{kind: ref.GLUSigmoid}, at.att, qkv.from(gates), at.att, r.n, q)
	}
	if l.attendedNorm != 0 {
		r.q.norm(at.att, at.att, l.attendedNorm, r.n, 1, q, r.plan.m.Eps)
	}
	return at.att
}

var oneBits = math.Float32bits(1)

// norm queues the RMS norm of parts of n rows.
func (q *request) norm(dst, src span, weight uint32, n, parts, width int, eps float32) {
	q.add(device.OpRMSNorm, dst.at, src.at, weight, uint32(n), uint32(parts), uint32(width), dst.stride, src.stride,
		math.Float32bits(1/float32(width)), math.Float32bits(eps))
}

// normed queues the norm of the residual stream, and returns what is read then: the stream
// itself where there is none.
func (r *step) normed(norm *streamNorm) span {
	if norm.weight == 0 {
		return r.plan.at.x
	}
	r.streamNorm(r.plan.at.h, norm)
	return r.plan.at.h
}

// streamNorm queues a norm of the residual stream to h, which may be the stream.
func (r *step) streamNorm(h span, norm *streamNorm) {
	x := r.plan.at.x
	if norm.bias == 0 {
		r.q.norm(h, x, norm.weight, r.n, 1, r.plan.m.Hidden, r.plan.m.Eps)
		return
	}
	r.q.add(device.OpLayerNorm, h.at, x.at, norm.weight, norm.bias, uint32(r.n), uint32(r.plan.m.Hidden), h.stride, x.stride,
		math.Float32bits(1/float32(r.plan.m.Hidden)), math.Float32bits(r.plan.m.Eps))
}

// residual queues the addition of y, normed, to the residual stream, and the norm of the sum, if
// there is one.
func (r *step) residual(norm uint32, sum *streamNorm) {
	x, y := r.plan.at.x, r.plan.at.y
	if norm != 0 {
		r.q.norm(y, y, norm, r.n, 1, r.plan.m.Hidden, r.plan.m.Eps)
	}
	r.q.add(device.OpAdd, x.at, y.at, uint32(r.n), uint32(r.plan.m.Hidden), x.stride, y.stride, math.Float32bits(r.plan.m.Factor))
	if sum.weight != 0 {
		r.streamNorm(x, sum)
	}
}

// heads queues what becomes of queries or keys, width numbers of a row.
func (r *step) heads(l *layer, x span, norm uint32, h *models.DenseHeads, width int) {
	normed := func() {
		if norm != 0 {
			r.q.norm(x, x, norm, r.n, width/len(h.Norm), len(h.Norm), r.plan.m.Eps)
		}
	}
	if !h.NormLast {
		normed()
	}
	if l.Rotated > 0 {
		r.q.add(device.OpRope, x.at, r.plan.at.angles[l.Rope], uint32(r.n), uint32(width/r.plan.m.HeadDim), uint32(r.plan.m.HeadDim), uint32(l.Rotated), uint32(l.RotationOfDistance), x.stride)
	}
	if h.NormLast {
		normed()
	}
}

// qkvOf returns where the queries, keys and values of n rows of a layer are, those of further layers behind them.
func (d *layerPlan) qkvOf(i, n int) span {
	q := &d.at.qkv
	size := uint32(n) * d.at.qkvStride
	return span{q.at + uint32(i)%(q.size/size)*size, d.at.qkvStride}
}

// mul queues the products of n rows with matrices, by the path of the step's.
func (r *step) mul(s *stack, x, y span, n int) { r.mulAs(s, len(r.s.Rows), x, y, n) }

// mulAs queues them by the path of room rows, as many at once as it has.
func (r *step) mulAs(s *stack, room int, x, y span, n int) {
	each := tileRows
	if room <= s.most {
		each = r.plan.rows
	}
	for lo := 0; lo < n; lo += each {
		r.q.mulRows(&r.plan.at.rowBuffers, s, room, x.row(lo), y.row(lo), min(each, n-lo))
	}
	for i, l := range s.parts {
		r.probe(l, s.bias[i], x, y.from(s.col[i]))
	}
}

// probe has a row and its results copied for the host to look at, if it is this product's turn.
func (r *step) probe(l *linear, bias uint32, x, y span) {
	if r.probed.at--; r.probed.at != -1 {
		return
	}
	r.q.add(device.OpCopy, r.plan.at.probed[0], x.at, uint32(4*l.Cols))
	r.q.add(device.OpCopy, r.plan.at.probed[1], y.at, uint32(4*l.M))
	r.probed.product = &product{linear: l, n: 1, x: device.View[float32](r.q.mem, r.plan.at.probed[0], l.Cols), from: []int32{0}, y: device.View[float32](r.q.mem, r.plan.at.probed[1], l.M)}
	if bias != 0 {
		r.probed.bias = device.View[float32](r.q.mem, bias, l.M)
	}
}

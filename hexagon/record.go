package hexagon

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
	"github.com/lutra-lm/lutra/models"
)

// recording queues what the device does to some rows of a step, and takes in the results. It
// is one run, unless the device cannot keep the keys and values of all layers at once.
type recording struct {
	*Backend
	*whole
	s      *models.DenseStep
	rows   []models.RowPos
	lo, n  int // of the step's rows
	last   int // the layer behind the last
	out    int // of the step's logits
	head   bool
	wanted []int // rows that want logits
	parts  []convPart

	views  [2]view // of layers that see all keys, and of those with windows
	slots  []int32 // of the rows, in the layer that is recorded
	lists  [][]*list
	ran    int // layers before it have run
	probed struct {
		at int // products until the one that is probed
		*product
		bias []float32
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
	lo, hi   int    // rows of the recording that the sequence has
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

// begin lays out rows [lo, hi) for layers before end. It returns false where they do not fit the device.
func (r *recording) begin(b *Backend, s *models.DenseStep, lo, hi, end, out int, head bool, parts []convPart) bool {
	*r = recording{Backend: b, whole: b.whole, s: s, rows: s.Rows[lo:hi], lo: lo, n: hi - lo, last: end, out: out, head: head, parts: parts,
		wanted: r.wanted[:0], views: r.views, slots: r.slots[:0], lists: r.lists[:0], ran: s.First}
	for i := range r.n {
		if s.Wanted[lo+i] {
			r.wanted = append(r.wanted, i)
		}
	}
	if end > s.First && !r.cutAll() {
		return false
	}
	b.keys.open(0)
	r.numbers(r.at.x, r.m.Hidden, s.X[lo*r.m.Hidden:hi*r.m.Hidden])
	for i := range r.at.angles {
		r.angles(i)
	}
	clear(device.View[uint32](b.mem, r.at.saturated, layout.Tile))
	products := 0
	for _, l := range r.layers[s.First:end] {
		for _, of := range l.stacks {
			products += len(of.parts)
		}
	}
	b.probes++
	r.probed.at = int(b.probes % uint64(max(1, products)))
	return true
}

// numbers writes rows of width numbers.
func (r *recording) numbers(to span, width int, x []float32) {
	for i := range len(x) / width {
		copy(device.View[float32](r.mem, to.at+uint32(i)*to.stride, width), x[i*width:])
	}
	r.count(&r.work.Written, 4*len(x))
}

// angles writes cosines and sines of a rope as OpRope wants them.
func (r *recording) angles(rope int) {
	for _, l := range r.layers[r.s.First:r.last] {
		if l.Rope != rope || l.Rotated == 0 {
			continue
		}
		pairs := l.Rotated / 2
		for i := range r.n {
			cos, sin := r.s.Cos[rope][(r.lo+i)*pairs:][:pairs], r.s.Sin[rope][(r.lo+i)*pairs:][:pairs]
			to := device.View[float32](r.mem, r.at.angles[rope]+uint32(8*l.Rotated*i), 2*l.Rotated)
			for k := range pairs {
				a, b := k, k+pairs
				if l.RotationOfDistance == 1 {
					a, b = 2*k, 2*k+1
				}
				to[a], to[b] = cos[k], cos[k]
				to[l.Rotated+a], to[l.Rotated+b] = -sin[k], sin[k]
			}
		}
		r.count(&r.work.Written, 8*l.Rotated*r.n)
		return
	}
}

// cutAll makes the views that the step's layers want.
func (r *recording) cutAll() bool {
	for i := range r.views {
		r.views[i] = view{tiles: r.views[i].tiles[:0]}
	}
	for _, l := range r.layers[r.s.First:r.last] {
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
func (r *recording) view(l *layer) *view {
	if l.Window > 0 {
		return &r.views[1]
	}
	return &r.views[0]
}

// cut cuts the rows' queries into tiles, and writes the states that each begins with, from state
// *states on, and its masks.
func (r *recording) cut(v *view, states *int) bool {
	a, group, slots, lists := &r.att, r.m.Heads/r.m.KVHeads, 0, 0
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
			if *states += roundUp(t.keys, a.chunk)/a.chunk - first; *states > mostStates || v.masks+t.masked > r.mostMasks {
				return false
			}
			if t.mask = r.at.masks + uint32(v.masks*layout.TileBytes); t.masked > 0 {
				v.write(r.mem, t.mask, t.n, row)
				v.masks += t.masked
				r.count(&r.work.Written, t.masked*layout.TileBytes)
			}
			for i := range heads {
				if apart {
					t.of = i
				}
				v.tiles = append(v.tiles, t)
			}
			for c := first; c*a.chunk < t.keys; c++ {
				words := device.View[uint32](r.mem, r.states(&t, c-first), layout.Tile*device.StateBytes/4)
				clear(words)
				from := max(t.from, c*a.chunk)
				for i := range layout.Tile {
					if words[6*i] = lowest; i < t.n {
						words[6*i+1] = uint32(max(0, min((c+1)*a.chunk, v.end(row(i)))-from))
					}
				}
				r.count(&r.work.Written, 4*len(words))
			}
		}
	}
	return slots <= len(r.keys.slots) && lists <= listCount
}

// states returns where the states are that a tile begins a chunk of keys with.
func (r *recording) states(t *queryTile, chunk int) uint32 {
	return r.at.states + uint32((t.states+chunk)*layout.Tile*device.StateBytes)
}

// layer queues a layer. It returns false where the device has failed, or what is left of
// slots is not enough.
func (r *recording) layer(i int) bool {
	l, m, at := r.layers[i], r.m, &r.at
	if l.attends() && !r.acquire(l.KV, r.view(l)) {
		if r.flush(i) != nil {
			return false
		}
		r.keys.lists = nil
		r.keys.open(0)
		if !r.acquire(l.KV, r.view(l)) {
			return false
		}
	}
	if !m.Bidirectional && i-r.ran >= int(at.qkv.size)/(r.n*int(at.qkvStride)) && r.flush(i) != nil { // there is no room for its keys
		return false
	}
	r.addPowers()
	qkv, read := r.qkv(i), r.normed(&l.norm)
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
		return true
	}
	if !m.Parallel {
		read = r.normed(&l.ffnNorm)
	}
	r.mul(l.gateUp, read, at.gateUp, r.n)
	gate := at.gateUp
	r.unit(l, gate)
	if l.downNorm != 0 {
		r.norm(gate, gate, l.downNorm, r.n, 1, l.Width)
	}
	r.mul(l.down, gate, at.y, r.n)
	r.residual(l.downPostNorm, &l.ffnSumNorm)
	return true
}

// unit queues that of a layer's feed-forward.
func (r *recording) unit(l *layer, gate span) {
	u, up := units[l.Unit], l.Width
	switch {
	case l.Ungated:
		u, up = unit{kind: ref.GLUErfAlone}, 0
	case len(l.gateUp.parts) > 1:
		up = l.gateUp.col[1]
	}
	r.gate(u, gate, gate, gate.from(up), r.n, l.Width)
}

// attention queues a layer's attention, from queries, keys and values on. It returns what O reads.
func (r *recording) attention(l *layer, qkv span) span {
	m, at := r.m, &r.at
	q, kv := m.Heads*m.HeadDim, m.KVHeads*m.HeadDim
	keys, values, gates := l.columns(m)
	r.heads(l, qkv, l.qNorm, &l.Q, q)
	r.heads(l, qkv.from(keys), l.kNorm, &l.K, kv)
	for i, next := 0, 0; i < r.n; i = next {
		for next = i + 1; next < r.n && r.slots[next] == r.slots[i] && r.rows[next].Pos == r.rows[next-1].Pos+1; next++ {
		}
		row := func(col int) uint32 { return qkv.at + uint32(i)*qkv.stride + uint32(4*col) }
		slot, n, col, head := r.keys.at(r.slots[i]), uint32(next-i), uint32(r.rows[i].Pos%layout.Tile), uint32(r.keys.head)
		d := uint32(m.HeadDim)
		r.add(device.OpToTiles, slot, row(keys), n, uint32(m.KVHeads), d, qkv.stride, head, col, 1, oneBits)
		r.add(device.OpToTiles, slot+d/layout.Tile*layout.TileBytes, row(values), n, uint32(m.KVHeads), d, qkv.stride, head, col, 0, oneBits)
	}
	if r.attend(l, qkv); l.Gated {
		r.gate(unit{kind: ref.GLUSigmoid}, at.att, qkv.from(gates), at.att, r.n, q)
	}
	if l.attendedNorm != 0 {
		r.norm(at.att, at.att, l.attendedNorm, r.n, 1, q)
	}
	return at.att
}

var oneBits = math.Float32bits(1)

// norm queues the norm of parts of n rows.
func (r *recording) norm(dst, src span, weight uint32, n, parts, width int) {
	r.add(device.OpRMSNorm, dst.at, src.at, weight, uint32(n), uint32(parts), uint32(width), dst.stride, src.stride,
		math.Float32bits(1/float32(width)), math.Float32bits(r.m.Eps))
}

// normed queues the norm of the residual stream, and returns what is read then: the stream
// itself where there is none.
func (r *recording) normed(norm *streamNorm) span {
	if norm.weight == 0 {
		return r.at.x
	}
	r.streamNorm(r.at.h, norm)
	return r.at.h
}

// streamNorm queues a norm of the residual stream to h, which may be the stream.
func (r *recording) streamNorm(h span, norm *streamNorm) {
	x := r.at.x
	if norm.bias == 0 {
		r.norm(h, x, norm.weight, r.n, 1, r.m.Hidden)
		return
	}
	r.add(device.OpLayerNorm, h.at, x.at, norm.weight, norm.bias, uint32(r.n), uint32(r.m.Hidden), h.stride, x.stride,
		math.Float32bits(1/float32(r.m.Hidden)), math.Float32bits(r.m.Eps))
}

// residual queues the addition of y, normed, to the residual stream, and the norm of the sum, if
// there is one.
func (r *recording) residual(norm uint32, sum *streamNorm) {
	x, y := r.at.x, r.at.y
	if norm != 0 {
		r.norm(y, y, norm, r.n, 1, r.m.Hidden)
	}
	r.add(device.OpAdd, x.at, y.at, uint32(r.n), uint32(r.m.Hidden), x.stride, y.stride, math.Float32bits(r.m.Factor))
	if sum.weight != 0 {
		r.streamNorm(x, sum)
	}
}

// heads queues what becomes of queries or keys, width numbers of a row.
func (r *recording) heads(l *layer, x span, norm uint32, h *models.DenseHeads, width int) {
	normed := func() {
		if norm != 0 {
			r.norm(x, x, norm, r.n, width/len(h.Norm), len(h.Norm))
		}
	}
	if !h.NormLast {
		normed()
	}
	if l.Rotated > 0 {
		r.add(device.OpRope, x.at, r.at.angles[l.Rope], uint32(r.n), uint32(width/r.m.HeadDim), uint32(r.m.HeadDim), uint32(l.Rotated), uint32(l.RotationOfDistance), x.stride)
	}
	if h.NormLast {
		normed()
	}
}

// qkv is where a layer's queries, keys and values are, those of further layers behind the rows'.
func (r *recording) qkv(i int) span {
	q := &r.at.qkv
	size := uint32(r.n) * r.at.qkvStride
	return span{q.at + uint32(i)%(q.size/size)*size, r.at.qkvStride}
}

// mul queues the products of n rows with matrices, by the path of the step's.
func (r *recording) mul(s *stack, x, y span, n int) { r.mulAs(s, len(r.s.Rows), x, y, n) }

// mulAs queues them by the path of room rows, as many at once as it has.
func (r *recording) mulAs(s *stack, room int, x, y span, n int) {
	each := tileRows
	if room <= s.most {
		each = r.whole.rows
	}
	for lo := 0; lo < n; lo += each {
		r.mulRows(&r.at.rowBuffers, s, room, x.row(lo), y.row(lo), min(each, n-lo))
	}
	for i, l := range s.parts {
		r.probe(l, s.bias[i], x, y.from(s.col[i]))
	}
}

// probe has a row and its results copied for the host to look at, if it is this product's turn.
func (r *recording) probe(l *linear, bias uint32, x, y span) {
	if r.probed.at--; r.probed.at != -1 {
		return
	}
	r.add(device.OpCopy, r.at.probed[0], x.at, uint32(4*l.Cols))
	r.add(device.OpCopy, r.at.probed[1], y.at, uint32(4*l.M))
	r.probed.product = &product{linear: l, n: 1, x: device.View[float32](r.mem, r.at.probed[0], l.Cols), from: []int32{0}, y: device.View[float32](r.mem, r.at.probed[1], l.M)}
	if bias != 0 {
		r.probed.bias = device.View[float32](r.mem, bias, l.M)
	}
}

// end queues the head, has everything run, and takes in what comes of the last layer.
func (r *recording) end() bool {
	at, m := &r.at, r.m
	if r.head && len(r.wanted) > 0 {
		r.normed(&r.headNorm)
		for i, row := range r.wanted {
			if row > i {
				r.add(device.OpCopy, at.h.at+uint32(i)*at.h.stride, at.h.at+uint32(row)*at.h.stride, uint32(4*m.Hidden))
			}
		}
	}
	first := 0
	for { // rows of logits for which there is room
		n := 0
		if r.head {
			n = min(len(r.wanted)-first, r.whole.rows)
			r.logits(first, n)
		}
		if r.flush(r.last) != nil {
			return false
		}
		for _, flag := range device.View[uint32](r.mem, at.saturated, layout.Tile) {
			if flag != 0 { // sums of values are too large for fp16: the CPU computes the step
				return false
			}
		}
		r.takeLogits(first, n)
		if first += n; first == len(r.wanted) || !r.head {
			break
		}
	}
	if !r.head {
		for i := range r.n {
			copy(r.xs[(r.lo+i)*m.Hidden:][:m.Hidden], device.View[float32](r.mem, at.x.at+uint32(i)*at.x.stride, m.Hidden))
		}
		r.count(&r.work.Read, 4*r.n*m.Hidden)
	}
	return true
}

// flush runs what is queued, layers before end, and gives their keys and values to the cache: but for
// an encoder's, which no later step sees.
func (r *recording) flush(end int) error {
	if err := r.run(); err != nil {
		return err
	}
	m := r.m
	for ; r.ran < end; r.ran++ {
		l, qkv := r.layers[r.ran], r.qkv(r.ran)
		if m.Bidirectional {
			continue
		}
		if !l.attends() {
			r.takeTails(l, qkv)
			continue
		}
		kv := m.KVHeads * m.HeadDim
		keys, values, _ := l.columns(m)
		for i := range r.rows {
			row := device.View[float32](r.mem, qkv.at+uint32(i)*qkv.stride, values+kv)
			r.s.Cache.Store(l.KV, r.rows[i].Seq, r.rows[i].Pos, row[keys:keys+kv], row[values:])
		}
		r.count(&r.work.Read, 8*kv*r.n)
	}
	p := &r.probed
	if p.product == nil {
		return nil
	}
	for i, b := range p.bias {
		p.y[i] -= b
	}
	r.count(&r.work.Read, 4*(p.Cols+p.M))
	err := r.Backend.probe(p.product)
	p.product = nil
	return err
}

package hexagon

import (
	"encoding/binary"
	"math"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/models"
)

// attention is FlashAttention in fp16 (Test-Time Scaling on NPUs, Alg. 1). Queries of
// one KV head and sequence, a group's queries for each token, fill tiles of 32 rows.
// A chunk of keys K with values V changes what a tile of rows Q has gathered so far:
//
//	S = (Q · scale·log₂(e))·Kᵀ         OpTileMul
//	m', P = 2^(S-m'), e = 2^(m-m')     OpSoftmax
//	O = [diag(e), P]·[O; V]            OpTileMul, two runs
//
// and the sums of P, which are exact, are folded here. Chunks begin at multiples of their length,
// so that a row's result depends on no other row.
type attention struct {
	s       *session
	q       *request
	plan    *plan
	device  *keys // those that the device keeps
	tcm     *attentionTCM
	call    *models.Attention
	keyMask keyMask
	jobs    []job
	keys    []uint16 // as gathered, [keys][HeadDim]
	values  []uint16
	staged  uint32 // end of what is staged
	kept    bool   // the device keeps keys and values
}

// attentionTCM holds the places in TCM of the queries, scores, keys and values of a chunk.
type attentionTCM struct {
	longest int     // keys of a chunk, where TCM has room
	dim     int     // of a head, in tiles
	chunk   int     // keys
	cap     float32 // of scores; 0: none

	q, s, diag, before, after, k, v, caps, unit, mask uint32
}

// rowTile is 32 rows: query heads of one KV head, of one token after the other.
type rowTile struct {
	rows  []models.RowPos // of a sequence
	first int             // of call.Rows: rows[0]
	head  int             // KV head
	begin int             // the tile's first query, counted in those of all rows
	n     int             // queries

	max    [layout.Tile]uint16
	sum    [layout.Tile]float64
	values []byte // [dim] tiles gathered so far; nil: none
}

// job is a row tile and a chunk of keys, and what of it is in the staging memory.
type job struct {
	*rowTile
	last        bool // of its chunks
	states, out uint32
}

// longestChunk is the most keys of a chunk.
const longestChunk = 8192

// row returns the row of query i of the tile, of a group of queries a row.
func (t *rowTile) row(i, group int) *models.RowPos { return &t.rows[(t.begin+i)/group] }

// begin makes ready for a call. It returns false where a head is too wide for TCM.
func (a *attention) begin(call *models.Attention) bool {
	a.call, a.keyMask = call, keyMask{call.Window, call.Both}
	return a.tcm.divide(call.Cache.Shape().HeadDim, call.Cap)
}

// run computes the call. It returns false for sums that are too large for fp16.
func (a *attention) run() bool {
	a.staged = a.plan.x.at
	if a.kept = a.device.begin(a.call, a.tcm.chunk); a.kept {
		a.device.store(a.call)
	}
	rows := a.call.Rows
	for lo, hi := 0, 0; lo < len(rows); lo = hi {
		hi = lo + 1
		for hi < len(rows) && rows[hi].Seq == rows[lo].Seq {
			hi++
		}
		if !a.attendRows(lo, hi) {
			return false
		}
	}
	return a.flush()
}

// divide divides TCM for heads of dim numbers, and scores with a soft cap if it is not 0.
func (t *attentionTCM) divide(dim int, softCap float32) bool {
	t.dim, t.cap = roundUp(dim, layout.Tile)/layout.Tile, softCap
	for t.chunk = t.longest; t.chunk >= layout.Tile; t.chunk /= 2 {
		at := uint32(scratch)
		if softCap != 0 {
			t.caps = uint32(roundUp(scratch, device.ExpTableBytes))
			at = t.caps + device.ExpTableBytes
		}
		t.q, t.diag = take(&at, t.dim*layout.TileBytes), take(&at, layout.TileBytes)
		t.unit, t.mask = take(&at, layout.TileBytes), take(&at, layout.TileBytes)
		t.before, t.after = take(&at, t.dim*layout.TileBytes), take(&at, t.dim*layout.TileBytes)
		t.s = take(&at, t.chunk*2*layout.Tile)
		t.k, t.v = take(&at, t.chunk*t.dim*2*layout.Tile), take(&at, t.chunk*t.dim*2*layout.Tile)
		if at <= tcmEnd {
			return true
		}
	}
	return false
}

// attendRows computes rows [lo, hi) of one sequence, or queues the last of it.
func (a *attention) attendRows(lo, hi int) bool {
	call := a.call
	rows := call.Rows[lo:hi]
	group := call.Heads / call.Cache.Shape().Heads
	queries, begin, end := len(rows)*group, a.keyMask.begin(&rows[0]), a.keyMask.end(&rows[len(rows)-1])
	a.q.work.Queries += int64(queries * call.Cache.Shape().Heads)
	a.q.work.Places += int64(roundUp(queries, layout.Tile) * call.Cache.Shape().Heads)
	var tiles []rowTile
	for head := range call.Cache.Shape().Heads {
		for begin := 0; begin < queries; begin += layout.Tile {
			t := rowTile{rows: rows, first: lo, head: head, begin: begin, n: min(layout.Tile, queries-begin)}
			for i := range t.max {
				if t.max[i] = lowest; call.Sinks != nil {
					t.max[i], t.sum[i] = sink(call.Sinks[head*group+(begin+i)%group])
				}
			}
			tiles = append(tiles, t)
		}
	}
	for at := begin / a.tcm.chunk * a.tcm.chunk; at < end; at += a.tcm.chunk {
		from, last := max(at, begin), at+a.tcm.chunk >= end
		n := min(at+a.tcm.chunk, end) - from
		var kept *list // nil: keys are staged
		if a.kept {
			kept, _ = a.device.collected(rows[0].Seq, call.Layer, at, from, n)
		}
		for i := range tiles {
			t := &tiles[i]
			need, first := a.tileBytes(), t.begin == 0
			if first && kept == nil { // of its head; further tiles of a run find the keys in TCM
				need += a.keyBytes(n)
			}
			if a.room() < need {
				if first = true; !a.flush() {
					return false
				}
			}
			switch {
			case first && kept != nil:
				a.tcm.addTables(a.q, a.keyMask)
				a.tcm.collect(a.q, a.device.head, kept, t.head, n)
			case first:
				a.stageKeys(t, from, n)
			}
			a.stageTile(t, from, n, last)
		}
		if !last && !a.flush() {
			return false
		}
	}
	return true
}

// Numbers in fp16: the least, which is the maximum of no scores, and 1.
const (
	lowest = 0xfbff
	one    = 0x3c00
)

// room returns the staging memory that is left.
func (a *attention) room() int { return int(a.plan.y.at + a.plan.y.size - a.staged) }

// tileBytes and keyBytes are what a row tile and n keys take of it.
func (a *attention) tileBytes() int {
	masks := 0
	if a.keyMask.window > 0 {
		masks = mostMasks
	}
	return (3*a.tcm.dim+masks)*layout.TileBytes + roundUp(layout.Tile*device.StateBytes, layout.TileBytes)
}

func (a *attention) keyBytes(n int) int {
	return 2 * a.tcm.dim * roundUp(n, layout.Tile) / layout.Tile * layout.TileBytes
}

// stageKeys has the n keys and values of a row tile's head from position first on
// brought to TCM: keys as [keys][dim] tiles of a key in each column, values as
// [dim][keys] tiles of a value in each row.
func (a *attention) stageKeys(t *rowTile, first, n int) {
	d, tiles := a.call.Cache.Shape().HeadDim, roundUp(n, layout.Tile)/layout.Tile
	if len(a.keys) < n*d {
		a.keys, a.values = make([]uint16, n*d), make([]uint16, n*d)
	}
	t.rows[0].Seq.Halves(a.keys, a.values, a.call.Layer, t.head, first, first+n)
	a.call.Drift.Restore(a.keys[:n*d], t.head, first)
	size := tiles * a.tcm.dim * layout.TileBytes
	k, v := take(&a.staged, size), take(&a.staged, size)
	a.q.count(&a.q.work.Written, 2*size)
	clear(a.q.mem[k:][:size])
	clear(a.q.mem[v:][:size])
	for j := range n {
		for i := range d {
			putHalf(a.q.mem, k+uint32((j/layout.Tile*a.tcm.dim+i/layout.Tile)*layout.TileBytes), layout.TileIndex(i%layout.Tile, j%layout.Tile), number(a.keys[j*d+i]))
			putHalf(a.q.mem, v+uint32((i/layout.Tile*tiles+j/layout.Tile)*layout.TileBytes), layout.TileIndex(j%layout.Tile, i%layout.Tile), number(a.values[j*d+i]))
		}
	}
	a.tcm.addTables(a.q, a.keyMask)
	a.q.add(device.OpCopy, a.tcm.k, k, uint32(size))
	a.q.add(device.OpCopy, a.tcm.v, v, uint32(size))
}

// addTables has a run of attention alone begin with the tables that it reads.
func (t *attentionTCM) addTables(q *request, m keyMask) {
	if len(q.packets) == 0 {
		q.addPowers()
		t.addCaps(q)
		t.addUnit(q, m)
	}
}

// addPowers has a run begin with the table of powers of two.
func (q *request) addPowers() {
	if len(q.packets) == 0 {
		q.add(device.OpCopy, expTable, q.tables.powers.at, device.ExpTableBytes)
	}
}

// collect has n keys and values of a head, which the device keeps in slots of perHead bytes a head,
// brought to TCM.
func (t *attentionTCM) collect(q *request, perHead int, l *list, head, n int) {
	tiles := uint32(roundUp(n, layout.Tile) / layout.Tile)
	at, size := uint32(head*perHead), uint32(t.dim*layout.TileBytes)
	q.add(device.OpCollect, t.k, l.at, tiles, size, at, size)
	for i := range uint32(t.dim) {
		q.add(device.OpCollect, t.v+i*tiles*layout.TileBytes, l.at, tiles, layout.TileBytes, at+size+i*layout.TileBytes, layout.TileBytes)
	}
}

// number reads an fp16 as the device knows them: without infinities and NaN.
func number(h uint16) uint16 {
	switch {
	case h&0x7fff < 0x7c00:
		return h
	case h&0x7fff == 0x7c00:
		return h&0x8000 | layout.Largest
	}
	return 0
}

// stageTile queues the work of a row tile with the n keys from position from on, which
// are in TCM.
func (a *attention) stageTile(t *rowTile, from, n int, last bool) {
	call := a.call
	d, group := call.Cache.Shape().HeadDim, call.Heads/call.Cache.Shape().Heads
	size := a.tcm.dim * layout.TileBytes
	q, states := take(&a.staged, size), take(&a.staged, layout.Tile*device.StateBytes)
	a.q.count(&a.q.work.Written, size+layout.Tile*device.StateBytes)
	clear(a.q.mem[q:][:size])
	clear(a.q.mem[states:][:layout.Tile*device.StateBytes])
	begin := max(from, a.keyMask.begin(t.row(0, group))) // of what the tile sees
	most, scale := 0, call.Scale*math.Log2E
	for i := range layout.Tile {
		valid := 0
		if i < t.n {
			token, head := (t.begin+i)/group, t.head*group+(t.begin+i)%group
			row := call.QKV[(t.first+token)*call.Width+head*d:][:d]
			for j, f := range row {
				putHalf(a.q.mem, q+uint32(j/layout.Tile*layout.TileBytes), layout.TileIndex(i, j%layout.Tile), layout.F16(f*scale))
			}
			valid = max(0, min(from+n, a.keyMask.end(&t.rows[token]))-begin)
		}
		most = max(most, valid)
		binary.LittleEndian.PutUint32(a.q.mem[states+uint32(i*device.StateBytes):], uint32(t.max[i]))
		binary.LittleEndian.PutUint32(a.q.mem[states+uint32(i*device.StateBytes)+4:], uint32(valid))
	}
	if most == 0 { // a tile whose tokens all see other keys
		a.staged = q
		if last {
			a.jobs = append(a.jobs, job{rowTile: t, last: true})
		}
		return
	}
	keys, all, tcm := uint32(roundUp(most, layout.Tile)/layout.Tile), uint32(roundUp(n, layout.Tile)/layout.Tile), a.tcm
	skip := uint32(begin-from) / layout.Tile // tiles of keys before what the tile sees
	a.q.add(device.OpCopy, tcm.q, q, uint32(size))
	a.q.add(device.OpTileMul, tcm.s, tcm.q, tcm.k+skip*uint32(size), uint32(a.tcm.dim), 0, 0, 0, 1, keys, one, columns)
	a.tcm.addCap(a.q, keys)
	a.stageMasks(t, begin, int(keys))
	a.q.add(device.OpSoftmax, tcm.s, expTable, states, tcm.diag, 1, keys)
	if t.values != nil {
		before := take(&a.staged, size)
		a.q.count(&a.q.work.Written, size)
		copy(a.q.mem[before:], t.values)
		a.q.add(device.OpCopy, tcm.before, before, uint32(size))
	}
	for i := range uint32(a.tcm.dim) { // of all values those of the first keys
		out, v := tcm.after+i*layout.TileBytes, tcm.v+(i*all+skip)*layout.TileBytes
		if t.values == nil {
			a.q.add(device.OpTileMul, out, tcm.s, v, keys, 0, 0, 0, 1, 1, one, columns)
		} else {
			a.q.add(device.OpTileMul, out, tcm.diag, tcm.before+i*layout.TileBytes, 1, tcm.s, v, keys, 1, 1, one, columns)
		}
	}
	out := take(&a.staged, size)
	a.q.add(device.OpCopy, out, tcm.after, uint32(size))
	a.jobs = append(a.jobs, job{rowTile: t, last: last, states: states, out: out})
}

// stageMasks queues the masking of a row tile's scores of some tiles of keys, from position begin on.
func (a *attention) stageMasks(t *rowTile, begin, keys int) {
	group := a.call.Heads / a.call.Cache.Shape().Heads
	row := func(i int) *models.RowPos { return t.row(i, group) }
	skip := (begin - a.keyMask.begin(row(0))) / layout.Tile // of the tile's, those before
	if a.keyMask.masked(row(0), row(t.n-1)) <= skip {
		return
	}
	at := take(&a.staged, mostMasks*layout.TileBytes)
	masks := a.keyMask.write(a.q.mem, at, t.n, row)
	a.q.count(&a.q.work.Written, masks*layout.TileBytes)
	for i := skip; i < min(masks, skip+keys); i++ {
		a.tcm.addMask(a.q, a.tcm.s+uint32((i-skip)*layout.TileBytes), at+uint32(i*layout.TileBytes))
	}
}

// flush has the device do what is queued, and takes in the results.
func (a *attention) flush() bool {
	defer func() { a.jobs, a.staged = a.jobs[:0], a.plan.x.at }()
	if a.s.run() != nil {
		return true // the step fails for it
	}
	for i := range a.jobs {
		j := &a.jobs[i]
		if !a.takeIn(j) {
			return false
		}
		if j.last {
			a.finish(j.rowTile)
		}
	}
	return true
}

// takeIn folds a job's results into its row tile. It returns false for a sum that is
// too large for fp16.
func (a *attention) takeIn(j *job) bool {
	if j.states == 0 {
		return true
	}
	for i := range j.n {
		state := a.q.mem[j.states+uint32(i*device.StateBytes):]
		word := func(n int) uint32 { return binary.LittleEndian.Uint32(state[4*n:]) }
		j.max[i] = uint16(word(0))
		j.sum[i] = j.sum[i]*float64(layout.F32(uint16(word(2)))) + float64(uint64(word(4))<<32|uint64(word(3)))*0x1p-24
	}
	size := a.tcm.dim * layout.TileBytes
	a.q.count(&a.q.work.Read, size+layout.Tile*device.StateBytes)
	for i := range size / 2 {
		if half(a.q.mem, j.out, i)&0x7fff >= layout.Largest {
			return false
		}
	}
	j.values = append(j.values[:0], a.q.mem[j.out:][:size]...)
	return true
}

// finish divides what a row tile has gathered by the sums of its weights.
func (a *attention) finish(t *rowTile) {
	call := a.call
	d, group := call.Cache.Shape().HeadDim, call.Heads/call.Cache.Shape().Heads
	for i := range t.n {
		token, head := (t.begin+i)/group, t.head*group+(t.begin+i)%group
		out := call.Out[((t.first+token)*call.Heads+head)*d:][:d]
		if t.sum[i] < 0.99 { // the largest weight is 1
			a.s.fail("the weights of attention sum up to %v", t.sum[i])
			clear(out)
			continue
		}
		for k := range out {
			v := layout.F32(half(t.values, uint32(k/layout.Tile*layout.TileBytes), layout.TileIndex(i, k%layout.Tile)))
			out[k] = float32(float64(v) / t.sum[i])
		}
	}
}

package hexagon

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
)

// addCaps has TCM get the table of soft caps, if scores have any.
func (t *attentionTCM) addCaps(q *request) {
	limit := t.cap
	if limit == 0 {
		return
	}
	if q.limit != limit {
		q.limit = limit
		softCaps(device.View[uint16](q.mem, q.tables.caps.at, device.ExpTableBytes/2), float64(limit)*math.Log2E)
	}
	q.add(device.OpCopy, t.caps, q.tables.caps.at, device.ExpTableBytes)
}

// addCap queues the caps of tiles of scores, which are in units of log₂.
func (t *attentionTCM) addCap(q *request, tiles uint32) {
	if t.cap != 0 {
		q.add(device.OpSoftCap, t.s, t.caps, tiles)
	}
}

// softCaps fills a table with limit·tanh(x/limit) of every fp16 x ≥ 0.
func softCaps(table []uint16, limit float64) {
	for bits := range table {
		table[bits] = 0
		if x := uint16(bits); x <= layout.Largest {
			table[bits] = layout.F16(float32(limit * math.Tanh(float64(layout.F32(x))/limit)))
		}
	}
}

// sink returns the state of a row before its first key: a maximum, the largest fp16 that is at
// most its sink, and a sum of weights, which is at least 1 then.
func sink(s float32) (most uint16, sum float64) {
	score := float64(s) * math.Log2E
	if most = layout.F16(float32(score)); float64(layout.F32(most)) > score && most != lowest {
		switch {
		case most&0x7fff == 0:
			most = 0x8001
		case most&0x8000 == 0:
			most--
		default:
			most++
		}
	}
	return most, math.Exp2(score - float64(layout.F32(most)))
}

// sinksFit tells whether all sinks are numbers that fp16 has room for.
func sinksFit(sinks []float32) bool {
	for _, s := range sinks {
		if !(float64(s)*math.Log2E <= 65504) {
			return false
		}
	}
	return true
}

// sinkStates are the states of OpSoftmax with which tiles begin because of sinks, for OpFold. Each head with
// which a tile may begin has 32 states, of its heads of one group in turn. Then each head has 32 of its own.
func sinkStates(sinks []float32, kvHeads int) []float32 {
	if sinks == nil {
		return nil
	}
	n, group := len(sinks), len(sinks)/kvHeads
	x := make([]float32, 2*n*layout.Tile*ref.StateWords)
	for first := range 2 * n {
		for i := range layout.Tile {
			state, head := x[(first*layout.Tile+i)*ref.StateWords:], first%n
			if first < n {
				head = first/group*group + (first+i)%group
			}
			most, sum := sink(sinks[head])
			units := uint64(sum * 0x1p24)
			// The device sees the words' bits.
			state[ref.StateMax] = math.Float32frombits(uint32(most))
			state[ref.StateSumLow], state[ref.StateSumHigh] = math.Float32frombits(uint32(units)), math.Float32frombits(uint32(units>>32))
		}
	}
	return x
}

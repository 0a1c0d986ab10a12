package hexagon

import (
	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/models"
)

// keyMask says which keys rows see: the keys before them, with models.RowPos.All the keys after them too, or a
// window of these. OpSoftmax's counts leave out everything after the last key. A
// tile of queries begins at the tile of keys that its first row's window begins in; keys before the
// windows of its other rows lie in that tile and in the next one. These are masked: after soft caps,
// which would make a score of any mask, the tile unit adds the least fp16 to them,
//
//	S' = [S; mask]·[1; 1]
//
// so that their weights are zeros and a row's result depends on no other row. A row whose first keys
// are all masked has equal weights of them until it meets its own, which make nothing of these.
type keyMask struct {
	window int // keys that are seen, the row's own included; 0: all
	both   bool
}

// mostMasks is the largest number of tiles of keys that 32 queries need masked.
const mostMasks = 2

// first returns the first key that a row sees, and end the one behind the last.
func (m keyMask) first(r *models.RowPos) int {
	if m.window == 0 {
		return 0
	}
	return max(0, r.Pos+1-m.window)
}

func (m keyMask) end(r *models.RowPos) int {
	end := max(r.Pos+1, r.All)
	if m.window > 0 && m.both {
		end = min(end, r.Pos+m.window)
	}
	return end
}

// begin returns the first key of the tile in which what a row sees begins.
func (m keyMask) begin(r *models.RowPos) int { return m.first(r) &^ (layout.Tile - 1) }

// masked returns how many tiles of keys are masked for queries of rows from the first to the last.
func (m keyMask) masked(first, last *models.RowPos) int {
	return (roundUp(m.first(last), layout.Tile) - m.begin(first)) / layout.Tile
}

// write writes the masks of n queries, the rows of which row returns, and returns how many there are.
func (m keyMask) write(mem []byte, at uint32, n int, row func(i int) *models.RowPos) int {
	begin, tiles := m.begin(row(0)), m.masked(row(0), row(n-1))
	clear(mem[at:][:tiles*layout.TileBytes])
	for i := range n {
		for k := range m.first(row(i)) - begin {
			putHalf(mem, at+uint32(k/layout.Tile*layout.TileBytes), layout.TileIndex(i, k%layout.Tile), lowest)
		}
	}
	return tiles
}

// addMask queues the masking of a tile of scores.
func (t *attentionTCM) addMask(q *request, scores, mask uint32) {
	q.add(device.OpCopy, t.mask, mask, layout.TileBytes)
	q.add(device.OpCopy, t.diag, scores, layout.TileBytes) // which OpSoftmax sets later
	q.add(device.OpTileMul, scores, t.diag, t.unit, 1, t.mask, t.unit, 1, 1, 1, one, columns)
}

// addUnit has TCM get the unit matrix that masks are added by.
func (t *attentionTCM) addUnit(q *request, m keyMask) {
	if m.window > 0 {
		q.add(device.OpCopy, t.unit, q.tables.unit.at, layout.TileBytes)
	}
}

// placeUnit writes it.
func (p *plan) placeUnit(mem []byte) {
	for i := range layout.Tile {
		putHalf(mem, p.tables.unit.at, layout.TileIndex(i, i), one)
	}
}

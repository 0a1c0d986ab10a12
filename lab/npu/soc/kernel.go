package soc

import (
	"math/bits"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/pipeline"
	"github.com/lutra-lm/lutra/lab/npu/tiling"
	"github.com/lutra-lm/lutra/lab/npu/timeline"
)

// Machine is a chip with what may be varied: the kernels' packets and the route of
// weights. One goroutine uses it at a time.
type Machine struct {
	Chip
	Packets Packets
	Route   Route
	Tiles   bool                 // whether products of few rows go by tiles, too
	Bytes   bool                 // whether matrices with a scale a row go by tiles of bytes
	layouts map[layoutKey]Layout // Plan is slow
}

type layoutKey struct {
	tiling.Matrix
	bytes bool // in place of tables
	rows  int
}

// NewMachine returns the chip with this project's kernels and weights that come by DMA.
func NewMachine(c Chip) *Machine {
	return &Machine{Chip: c, Packets: Counted(), Route: ByDMA, layouts: map[layoutKey]Layout{}}
}

// layout calls Plan, once for each shape.
func (m *Machine) layout(x Matrix, rows int) (Layout, error) {
	if rows = min(rows, Chunk); rows > tiling.MMA {
		rows = up(rows, tiling.MMA)
	} else if rows > 0 { // tables of up to a power of two of rows
		rows = 1 << bits.Len(uint(rows-1))
	}
	key := layoutKey{x.Tiled(), x.inBytes(), rows}
	if l, ok := m.layouts[key]; ok {
		return l, nil
	}
	l, err := m.Plan(x, rows)
	if err == nil {
		m.layouts[key] = l
	}
	return l, err
}

func (m *Machine) load(bytes int) float64 { return float64(bytes) / m.Bandwidth(m.Route) }

// Lookup returns the cost of rows products by table lookup (OpGEMV), without tables: weights
// come once for as many rows as have their tables in TCM.
func (m *Machine) Lookup(x Matrix, rows int) Cost {
	p := x.Padded()
	at := m.LookupRows(x)
	strips, threads := p.M/tiling.Lookups, int(m.Threads.Value) // which have whole strips each
	uneven := float64(up(strips, threads)) / float64(strips)
	c := Cost{DMA: m.load(x.Bytes()) * float64((rows+at-1)/at), Vector: m.vector(m.Packets.lookups(p, rows)) * uneven}
	return c.overlapped()
}

// Tables returns the cost of what lookups of x read of rows activations (OpPrecompute).
func (m *Machine) Tables(x Matrix, rows int) Cost {
	each := m.Packets.Precompute
	if x.inBytes() {
		each = m.Packets.Bytes
	}
	c := Cost{Vector: m.vector(float64(up(x.K, tiling.TableTile)/tiling.TableTile) * each * float64(rows))}
	return c.overlapped()
}

// Barriers returns the seconds that n barriers of threads take.
func (c *Chip) Barriers(n float64) float64 { return n * c.Barrier.Value / 1e6 }

// Stages returns the costs of a tile of x in the pipeline of a product of n rows, and how
// many tiles there are.
func (m *Machine) Stages(x Matrix, n int, t tiling.Tiling) (timeline.Costs, int) {
	tx := x.Tiled()
	tiles := t.Tiles(tx)
	blocks := float64(t.Rows()/tiling.Lookups) * float64(t.Cols()/tiling.BlockCols)
	multiply := m.tileSeconds(t.Rows(), t.Cols(), n)
	if m.Bytes && x.Group == x.K && !x.inBytes() { // sums are read once
		multiply = m.byteSeconds(t.Rows(), tx.K, n) * float64(t.Cols()) / float64(tx.K)
	}
	return timeline.Costs{m.load(t.Packed(tx)), m.vector(blocks * m.Packets.dequant(x)), multiply}, tiles
}

// Tiled returns the cost of a product of rows rows on the tile unit, with dequantisation in a
// pipeline (overlap) or before it. Rows become tiles elsewhere. Rows beyond a chunk pass again over the matrix.
func (m *Machine) Tiled(x Matrix, rows int, overlap bool) (Cost, error) {
	l, err := m.layout(x, rows)
	if err != nil {
		return Cost{}, err
	}
	var sum Cost
	for left := rows; left > 0; left -= Chunk {
		n := min(left, Chunk)
		stages, tiles := m.Stages(x, n, l.Search.Choice)
		f := float64(tiles)
		c := Cost{DMA: f * stages[pipeline.Load], Vector: f * stages[pipeline.Unpack], Tiles: f * stages[pipeline.Multiply]}
		c.Useful = float64(n) / float64(up(n, tiling.MMA))
		c.Seconds = timeline.Total(tiles, stages, overlap)
		sum.Add(c)
	}
	return sum, nil
}

// Path is a way of computing a product.
type Path string

// The paths.
const (
	ByLookup Path = "lookup" // table lookup on vector threads
	ByTiles  Path = "tiles"  // dequantisation and the tile unit
	ByBytes  Path = "int8"   // the tile unit with codes as they stand, and activations of 8 bits
	ByHost   Path = "cpu"
)

// Path returns how rows rows are multiplied: few by lookups, as package hexagon does it.
func (m *Machine) Path(x Matrix, rows int) Path {
	f := layout.Format{Bits: x.Bits, Group: x.Group, Offsets: x.Offsets}
	if x.Group >= x.K {
		f.Group = 0
	}
	if x.Levels {
		f.Values = layout.IQ4_NL.Values
	}
	switch {
	case x.Host:
		return ByHost
	case x.Bits <= 8 && !m.Tiles && rows <= hexagon.LookupRows(f, false):
		return ByLookup
	}
	return ByTiles
}

// host returns the cost of rows products on the CPU.
func (m *Machine) host(x Matrix, rows int) Cost {
	bytes, flops := float64(x.M)*float64(x.K)*float64(x.Bits)/8, 2*float64(x.M)*float64(x.K)*float64(rows)
	rate := m.HostCompute.Value
	if rows == 1 {
		rate = m.HostRow.Value
	}
	s := max(bytes/(m.HostBandwidth.Value*1e9), flops/(rate*1e9))
	return Cost{Host: s, Seconds: s}
}

// Product returns the cost of rows products with x by themselves, without lookup tables.
func (m *Machine) Product(x Matrix, rows int) (Cost, error) {
	switch m.Path(x, rows) {
	case ByHost:
		return m.host(x, rows), nil
	case ByLookup:
		return m.Lookup(x, rows), nil
	}
	return m.Tiled(x, rows, true)
}

// Work is the part of one sequence in a step.
type Work struct {
	Rows    int `json:"rows"`    // tokens that are computed
	Context int `json:"context"` // tokens that the last of them sees, itself included
}

// deltaPackets is about how many packets a row takes for each 128 bytes of states (OpDelta), as its loops are compiled
// for a device: two or three of what a state has told, six of what it becomes.
const deltaPackets = 8

// DeltaNet returns the cost of states in one layer: they come and go once for all rows of a sequence, which pass through
// them one after the other, and the host copies what they have become.
func (m *Machine) DeltaNet(x *Model, work []Work) Cost {
	var sum Cost
	for _, w := range work {
		c := Cost{DMA: m.load(2 * x.State), Vector: m.vector(float64(w.Rows) * float64(x.State) / 128 * deltaPackets)}
		c.overlapped()
		c.Seconds += 2 * float64(x.State) / (m.HostBandwidth.Value * 1e9)
		sum.Add(c)
	}
	return sum
}

// Logits is the Input of the matrix that makes logits.
const Logits = "logits"

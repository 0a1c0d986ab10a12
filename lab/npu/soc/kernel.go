package soc

import (
	"math/bits"

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
	Only    Path                 // of products; empty: the one that takes less
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
	p := Counted()
	r, err := rest()
	if err != nil {
		panic(err) // part of the program
	}
	p.Rest = r
	return &Machine{Chip: c, Packets: p, Route: ByDMA, layouts: map[layoutKey]Layout{}}
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
// pipeline (overlap) or before it. Rows beyond a chunk pass again over the matrix.
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

// Product returns the cost of rows products with x, by the path that takes less.
// Lookup includes nothing for tables.
func (m *Machine) Product(x Matrix, rows int) (Cost, Path, error) {
	if x.Host {
		bytes, flops := float64(x.M)*float64(x.K)*float64(x.Bits)/8, 2*float64(x.M)*float64(x.K)*float64(rows)
		rate := m.HostCompute.Value
		if rows == 1 {
			rate = m.HostRow.Value
		}
		s := max(bytes/(m.HostBandwidth.Value*1e9), flops/(rate*1e9))
		return Cost{Host: s, Seconds: s}, ByHost, nil
	}
	byTiles, err := m.Tiled(x, rows, true)
	if err != nil {
		return Cost{}, "", err
	}
	byLookup := m.Lookup(x, rows)
	faster := byLookup.Seconds+m.Tables(x, rows).Seconds <= byTiles.Seconds
	if x.Bits <= 8 && (m.Only == ByLookup || m.Only == "" && faster) {
		return byLookup, ByLookup, nil
	}
	return byTiles, ByTiles, nil
}

// Work is the part of one sequence in a step.
type Work struct {
	Rows    int `json:"rows"`    // tokens that are computed
	Context int `json:"context"` // tokens that the last of them sees, itself included
}

// Attention returns the cost of attention in one layer (OpTileMul and OpSoftmax): keys and
// values come by DMA, once for all query heads that share them.
func (m *Machine) Attention(x *Model, work []Work) Cost {
	var sum Cost
	rest := &m.Packets.Rest
	for _, w := range work {
		rows, keys := w.Rows*x.Heads/max(1, x.KVHeads), up(w.Context, tiling.MMA)
		padded := up(rows, tiling.MMA)
		scores := float64(padded) * float64(keys) * float64(x.KVHeads)
		c := Cost{
			DMA:    m.load(2 * 2 * w.Context * x.KVHeads * x.HeadDim),
			Vector: m.vector(scores/64*m.Packets.Softmax) + float64(x.KVHeads)*(m.thread(rest.AttendPackets+rest.Collect*float64(w.Context))+m.Barriers(rest.AttendBarriers)),
			Tiles:  2 * m.tileSeconds(padded, x.HeadDim, keys) * float64(x.KVHeads),
			Useful: float64(rows) / float64(padded),
		}
		c.overlapped()
		sum.Add(c)
	}
	return sum
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

// Step returns the cost of one pass over the model with the work of its sequences, and the
// path of each matrix. outputs is the number of rows whose logits are wanted.
func (m *Machine) Step(x *Model, work []Work, outputs int) (Cost, []Path, error) {
	var sum Cost
	var paths []Path
	rows, longest := 0, 0
	for _, w := range work {
		rows, longest = rows+w.Rows, max(longest, w.Rows)
	}
	tabled := map[tables]bool{}
	for _, mx := range x.Matrices {
		n := rows
		if mx.Input == Logits {
			n = outputs
		}
		if n == 0 {
			paths = append(paths, "")
			continue
		}
		c, path, err := m.Product(mx, n)
		if err != nil {
			return Cost{}, nil, err
		}
		if of := (tables{mx.Input, mx.inBytes()}); path == ByLookup && !tabled[of] { // q, k, v share tables; so do gate and up
			tabled[of] = true
			c.Add(m.Tables(mx, n))
		}
		sum.Add(c.times(mx.Count))
		paths = append(paths, path)
	}
	each := m.layerRest(x, rows)
	sum.Add(each.times(x.Layers + x.Convs + x.Deltas))
	attention, net := m.Attention(x, work), m.DeltaNet(x, work)
	sum.Add(attention.times(x.Layers))
	sum.Add(net.times(x.Deltas))
	sum.Seconds += m.Request.Value / 1e3
	watts := m.DecodePower.Value
	if longest > 1 {
		watts = m.PrefillPower.Value
	}
	sum.Joules = sum.Seconds * watts
	return sum, paths, nil
}

// tables are made of an input, for lookups or as bytes.
type tables struct {
	input string
	bytes bool
}

// Logits is the Input of the matrix that makes logits.
const Logits = "logits"

// Decode returns the cost of one token for each of batch sequences at a context.
func (m *Machine) Decode(x *Model, batch, context int) (Cost, error) {
	work := make([]Work, batch)
	for i := range work {
		work[i] = Work{1, context}
	}
	c, _, err := m.Step(x, work, batch)
	return c, err
}

// Prefill returns the cost of a prompt, in chunks.
func (m *Machine) Prefill(x *Model, tokens int) (Cost, error) {
	var sum Cost
	for at := 0; at < tokens; at += Chunk {
		n, outputs := min(Chunk, tokens-at), 0
		if at+n == tokens {
			outputs = 1
		}
		c, _, err := m.Step(x, []Work{{n, at + n}}, outputs)
		if err != nil {
			return Cost{}, err
		}
		sum.Add(c)
	}
	return sum, nil
}

package soc

import (
	"fmt"

	"github.com/lutra-lm/lutra/hexagon/pipeline"
	"github.com/lutra-lm/lutra/lab/npu/tiling"
)

// Matrix is a linear layer: y[M] = W[M][K]·x[K].
type Matrix struct {
	Name string `json:"name"`
	M    int    `json:"m"`
	K    int    `json:"k"`
	Bits int    `json:"bits"` // of a stored weight: 1, 2, 4 or 8; 16: fp16
	// Group is the columns that share a scale; K or more: all do, and the host keeps it.
	Group   int    `json:"group"`
	Offsets bool   `json:"offsets,omitempty"` // groups have offsets, too
	Levels  bool   `json:"levels,omitempty"`  // codes of 4 bits stand for one of 16 values
	Count   int    `json:"count"`             // in the model
	Input   string `json:"input"`             // matrices of one input share its tables
	Host    bool   `json:"host,omitempty"`    // computed by the CPU
}

// Padded returns the matrix as the device holds it: whole strips and whole table tiles.
func (m Matrix) Padded() Matrix {
	if m.Group >= m.K {
		m.Group = up(m.K, tiling.TableTile)
	}
	m.M, m.K = up(m.M, tiling.Lookups), up(m.K, tiling.TableTile)
	return m
}

// Tiled returns the matrix for the tiling search.
func (m Matrix) Tiled() tiling.Matrix {
	p := m.Padded()
	return tiling.Matrix{M: p.M, K: p.K, Bits: p.Bits, Group: p.Group, Offsets: p.Offsets}
}

// Bytes returns the size of one such matrix on the device.
func (m Matrix) Bytes() int {
	p := m.Padded()
	return tiling.Tiling{KLut: tiling.TableTile, MIterD: p.M / tiling.Lookups, KIterD: p.K / tiling.TableTile}.Packed(m.Tiled())
}

// Model has the parts of a language model that take time.
type Model struct {
	Name     string   `json:"name"`
	Layers   int      `json:"layers"`           // with attention
	Convs    int      `json:"convs,omitempty"`  // layers with a short convolution, which are products and what a layer has beside them
	Deltas   int      `json:"deltas,omitempty"` // layers with a gated delta net
	State    int      `json:"state,omitempty"`  // bytes of a sequence's states of such a layer
	Heads    int      `json:"heads"`            // of queries
	KVHeads  int      `json:"kv_heads"`         // of keys and values
	HeadDim  int      `json:"head_dim"`
	Matrices []Matrix `json:"matrices"`
	// Experts is the number in a layer's mixture; their matrices are not among Matrices.
	Experts int `json:"experts,omitempty"`
}

// Bytes returns the size of all weights on the device.
func (m *Model) Bytes() int {
	n := 0
	for _, x := range m.Matrices {
		if !x.Host {
			n += x.Bytes() * x.Count
		}
	}
	return n
}

// KVBytes returns what the keys and values of one token take, in fp16.
func (m *Model) KVBytes() int { return m.Layers * 2 * m.KVHeads * m.HeadDim * 2 }

// Chunk is the most rows of one product: longer prompts go through in pieces.
const Chunk = 128

// Region is a part of TCM.
type Region struct {
	Name  string `json:"name"`
	Begin int    `json:"begin"`
	Bytes int    `json:"bytes"`
}

// Layout is where things lie in TCM while a matrix is computed.
type Layout struct {
	Regions []Region      `json:"regions"`
	Free    int           `json:"free"`
	Search  tiling.Result `json:"search"`
}

// tables returns what tables of a row's activations take, and their sums.
func (m Matrix) tables() (tables, sums int) {
	p := m.Padded()
	tables = 8 * p.K
	if m.inBytes() {
		tables = 2 * p.K
	}
	return tables, p.K / 32 * 4
}

// LookupRows returns the number of rows whose tables of one matrix lie in TCM at once: at most a tile of the tile unit, and half
// of TCM.
func (c *Chip) LookupRows(m Matrix) int {
	tables, sums := m.tables()
	return max(1, min(tiling.MMA, int(c.TCM.Value)/2/(tables+sums)))
}

// mostSums bounds the size of sums of products by lookup. If all rows have more, a matrix is multiplied in parts.
const mostSums = 1 << 20

// Plan chooses the tiling of a matrix and lays TCM out for products of rows rows. Rows of a chunk go by tiles, and need no tables.
func (c *Chip) Plan(m Matrix, rows int) (Layout, error) {
	p := m.Padded()
	const align, slack = 128, 1 << 10 // for aligning what the search places
	var l Layout
	at := 0
	add := func(name string, bytes int) {
		l.Regions = append(l.Regions, Region{name, at, bytes})
		at = up(at+bytes, align)
	}
	n := up(min(rows, Chunk), tiling.MMA)
	add("table of 2⁻ˣ (softmax)", 64<<10)
	add("activations, fp16 tiles", 2*n*p.K)
	lookups := 1
	if rows <= tiling.MMA {
		lookups = min(rows, c.LookupRows(m))
	}
	tables, sums := m.tables()
	add(fmt.Sprintf("lookup tables, rows: %d", lookups), lookups*tables)
	add(fmt.Sprintf("sums of activations, rows: %d", lookups), lookups*sums)
	add("spill buffer, int32", max(4*p.M, min(lookups*4*p.M, mostSums)))
	limits := tiling.Limits{Registers: 32, Threads: int(c.Threads.Value), Buffers: pipeline.Buffers, Memory: int(c.TCM.Value) - at - slack, RowBytes: 2 * n}
	var err error
	if l.Search, err = tiling.Search(m.Tiled(), limits); err != nil {
		return l, fmt.Errorf("%s: %w", m.Name, err)
	}
	t := l.Search.Choice
	buffers := pipeline.Buffers * limits.Threads
	add(fmt.Sprintf("packed tiles, %d×%d", pipeline.Buffers, limits.Threads), buffers*t.Packed(l.Search.Matrix))
	add(fmt.Sprintf("fp16 tiles, %d×%d", pipeline.Buffers, limits.Threads), buffers*t.Unpacked())
	add(fmt.Sprintf("results, fp16 tiles, %d", limits.Threads), limits.Threads*t.Rows()*limits.RowBytes)
	l.Free = int(c.TCM.Value) - at
	return l, nil
}

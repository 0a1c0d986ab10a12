package layout

import "encoding/binary"

// Tiles is a matrix of fp16 in the order in which the tile unit reads it.
type Tiles struct {
	Rows, Cols int
	M, K       int     // multiples of Strip and TableCols; further rows and columns are zeros
	Data       []byte  // [M/Tile][K/Tile] tiles
	Most       float32 // magnitude of a number
}

// NewTiles returns a matrix for SetRow to fill.
func NewTiles(rows, cols int) *Tiles {
	t := &Tiles{Rows: rows, Cols: cols, M: roundUp(rows, Strip), K: roundUp(cols, TableCols)}
	t.Data = make([]byte, 2*t.M*t.K)
	return t
}

// at returns where the number of a row and column stands.
func (t *Tiles) at(m, k int) int {
	return (m/Tile*(t.K/Tile)+k/Tile)*TileBytes + 2*TileIndex(m%Tile, k%Tile)
}

// SetRow sets row m to numbers, Cols long, rounded to fp16.
func (t *Tiles) SetRow(m int, row []float32) {
	for k, f := range row[:t.Cols] {
		binary.LittleEndian.PutUint16(t.Data[t.at(m, k):], F16(f))
	}
}

// Dequantize sets dst, Cols long, to row m.
func (t *Tiles) Dequantize(dst []float32, m int) {
	for k := range dst {
		dst[k] = F32(binary.LittleEndian.Uint16(t.Data[t.at(m, k):]))
	}
}

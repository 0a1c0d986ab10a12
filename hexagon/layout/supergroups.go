package layout

import "encoding/binary"

// Sizes of super-groups: 8 scales and 256 codes of four bits, which fill a vector.
const (
	SuperGroup      = 256
	SuperGroupBytes = 8*2 + SuperGroup/2
	superGroupScale = 32 // elements of one scale
)

// SuperGroups is a matrix in tiles of 4 super-groups. A group of 32 numbers that
// follow one another in a tile, 2 rows × 16 columns, has one scale, so that a vector
// of codes becomes a quarter of a tile without a shuffle.
type SuperGroups struct {
	Rows, Cols int
	M, K       int        // multiples of Tile
	Values     [16]uint16 // fp16 of each code
	Data       []byte     // [M/Tile][K/Tile][4][SuperGroupBytes]
}

// NewSuperGroups returns a matrix for SetTile to fill.
func NewSuperGroups(rows, cols int, values []float32) *SuperGroups {
	g := &SuperGroups{Rows: rows, Cols: cols, M: roundUp(rows, Tile), K: roundUp(cols, Tile)}
	for i, v := range values {
		g.Values[i] = F16(v)
	}
	g.Data = make([]byte, g.M*g.K/SuperGroup*SuperGroupBytes)
	return g
}

// tile returns the bytes of one tile.
func (g *SuperGroups) tile(row, col int) []byte {
	return g.Data[(row*(g.K/Tile)+col)*4*SuperGroupBytes:][:4*SuperGroupBytes]
}

// SetTile packs a tile: 1024 codes in the tile's order, and a scale for each 32.
func (g *SuperGroups) SetTile(row, col int, scales *[32]uint16, codes *[1024]uint8) {
	data := g.tile(row, col)
	for i := range 4 {
		packSuperGroup(data[i*SuperGroupBytes:], scales[8*i:], codes[SuperGroup*i:])
	}
}

// packSuperGroup packs 8 scales and 256 codes. Element e is in byte 2·(e%64) + e/64%2
// of the codes, in the low nibble if e < 128.
func packSuperGroup(dst []byte, scales []uint16, codes []uint8) {
	for i := range 8 {
		binary.LittleEndian.PutUint16(dst[2*i:], scales[i])
	}
	q := dst[16:SuperGroupBytes]
	for i := range 128 {
		e := i/2 + i&1*64
		q[i] = codes[e]&15 | codes[e+128]<<4
	}
}

// SuperGroupCode returns the code of element e of a super-group.
func SuperGroupCode(group []byte, e int) uint8 {
	return group[16+2*(e%64)+e/64&1] >> (e / 128 * 4) & 15
}

// SuperGroupValue returns element e of a super-group as the device computes it:
// fp16(value·scale).
func SuperGroupValue(group []byte, e int, values *[16]uint16) uint16 {
	scale := binary.LittleEndian.Uint16(group[e/superGroupScale*2:])
	return F16(F32(values[SuperGroupCode(group, e)]) * F32(scale))
}

// Dequantize sets dst, Cols long, to the weights of row m.
func (g *SuperGroups) Dequantize(dst []float32, m int) {
	for k := range dst {
		i := TileIndex(m%Tile, k%Tile)
		group := g.tile(m/Tile, k/Tile)[i/SuperGroup*SuperGroupBytes:]
		dst[k] = F32(SuperGroupValue(group, i%SuperGroup, &g.Values))
	}
}

// Q4Values are the values of Q4_0's codes.
var Q4Values = [16]float32{-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7}

package layout

// Sizes of the layouts.
const (
	Strip     = 128  // rows that the byte lanes of a vector hold
	Block     = 64   // columns of a strip that stand together
	TableCols = 256  // columns whose lookup tables fill 16 vectors
	Tile      = 32   // rows and columns of a tile
	TileBytes = 2048 // of a tile's 1024 fp16
)

// TileIndex returns the place of element (r, c) among the numbers of a tile.
func TileIndex(r, c int) int { return r>>1<<6 | c<<1 | r&1 }

// RowOfByte returns the row of a strip whose codes byte b of a line holds. In this order
// the second lookup of prefill yields pairs of rows as tiles have them.
func RowOfByte(b int) int { return b&^3 | b&1<<1 | b>>1&1 }

// ByteOfRow returns the inverse of RowOfByte, which is its own.
func ByteOfRow(row int) int { return RowOfByte(row) }

// QuadColumn returns the column, of 32, that bit i of quad q's nibble stands for. In this
// order the nibbles of a byte that prefill repacks are 16 columns apart.
func QuadColumn(q, i int) int { return i&1<<4 | q<<1 | i>>1 }

// ScaleIndex returns the place of a strip's row among the 128 scales of one group.
func ScaleIndex(row int) int { return row>>1&1<<6 | row>>2<<1 | row&1 }

// LineBytes is a line of bit-serial codes: one plane of a strip's 128 rows by 8 columns.
const LineBytes = 128

// BlockBytes returns the size of a block of 128×64 codes. Its lines stand in the order
//
//	plane, highest first · half (32 columns) · pair of quads
//
// and byte b of a line holds row RowOfByte(b): the low nibble quad 2·pair, the high
// one quad 2·pair+1, bit i of a nibble column QuadColumn(quad, i) of the half.
func BlockBytes(bits int) int { return bits * 8 * LineBytes }

// packRow puts a row's codes into its byte of each line of a strip. strip holds the
// strip's blocks, codes one for each column; further columns keep code 0.
func packRow(strip []byte, row int, codes []uint8, bits int) {
	b := ByteOfRow(row)
	for k := 0; k < len(codes); k += Tile {
		var part [Tile]uint8
		copy(part[:], codes[k:])
		block := strip[k/Block*BlockBytes(bits):]
		half := k / Tile & 1
		for pair := range 4 {
			lo, hi := part[4*pair:4*pair+4], part[16+4*pair:16+4*pair+4]
			// Each code's bits are 8 apart in v, the columns in the order of nibbles.
			v := spread[lo[0]] | spread[hi[0]]<<1 | spread[lo[1]]<<2 | spread[hi[1]]<<3 |
				spread[lo[2]]<<4 | spread[hi[2]]<<5 | spread[lo[3]]<<6 | spread[hi[3]]<<7
			for plane := range bits {
				line := (bits-1-plane)*8 + half*4 + pair
				block[line*LineBytes+b] = byte(v >> (8 * plane))
			}
		}
	}
}

// spread has the bits of a code 8 apart.
var spread = func() (t [16]uint32) {
	for c := range uint32(16) {
		t[c] = c&1 | c&2<<7 | c&4<<14 | c&8<<21
	}
	return t
}()

// unpackRow undoes packRow.
func unpackRow(codes []uint8, strip []byte, row, bits int) {
	b := ByteOfRow(row)
	for k := range codes {
		block := strip[k/Block*BlockBytes(bits):]
		in := k % Tile
		quad, bit := in&15>>1, in&1<<1|in>>4
		var c uint8
		for plane := range bits {
			line := (bits-1-plane)*8 + k/Tile&1*4 + quad/2
			c |= block[line*LineBytes+b] >> (quad&1*4 + bit) & 1 << plane
		}
		codes[k] = c
	}
}

// bytePlace returns where the code of a row and column of a block stands that has its codes
// in bytes: of 128 rows by 4 columns, by 8 where codes have four bits, four lines, line i with
// rows 4j+i, whose four columns are bytes 4j, 4j+1 ...; the further four are their high halves.
func bytePlace(row, col, bits int) (at, shift int) {
	if bits == 8 {
		return (col/4*4+row%4)*LineBytes + row&^3 + col%4, 0
	}
	return (col/8*4+row%4)*LineBytes + row&^3 + col%4, col & 4
}

// packBytes puts a row's codes into a strip's blocks in bytes.
func packBytes(strip []byte, row int, codes []uint8, bits int) {
	for k, c := range codes {
		at, shift := bytePlace(row, k%Block, bits)
		b := &strip[k/Block*BlockBytes(bits)+at]
		*b = *b&^(byte(1<<bits-1)<<shift) | c<<shift
	}
}

// ByteCode returns the code of a row and column of a strip's block in bytes.
func ByteCode(block []byte, row, col, bits int) uint8 {
	at, shift := bytePlace(row, col, bits)
	return block[at] >> shift & byte(1<<bits-1)
}

// TableIndex returns the place of entry n of a quad's table among the 1024 numbers of the
// 256 columns that half, 0..7, is of. A vector of 64 has four tables, in the order
// that vlut16 selects them.
func TableIndex(half, quad, n int) int {
	vector := half&1<<3 | half>>2<<2 | quad>>1
	return vector<<6 | half>>1&1<<5 | n<<1 | quad&1
}

// Nibble returns the codes' bit of one plane in the four columns of a quad, 0..7 of the
// half, 0 or 1, of a strip's block.
func Nibble(block []byte, row, plane, half, quad, bits int) int {
	line := (bits-1-plane)*8 + half*4 + quad/2
	return int(block[line*LineBytes+ByteOfRow(row)] >> (quad & 1 * 4) & 15)
}

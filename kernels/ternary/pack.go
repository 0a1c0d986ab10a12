package ternary

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// The ternary layout. A byte holds g trits as digits w+1 of 0..2, trit j that of
// column c·g+j of its block: g = 5 digits in base 3 in I1, Σ (w+1)·3^j, and 4
// bit pairs in I2, Σ (w+1)·4^j. A block is 4 bytes of one row
// (20 or 16 columns); 64 rows of a block lie together, and the blocks of a
// 64-row strip follow one another:
//
//	Data [Rows/64][Cols/4g][64 rows][4 bytes]
//
// So 64 bytes are 16 rows × 4 bytes, the shape of one multiply-add instruction;
// 4 bytes are one row's indices into 4 lookup tables; and a strip is one
// sequential stream. Vec-LUT §3.3 mixes groups of 5 and 4 to fit any Cols
// without waste. Here the last block is filled up with zero trits instead:
// a strip needs ⌈Cols/20⌉ blocks either way, so mixing would save no byte.
const StripRows = 64

// MaxCols keeps every int32 sum exact: 2^24 · 127 < 2^31.
const MaxCols = 1 << 24

// tritsPerByte is g of a ternary packing.
func tritsPerByte(p matrix.Packing) int {
	if p == matrix.I1 {
		return 5
	}
	return 4
}

// radix is what the place of a trit in its byte counts.
func radix(p matrix.Packing) int {
	if p == matrix.I1 {
		return 3
	}
	return 4
}

// blocksOf is the number of blocks a row of cols trits takes.
func blocksOf(cols int, p matrix.Packing) int {
	each := acts.BlockBytes * tritsPerByte(p)
	return (cols + each - 1) / each
}

// Size is the length of Data that Pack makes, in bytes.
func Size(rows, cols int, p matrix.Packing) int {
	return cpu.RoundUp(rows, StripRows) * acts.BlockBytes * blocksOf(cols, p)
}

// Pack packs trits[rows][cols] of {-1, 0, +1} as I1 or I2. scale holds
// one value a row or a single one for the whole matrix; it is copied. Rows are
// padded to a multiple of 64 with zero weights. It reports ErrShape when the
// sizes do not belong together or a trit is none, and ErrUnsupported for a
// packing that is not ternary.
func Pack(rows, cols int, trits []int8, scale []float32, p matrix.Packing) (*matrix.Matrix, error) {
	if !p.Ternary() {
		return nil, fmt.Errorf("%w: %v holds no trits", matrix.ErrUnsupported, p)
	}
	m := &matrix.Matrix{Rows: rows, Cols: cols, Packing: p, Scale: append([]float32(nil), scale...)}
	if err := check(m); err != nil {
		return nil, err
	}
	if rows > len(trits)/cols || rows*cols != len(trits) {
		return nil, fmt.Errorf("%w: %d trits for %d x %d", matrix.ErrShape, len(trits), rows, cols)
	}
	m.Data = cpu.Aligned[byte](Size(rows, cols, p))
	faults := make([]error, cpu.RoundUp(rows, StripRows)/StripRows)
	matrix.Parallel(len(faults), func(s int) { faults[s] = packStrip(m, s, trits) })
	for _, err := range faults {
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// packStrip packs the 64 rows of strip s of m.
func packStrip(m *matrix.Matrix, s int, trits []int8) error {
	g, blocks := tritsPerByte(m.Packing), blocksOf(m.Cols, m.Packing)
	digits := make([]byte, blocks*acts.BlockBytes*g+8) // one row as digits 0..2; 8 spare bytes for whole-word reads
	for i := range digits {
		digits[i] = 1
	}
	strip := m.Data[s*blocks*StripRows*acts.BlockBytes:]
	for i := range StripRows {
		if r := s*StripRows + i; r < m.Rows {
			row := trits[r*m.Cols : (r+1)*m.Cols]
			if c := toDigits(digits, row); c >= 0 {
				return fmt.Errorf("%w: trit %d at row %d, column %d", matrix.ErrShape, row[c], r, c)
			}
		} else if r == m.Rows {
			for i := range digits {
				digits[i] = 1
			}
		}
		packRow(strip[i*acts.BlockBytes:], digits, blocks, g)
	}
	return nil
}

// toDigits writes w+1 for each trit and returns the index of the first value
// that is no trit, or -1.
func toDigits(dst []byte, trits []int8) int {
	const ones, signs = 0x0101010101010101, 0x8080808080808080
	src := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(trits))), len(trits))
	dst = dst[:len(src)]
	bad, i := uint64(0), 0
	for ; i+8 <= len(src); i += 8 { // eight at a time; the sum of a byte carries into no other
		w := binary.LittleEndian.Uint64(src[i:])
		d := (w&^signs + ones) ^ w&signs
		binary.LittleEndian.PutUint64(dst[i:], d)
		bad |= d&^(3*ones) | d&(d>>1)&ones // 4 and above, or 3
	}
	for ; i < len(src); i++ {
		d := src[i] + 1
		dst[i] = d
		bad |= uint64(d&^3 | d&(d>>1)&1)
	}
	if bad == 0 {
		return -1
	}
	return slices.IndexFunc(trits, func(t int8) bool { return t < -1 || t > 1 })
}

// packRow writes one row's blocks, stripRows*BlockBytes apart. A product with
// the right constant adds g digits times their places in one byte: no lower
// byte of it can carry, each being at most 2·(81+27+9+3) = 240.
func packRow(dst, digits []byte, blocks, g int) {
	const by4 = 64 | 16<<8 | 4<<16 | 1<<24
	const by5 = 81 | 27<<8 | 9<<16 | 3<<24 | 1<<32
	for b := range blocks {
		var v uint32
		if d := digits[b*acts.BlockBytes*g:]; g == 4 {
			v = binary.LittleEndian.Uint32(d) * by4 >> 24
			v |= binary.LittleEndian.Uint32(d[4:]) * by4 >> 24 << 8
			v |= binary.LittleEndian.Uint32(d[8:]) * by4 >> 24 << 16
			v |= binary.LittleEndian.Uint32(d[12:]) * by4 >> 24 << 24
		} else {
			for c := range acts.BlockBytes {
				v |= uint32(byte(binary.LittleEndian.Uint64(d[c*5:])*by5>>32)) << (8 * c)
			}
		}
		binary.LittleEndian.PutUint32(dst[b*StripRows*acts.BlockBytes:], v)
	}
}

func check(w *matrix.Matrix) error {
	if w.Rows < 1 || w.Cols < 1 || w.Cols > MaxCols || w.Rows > 1<<30 {
		return fmt.Errorf("%w: a ternary matrix of %d x %d", matrix.ErrShape, w.Rows, w.Cols)
	}
	if n := len(w.Scale); n != 1 && n != w.Rows {
		return fmt.Errorf("%w: %d scales for %d rows", matrix.ErrShape, n, w.Rows)
	}
	return nil
}

// checkData guards the kernels, which trust Data's length and read
// tables with its bytes that have entries for digits 0..2 alone.
func checkData(w *matrix.Matrix) error {
	if err := check(w); err != nil {
		return err
	}
	if want := Size(w.Rows, w.Cols, w.Packing); len(w.Data) != want {
		return fmt.Errorf("%w: %d bytes of %v for %d x %d, want %d", matrix.ErrShape, len(w.Data), w.Packing, w.Rows, w.Cols, want)
	}
	if !onlyTrits(w.Packing, w.Data) {
		return fmt.Errorf("%w: a byte of %v data that holds no trits", matrix.ErrShape, w.Packing)
	}
	return nil
}

// onlyTrits reports whether a multiple of 8 bytes are all of a ternary packing:
// at most 242 in I1, without a bit pair of 3 in I2.
func onlyTrits(p matrix.Packing, data []byte) bool {
	if p == matrix.I1 {
		top := byte(0)
		for _, b := range data {
			top = max(top, b)
		}
		return top <= 242
	}
	bad := uint64(0)
	for ; len(data) >= 8; data = data[8:] {
		w := binary.LittleEndian.Uint64(data)
		bad |= w & (w >> 1)
	}
	return bad&0x5555555555555555 == 0
}

// Trits sets dst[Cols] to the trits of row r of m, -1, 0 and 1.
func Trits(dst []int8, m *matrix.Matrix, r int) {
	g, base := tritsPerByte(m.Packing), byte(radix(m.Packing))
	strip := blocksOf(m.Cols, m.Packing) * StripRows * acts.BlockBytes
	b := m.Data[r/StripRows*strip+r%StripRows*acts.BlockBytes:]
	for i := 0; len(dst) > 0; i++ {
		v := b[i/acts.BlockBytes*StripRows*acts.BlockBytes+i%acts.BlockBytes]
		n := min(g, len(dst))
		for k := range dst[:n] {
			dst[k] = int8(v%base) - 1
			v /= base
		}
		dst = dst[n:]
	}
}

// Row sets dst to row r of m.
func Row(dst []float32, m *matrix.Matrix, r int) {
	scale := m.Scale[0]
	if len(m.Scale) > 1 {
		scale = m.Scale[r]
	}
	values, trits := [3]float32{-scale, 0, scale}, make([]int8, len(dst))
	Trits(trits, m, r)
	for k, t := range trits {
		dst[k] = values[t+1]
	}
}

// Arbitrary makes a matrix of arbitrary trits with a scale of 1, for
// measurements. It has 1 to 2^24 columns.
func Arbitrary(rows, cols int, p matrix.Packing, rng *rand.Rand) *matrix.Matrix {
	var codes []byte // bytes of p
	for b := range 256 {
		if onlyTrits(p, bytes.Repeat([]byte{byte(b)}, 8)) {
			codes = append(codes, byte(b))
		}
	}
	w := &matrix.Matrix{Rows: rows, Cols: cols, Packing: p, Scale: []float32{1}, Data: cpu.Aligned[byte](Size(rows, cols, p))}
	for i := range w.Data {
		w.Data[i] = codes[rng.IntN(len(codes))]
	}
	return w
}

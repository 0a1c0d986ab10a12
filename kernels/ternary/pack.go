package ternary

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// The ternary layout. A byte holds g trits as digits w+1 of 0..2, trit j for
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

// tritsPerByte returns g of a ternary packing.
func tritsPerByte(p matrix.Packing) int {
	if p == matrix.I1 {
		return 5
	}
	return 4
}

// radix returns the base in which a byte of p counts its trits.
func radix(p matrix.Packing) int {
	if p == matrix.I1 {
		return 3
	}
	return 4
}

// blocksOf returns the number of blocks a row of cols trits takes.
func blocksOf(cols int, p matrix.Packing) int {
	each := acts.BlockBytes * tritsPerByte(p)
	return (cols + each - 1) / each
}

// Size returns the length of Data that Pack makes, in bytes.
func Size(rows, cols int, p matrix.Packing) int {
	return cpu.RoundUp(rows, StripRows) * acts.BlockBytes * blocksOf(cols, p)
}

// Pack packs trits[rows][cols] of {-1, 0, +1}, as PackPairs does.
func Pack(rows, cols int, trits []int8, scale []float32, p matrix.Packing) (*matrix.Matrix, error) {
	if err := checkSource(rows, cols, len(trits)/max(1, cols), scale, p); err != nil || rows*cols != len(trits) {
		return nil, cmp.Or(err, fmt.Errorf("%w: %d trits for %d x %d", matrix.ErrShape, len(trits), rows, cols))
	}
	stride := PairBytes(cols)
	pairs := make([]byte, rows*stride)
	for i, t := range trits {
		if t < -1 || t > 1 {
			return nil, fmt.Errorf("%w: trit %d at row %d, column %d", matrix.ErrShape, t, i/cols, i%cols)
		}
		pairs[i/cols*stride+i%cols/4] |= byte(t+1) << (i % cols % 4 * 2)
	}
	return PackPairs(rows, cols, pairs, scale, p)
}

// PairBytes returns the size of a row of cols trits as PackPairs takes it, in bytes.
func PairBytes(cols int) int { return (cols + 3) / 4 }

// PackPairs packs rows of trits as I1 or I2. Of each row pairs has PairBytes(cols)
// bytes: w+1 of column k in bits 2(k%4) of byte k/4. scale holds
// one value a row or a single one for the whole matrix; it is copied. Rows are
// padded to a multiple of 64 with zero weights. It reports ErrShape when the
// sizes do not belong together or a code is 3, and ErrUnsupported for a
// packing that is not ternary.
func PackPairs(rows, cols int, pairs []byte, scale []float32, p matrix.Packing) (*matrix.Matrix, error) {
	stride := PairBytes(cols)
	if err := checkSource(rows, cols, len(pairs)/max(1, stride), scale, p); err != nil || rows*stride != len(pairs) {
		return nil, cmp.Or(err, fmt.Errorf("%w: %d bytes of codes for %d x %d", matrix.ErrShape, len(pairs), rows, cols))
	}
	m := &matrix.Matrix{Rows: rows, Cols: cols, Packing: p, Scale: append([]float32(nil), scale...)}
	m.Data = matrix.Data(Size(rows, cols, p))
	var bad atomic.Bool
	matrix.Parallel(cpu.RoundUp(rows, StripRows)/StripRows, func(s int) {
		if !packStrip(m, s, pairs) {
			bad.Store(true)
		}
	})
	if bad.Load() {
		return nil, fmt.Errorf("%w: a code of 3 among trits", matrix.ErrShape)
	}
	return m, nil
}

// checkSource reports why no ternary matrix can be made of a source that has have rows.
func checkSource(rows, cols, have int, scale []float32, p matrix.Packing) error {
	if !p.Ternary() {
		return fmt.Errorf("%w: %v holds no trits", matrix.ErrUnsupported, p)
	}
	if err := check(&matrix.Matrix{Rows: rows, Cols: cols, Packing: p, Scale: scale}); err != nil {
		return err
	}
	if rows > have {
		return fmt.Errorf("%w: %d rows of %d trits where there are %d", matrix.ErrShape, rows, cols, have)
	}
	return nil
}

// noWeights are four codes of zero weights.
const noWeights = 0x55

// ArePairs tells whether no code of pairs is 3.
func ArePairs(pairs []byte) bool {
	bad := uint64(0)
	for ; len(pairs) >= 8; pairs = pairs[8:] {
		q := binary.LittleEndian.Uint64(pairs)
		bad |= q & (q >> 1)
	}
	for _, q := range pairs {
		bad |= uint64(q & (q >> 1))
	}
	return bad&(noWeights*0x0101010101010101) == 0
}

// packStrip packs the 64 rows of strip s of m. It reports false for a code of 3.
func packStrip(m *matrix.Matrix, s int, pairs []byte) bool {
	blocks, stride := blocksOf(m.Cols, m.Packing), PairBytes(m.Cols)
	// A row with what fills up its last block; 8 spare bytes for whole-word reads.
	row := bytes.Repeat([]byte{noWeights}, blocks*acts.BlockBytes*tritsPerByte(m.Packing)/4+8)
	strip := m.Data[s*blocks*StripRows*acts.BlockBytes:]
	for i := range StripRows {
		if r := s*StripRows + i; r < m.Rows {
			copy(row, pairs[r*stride:(r+1)*stride])
			if tail := m.Cols % 4; tail != 0 {
				fill := byte(0xff << (2 * tail))
				row[stride-1] = row[stride-1]&^fill | noWeights&fill
			}
			if !ArePairs(row) {
				return false
			}
		} else if r == m.Rows {
			row = bytes.Repeat([]byte{noWeights}, len(row))
		}
		dst := strip[i*acts.BlockBytes:]
		if m.Packing == matrix.I1 {
			packRow5(dst, row, blocks)
			continue
		}
		for b := range blocks {
			binary.LittleEndian.PutUint32(dst[b*StripRows*acts.BlockBytes:], binary.LittleEndian.Uint32(row[4*b:]))
		}
	}
	return true
}

// packRow5 writes one row's blocks of I1, 20 codes each, StripRows*BlockBytes apart.
func packRow5(dst, pairs []byte, blocks int) {
	for b := range blocks {
		q := binary.LittleEndian.Uint64(pairs[5*b:]) // 40 bits of it
		v := uint32(0)
		for c := range acts.BlockBytes {
			v |= fiveDigits(q>>(10*c)) << (8 * c)
		}
		binary.LittleEndian.PutUint32(dst[b*StripRows*acts.BlockBytes:], v)
	}
}

// fiveDigits returns the byte of five codes, the lowest ten bits of q.
func fiveDigits(q uint64) uint32 {
	return uint32(q&3 + 3*(q>>2&3) + 9*(q>>4&3) + 27*(q>>6&3) + 81*(q>>8&3))
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

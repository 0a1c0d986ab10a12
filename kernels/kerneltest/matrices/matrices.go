// Package matrices makes packed matrices for tests, and reads them.
package matrices

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/dense"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// Banded are the packings that are stored in bands.
var Banded = []matrix.Packing{matrix.F32, matrix.F16, matrix.BF16, matrix.Q4, matrix.Q4M, matrix.Q41, matrix.Q6, matrix.Q8, matrix.Q1G128, matrix.Q2G64, matrix.Q2G128, matrix.FP4, matrix.NL4, matrix.NL4K, matrix.NL4S, matrix.NL3K, matrix.NVFP4}

// Grouped are the packings of integer codes.
var Grouped = Banded[3:]

// Random packs random blocks with scales of ordinary size.
func Random(tb testing.TB, r *rand.Rand, p matrix.Packing, rows, cols int) *matrix.Matrix {
	tb.Helper()
	pack, ok := packers[p]
	if !ok {
		tb.Fatalf("no packer of %v", p)
	}
	m, err := pack(source{r, rows, cols})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// source draws what a matrix is packed from.
type source struct {
	*rand.Rand
	rows, cols int
}

// blocks returns random blocks, each of so many weights in size bytes, with a scale at each offset.
func (s source) blocks(block, size int, scales ...int) []byte {
	raw := make([]byte, s.rows*s.cols/block*size)
	for i := range raw {
		raw[i] = byte(s.Uint32())
	}
	for o := 0; o < len(raw); o += size {
		for _, at := range scales {
			binary.LittleEndian.PutUint16(raw[o+at:], vector.ToF16(float32(s.NormFloat64())*0.02))
		}
	}
	return raw
}

// halves returns random numbers of 16 bits.
func (s source) halves(of func(float32) uint16) []byte {
	raw := make([]byte, 2*s.rows*s.cols)
	for i := range s.rows * s.cols {
		binary.LittleEndian.PutUint16(raw[2*i:], of(float32(s.NormFloat64())))
	}
	return raw
}

// packers draw a matrix of a packing.
var packers = map[matrix.Packing]func(s source) (*matrix.Matrix, error){
	matrix.F32: func(s source) (*matrix.Matrix, error) {
		w := make([]float32, s.rows*s.cols)
		for i := range w {
			w[i] = float32(s.NormFloat64())
		}
		return dense.PackF32(s.rows, s.cols, w)
	},
	matrix.F16: func(s source) (*matrix.Matrix, error) {
		return dense.PackF16(s.rows, s.cols, s.halves(vector.ToF16))
	},
	matrix.BF16: func(s source) (*matrix.Matrix, error) {
		return dense.PackBF16(s.rows, s.cols, s.halves(vector.ToBF16))
	},
	matrix.FP4: func(s source) (*matrix.Matrix, error) {
		raw := s.blocks(32, 17)
		for o := 0; o < len(raw); o += 17 {
			raw[o] = byte(118 + s.IntN(8))
		}
		return grouped.PackMXFP4(s.rows, s.cols, raw)
	},
	matrix.NVFP4: func(s source) (*matrix.Matrix, error) {
		return grouped.PackNVFP4(s.rows, s.cols, s.blocks(64, 36), 0.3)
	},
	matrix.NL4K:   levels(matrix.NL4K),
	matrix.NL4S:   levels(matrix.NL4S),
	matrix.NL3K:   levels(matrix.NL3K),
	matrix.Q4:     blocks(grouped.PackQ4_0, 32, 18, 0),
	matrix.NL4:    blocks(grouped.PackIQ4_NL, 32, 18, 0),
	matrix.Q8:     blocks(grouped.PackQ8_0, 32, 34, 0),
	matrix.Q4M:    blocks(grouped.PackQ4_K, 256, 144, 0, 2),
	matrix.Q41:    blocks(grouped.PackQ4_1, 32, 20, 0, 2),
	matrix.Q6:     blocks(grouped.PackQ6_K, 256, 210, 208),
	matrix.Q1G128: blocks(grouped.PackQ1_0, 128, 18, 0),
	matrix.Q2G64:  blocks(grouped.PackQ2_0, 64, 18, 0),
	matrix.Q2G128: blocks(grouped.PackPQ2_0, 128, 34, 0),
}

// blocks packs random blocks (source.blocks).
func blocks(pack func(rows, cols int, raw []byte) (*matrix.Matrix, error), block, size int, scales ...int) func(s source) (*matrix.Matrix, error) {
	return func(s source) (*matrix.Matrix, error) {
		return pack(s.rows, s.cols, s.blocks(block, size, scales...))
	}
}

// levels packs superblocks of random codes of levels.
func levels(p matrix.Packing) func(s source) (*matrix.Matrix, error) {
	return func(s source) (*matrix.Matrix, error) {
		return superblocks(p, s.rows, s.cols, func(b *grouped.Superblock, levels *matrix.Levels) {
			b.D = vector.FromF16(vector.ToF16(float32(s.NormFloat64())*0.002)) * levels.Scale
			for i := range b.Scales {
				b.Scales[i] = int8(s.Uint32())
			}
			for i := range 256 {
				b.Codes[i/8] |= uint64(s.Uint32()%levelsOf[p]) << (i % 8 * 8)
			}
		})
	}
}

// levelsOf is the number of levels of a packing.
var levelsOf = map[matrix.Packing]uint32{matrix.NL4K: 16, matrix.NL4S: 16, matrix.NL3K: 7}

// superblocks packs what fill sets each superblock to, in the order of rows.
func superblocks(p matrix.Packing, rows, cols int, fill func(s *grouped.Superblock, levels *matrix.Levels)) (*matrix.Matrix, error) {
	levels := grouped.LevelsIQ4
	switch p {
	case matrix.NL4S:
		levels = grouped.LevelsIQ3XXS
	case matrix.NL3K:
		levels = grouped.LevelsIQ2
	}
	all := make([]grouped.Superblock, rows*cols/256)
	for i := range all {
		fill(&all[i], levels)
	}
	return grouped.PackSuperblocks(levels, rows, cols, func(s *grouped.Superblock, r, u int) { *s = all[r*(cols/256)+u] })
}

// Extreme packs codes that are all at one end of their range.
func Extreme(t testing.TB, p matrix.Packing, rows, cols int, code byte) *matrix.Matrix {
	t.Helper()
	raw := func(block, size int, head ...byte) []byte {
		b := make([]byte, rows*cols/block*size)
		for i := range b {
			b[i] = code
		}
		for o := 0; o < len(b); o += size {
			copy(b[o:], head)
		}
		return b
	}
	one := []byte{0, 0x3c}
	var m *matrix.Matrix
	var err error
	switch p {
	case matrix.Q4:
		m, err = grouped.PackQ4_0(rows, cols, raw(32, 18, one...))
	case matrix.FP4:
		m, err = grouped.PackMXFP4(rows, cols, raw(32, 17, 128))
	case matrix.NVFP4:
		m, err = grouped.PackNVFP4(rows, cols, raw(64, 36, 0x30, 0x31, 0x01, 0x7e), 1)
	case matrix.NL4:
		m, err = grouped.PackIQ4_NL(rows, cols, raw(32, 18, one...))
	case matrix.NL4K, matrix.NL4S, matrix.NL3K:
		m, err = superblocks(p, rows, cols, func(s *grouped.Superblock, levels *matrix.Levels) {
			s.D = levels.Scale
			for i := range s.Scales {
				s.Scales[i] = []int8{-128, -128, 127, 127}[i%4]
			}
			for i := range 256 {
				c := uint64(code >> (i / 16 % 2 * 4) & 15)
				if p == matrix.NL3K {
					c = c>>3<<2 | 2 // 43 and -43
				}
				s.Codes[i/8] |= c << (i % 8 * 8)
			}
		})
	case matrix.Q8:
		m, err = grouped.PackQ8_0(rows, cols, raw(32, 34, one...))
	case matrix.Q4M:
		m, err = grouped.PackQ4_K(rows, cols, raw(256, 144, append(one, one...)...))
	case matrix.Q41:
		m, err = grouped.PackQ4_1(rows, cols, raw(32, 20, append(one, one...)...))
	case matrix.Q6:
		b := raw(256, 210)
		for o := 0; o < len(b); o += 210 {
			copy(b[o+208:], one)
			for i := range 16 {
				b[o+192+i] = []byte{0x80, 0x7f}[i%2]
			}
		}
		m, err = grouped.PackQ6_K(rows, cols, b)
	case matrix.Q1G128:
		m, err = grouped.PackQ1_0(rows, cols, raw(128, 18, one...))
	case matrix.Q2G64:
		m, err = grouped.PackQ2_0(rows, cols, raw(64, 18, one...))
	case matrix.Q2G128:
		m, err = grouped.PackPQ2_0(rows, cols, raw(128, 34, one...))
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

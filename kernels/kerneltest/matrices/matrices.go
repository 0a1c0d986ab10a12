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
	scale := func(b []byte) {
		binary.LittleEndian.PutUint16(b, vector.ToF16(float32(r.NormFloat64())*0.02))
	}
	blocks := func(block, size int, scales ...int) []byte {
		raw := make([]byte, rows*cols/block*size)
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		for o := 0; o < len(raw); o += size {
			for _, s := range scales {
				scale(raw[o+s:])
			}
		}
		return raw
	}
	var m *matrix.Matrix
	var err error
	switch p {
	case matrix.F32:
		w := make([]float32, rows*cols)
		for i := range w {
			w[i] = float32(r.NormFloat64())
		}
		m, err = dense.PackF32(rows, cols, w)
	case matrix.F16, matrix.BF16:
		raw := make([]byte, 2*rows*cols)
		for i := range rows * cols {
			f := float32(r.NormFloat64())
			h := vector.ToF16(f)
			if p == matrix.BF16 {
				h = vector.ToBF16(f)
			}
			binary.LittleEndian.PutUint16(raw[2*i:], h)
		}
		if p == matrix.F16 {
			m, err = dense.PackF16(rows, cols, raw)
		} else {
			m, err = dense.PackBF16(rows, cols, raw)
		}
	case matrix.Q4:
		m, err = grouped.PackQ4_0(rows, cols, blocks(32, 18, 0))
	case matrix.FP4:
		raw := blocks(32, 17)
		for o := 0; o < len(raw); o += 17 {
			raw[o] = byte(118 + r.IntN(8))
		}
		m, err = grouped.PackMXFP4(rows, cols, raw)
	case matrix.NVFP4:
		m, err = grouped.PackNVFP4(rows, cols, blocks(64, 36), 0.3)
	case matrix.NL4:
		m, err = grouped.PackIQ4_NL(rows, cols, blocks(32, 18, 0))
	case matrix.NL4K, matrix.NL4S, matrix.NL3K:
		m, err = superblocks(p, rows, cols, func(s *grouped.Superblock, levels *matrix.Levels) {
			s.D = vector.FromF16(vector.ToF16(float32(r.NormFloat64())*0.002)) * levels.Scale
			for i := range s.Scales {
				s.Scales[i] = int8(r.Uint32())
			}
			for i := range 256 {
				s.Codes[i/8] |= uint64(r.Uint32()%levelsOf[p]) << (i % 8 * 8)
			}
		})
	case matrix.Q8:
		m, err = grouped.PackQ8_0(rows, cols, blocks(32, 34, 0))
	case matrix.Q4M:
		m, err = grouped.PackQ4_K(rows, cols, blocks(256, 144, 0, 2))
	case matrix.Q41:
		m, err = grouped.PackQ4_1(rows, cols, blocks(32, 20, 0, 2))
	case matrix.Q6:
		m, err = grouped.PackQ6_K(rows, cols, blocks(256, 210, 208))
	case matrix.Q1G128:
		m, err = grouped.PackQ1_0(rows, cols, blocks(128, 18, 0))
	case matrix.Q2G64:
		m, err = grouped.PackQ2_0(rows, cols, blocks(64, 18, 0))
	case matrix.Q2G128:
		m, err = grouped.PackPQ2_0(rows, cols, blocks(128, 34, 0))
	}
	if err != nil {
		tb.Fatal(err)
	}
	return m
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

// Package tiling cuts a weight matrix into tiles that serve decode and prefill alike
// (T-MAN §4.1): DMA brings a tile as one piece, table lookup reads it in steps of a
// strip, and the tile unit reads what it unpacks to in steps of 32×32.
//
//	decode:  M_iter_d strips of 128 rows   × K_iter_d times K_lut columns
//	prefill: M_iter_p row tiles of 32 rows × K_iter_p column tiles of 32
//
// Search enumerates every tiling that Equations 1 to 4 and the layout allow, and
// chooses by the paper's three heuristics.
package tiling

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// What the instruction set and the layout fix.
const (
	Lookups     = 128 // rows of one lookup: bytes of a vector register (M_lookups)
	MMA         = 32  // rows and columns of a tile of the tile unit
	TableCols   = 16  // columns whose tables fill one register
	BlockCols   = 64  // columns of a block of the layout
	TableTile   = 256 // columns whose tables lie together
	LookupRegs  = 10  // what a lookup needs beside tables: indices, results, sums
	mostStrips  = 1 << 11
	mostColumns = 1 << 17
)

// Limits are the device's.
type Limits struct {
	Registers int // of vectors, in a thread (N_REG)
	Threads   int // with vector registers (N_THREAD)
	Buffers   int // of each kind and thread, so that stages overlap (N_STAGE)
	Memory    int // bytes of TCM that tiles and their results may have
	RowBytes  int // of results that a row of a tile has, in each thread
}

// Matrix is a matrix to be cut.
type Matrix struct {
	M, K  int // rows and columns, multiples of Lookups and TableTile
	Bits  int // of a weight
	Group int // columns that share a scale; K: one scale a row, which the host keeps
	// Offsets tells that groups have offsets too.
	Offsets bool
}

// Tiling is a way to cut a matrix.
type Tiling struct {
	KLut   int `json:"k_lut"` // columns whose tables are in registers
	MIterD int `json:"m_iter_d"`
	KIterD int `json:"k_iter_d"`
	MIterP int `json:"m_iter_p"`
	KIterP int `json:"k_iter_p"`
}

// Rows and Cols are the size of a tile.
func (t Tiling) Rows() int { return t.MIterD * Lookups }

// Cols returns the width of a tile.
func (t Tiling) Cols() int { return t.KIterD * t.KLut }

// Packed returns the bytes of a tile as DMA brings it: weights, scales, offsets.
func (t Tiling) Packed(m Matrix) int {
	n := t.Rows() * t.Cols() * m.Bits / 8
	if m.Group < m.K {
		numbers := 1
		if m.Offsets {
			numbers = 2
		}
		n += numbers * 2 * t.Rows() * max(1, t.Cols()/m.Group)
	}
	return n
}

// Unpacked returns the bytes of a tile in fp16.
func (t Tiling) Unpacked() int { return 2 * t.Rows() * t.Cols() }

// Tiles returns how many tiles a matrix has.
func (t Tiling) Tiles(m Matrix) int { return (m.M / t.Rows()) * (m.K / t.Cols()) }

// memory returns the left side of Equation 4, in bytes, and the results.
func (t Tiling) memory(m Matrix, l Limits) int {
	return l.Buffers*l.Threads*(t.Packed(m)+t.Unpacked()) + l.Threads*t.Rows()*l.RowBytes
}

// share returns the most strips that a thread has: rows of tiles are shared out whole.
func (t Tiling) share(m Matrix, l Limits) int { return up(m.M/t.Rows(), l.Threads) * t.MIterD }

func up(n, d int) int { return (n + d - 1) / d }

// Rule is a condition that a tiling must meet.
type Rule string

// The rules. Equations 2 and 3 hold by construction where a tile is a whole number of
// both kinds of steps.
const (
	Registers Rule = "Eqn 1: tables and a lookup fit the registers"
	Rows      Rule = "Eqn 2: whole strips and row tiles that divide M"
	Columns   Rule = "Eqn 3: whole table tiles and column tiles that divide K"
	OnChip    Rule = "Eqn 4: all buffers of all threads fit TCM"
	Parallel  Rule = "threads: none has a sixteenth more strips, in whole rows of tiles, than it must"
)

var rules = []Rule{Registers, Rows, Columns, OnChip, Parallel}

// Refusal counts the tilings that break a rule and none before it.
type Refusal struct {
	Rule  Rule `json:"rule"`
	Count int  `json:"count"`
}

// Result is the result of a search.
type Result struct {
	Matrix  Matrix    `json:"matrix"`
	Choice  Tiling    `json:"choice"`
	Legal   []Tiling  `json:"legal"` // best first
	Refused []Refusal `json:"refused"`
	Why     []string  `json:"why"` // the choice in words
}

// ErrMatrix says that a matrix cannot be cut.
var ErrMatrix = errors.New("tiling: bad matrix")

// Search enumerates the tilings of m with whole registers of tables, whole strips and
// whole blocks, and chooses.
func Search(m Matrix, l Limits) (Result, error) {
	r := Result{Matrix: m}
	if m.M < Lookups || m.K < TableTile || m.M%Lookups != 0 || m.K%TableTile != 0 || m.M/Lookups > mostStrips || m.K > mostColumns {
		return r, fmt.Errorf("%w: %d×%d; rows must be a multiple of %d, columns of %d", ErrMatrix, m.M, m.K, Lookups, TableTile)
	}
	if m.Bits < 1 || m.Bits > 16 || m.Group < 1 || m.Group > m.K {
		return r, fmt.Errorf("%w: %d bits in groups of %d", ErrMatrix, m.Bits, m.Group)
	}
	refused := map[Rule]int{}
	all := m.M / Lookups
	divisors := divisorsOf(all)
	for regs := 1; regs <= l.Registers; regs++ {
		iters := m.K / (regs * TableCols)
		if regs+LookupRegs > l.Registers {
			refused[Registers] += iters * all
			continue
		}
		refused[Rows] += iters * (all - len(divisors))
		for iter := 1; iter <= iters; iter++ {
			for _, strips := range divisors {
				t := Tiling{KLut: regs * TableCols, MIterD: strips, KIterD: iter}
				t.MIterP, t.KIterP = t.Rows()/MMA, t.Cols()/MMA
				if rule := t.broken(m, l); rule != "" {
					refused[rule]++
				} else {
					r.Legal = append(r.Legal, t)
				}
			}
		}
	}
	for _, rule := range rules {
		r.Refused = append(r.Refused, Refusal{rule, refused[rule]})
	}
	if len(r.Legal) == 0 {
		return r, fmt.Errorf("%w: no tiling of %d×%d in %d bits fits %d bytes", ErrMatrix, m.M, m.K, m.Bits, l.Memory)
	}
	slices.SortFunc(r.Legal, func(a, b Tiling) int { return -preference(a, b) })
	r.Choice = r.Legal[0]
	r.explain(l)
	return r, nil
}

func divisorsOf(n int) (list []int) {
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			list = append(list, d)
		}
	}
	return list
}

// preference compares by the three heuristics, one after the other.
func preference(a, b Tiling) int {
	return cmp.Or(
		cmp.Compare(a.KLut, b.KLut),     // more tables in registers: fewer sums written back
		cmp.Compare(a.MIterD, b.MIterD), // more rows: tables are reused
		cmp.Compare(a.KIterP, b.KIterP), // longer sums in the tile unit
	)
}

// broken returns the first rule that t breaks; empty: it is legal.
func (t Tiling) broken(m Matrix, l Limits) Rule {
	switch {
	case t.KLut/TableCols+LookupRegs > l.Registers:
		return Registers
	case (m.M/Lookups)%t.MIterD != 0:
		return Rows
	case TableTile%t.KLut != 0 || t.Cols()%BlockCols != 0 || m.K%t.Cols() != 0:
		return Columns
	case m.Group < m.K && t.Cols()%m.Group != 0 && m.Group%t.Cols() != 0:
		return Columns
	case t.memory(m, l) > l.Memory:
		return OnChip
	case 16*t.share(m, l) > 17*up(m.M/Lookups, l.Threads):
		return Parallel
	}
	return ""
}

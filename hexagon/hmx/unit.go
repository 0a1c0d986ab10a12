// Package hmx is the tile unit (HMX) in Go: products of 32×32 fp16 tiles, accumulated
// in float32 in the order of k, so that every machine computes the same bits; and of tiles of
// bytes, whose sums are exact.
package hmx

import (
	"sync/atomic"

	"github.com/lutra-lm/lutra/hexagon/hmx/tiles"
	"github.com/lutra-lm/lutra/kernels/pool"
)

const tile = tiles.Size // numbers

// Run is tiles to multiply: Act [rows][K] by Wgt [cols][K] of them.
type Run struct {
	Act, Wgt []uint16
	K        int
}

// Unit multiplies. One goroutine uses it at a time.
type Unit struct {
	pool    *pool.Pool // nil: the caller alone
	runs    []Run
	out     []uint16
	rows    int
	cols    int
	scale   float32
	wide    [][]float32   // of each run: Wgt as [cols][32·K][32]
	full    []atomic.Bool // a column of tiles has numbers in its upper half
	bytes   bytes         // operands of MulBytes
	scratch []scratch     // a worker's
	phase   phase
}

type phase int

const (
	widening phase = iota
	multiplying
	wideningBytes
	multiplyingBytes
)

type scratch struct {
	act []float32 // a row of Act's tiles
	acc tiles.Sums
	_   [64]byte
}

// New returns a unit that works on the pool's threads; without one, on the caller's.
func New(p *pool.Pool) *Unit {
	threads := 1
	if p != nil {
		threads = p.Threads()
	}
	return &Unit{pool: p, scratch: make([]scratch, threads)}
}

// Mul computes out [rows][cols] = fp16(scale · Σ of the runs' products).
func (u *Unit) Mul(out []uint16, runs []Run, rows, cols int, scale float32) {
	u.runs, u.out, u.rows, u.cols, u.scale = runs, out, rows, cols, scale
	for len(u.wide) < len(runs) {
		u.wide = append(u.wide, nil)
	}
	count := 0
	for i, r := range runs {
		if n := cols * r.K * tile; cap(u.wide[i]) < n {
			u.wide[i] = make([]float32, n)
		} else {
			u.wide[i] = u.wide[i][:n]
		}
		count += cols * r.K
	}
	if len(u.full) < cols {
		u.full = make([]atomic.Bool, cols)
	}
	for c := range cols {
		u.full[c].Store(false)
	}
	u.run(widening, (count+widenPart-1)/widenPart)
	u.run(multiplying, rows)
	u.runs, u.out = nil, nil
}

// widenPart is the number of tiles of weights that one part widens.
const widenPart = 16

func (u *Unit) run(p phase, parts int) {
	u.phase = p
	if u.pool != nil && parts > 1 {
		u.pool.Run(u, parts)
		return
	}
	for i := range parts {
		u.Do(0, i)
	}
}

// Do computes a part of a product, for the pool.
func (u *Unit) Do(worker, i int) {
	switch u.phase {
	case widening:
		u.widen(i*widenPart, (i+1)*widenPart)
	case multiplying:
		u.row(&u.scratch[worker], i)
	case wideningBytes:
		u.widenBytes(i*widenPart, (i+1)*widenPart)
	case multiplyingBytes:
		u.byteRow(&u.scratch[worker], i)
	}
}

// widen converts tiles [from, to) of all runs' weights.
func (u *Unit) widen(from, to int) {
	for i, r := range u.runs {
		n := u.cols * r.K
		for t := max(from, 0); t < min(to, n); t++ {
			wgt := (*[tile]uint16)(r.Wgt[t*tile:])
			tiles.WidenRows(u.wide[i][t*tile:][:tile], wgt[:])
			if full := &u.full[t/r.K]; !full.Load() && !tiles.HalfEmpty(wgt) {
				full.Store(true)
			}
		}
		from, to = from-n, to-n
	}
}

// row computes a row of the output's tiles.
func (u *Unit) row(s *scratch, r int) {
	n := 0
	for _, run := range u.runs {
		n += run.K * tile
	}
	if len(s.act) < n {
		s.act = make([]float32, n)
	}
	n = 0
	for _, run := range u.runs {
		tiles.Widen(s.act[n:][:run.K*tile], run.Act[r*run.K*tile:])
		n += run.K * tile
	}
	for c := range u.cols {
		s.acc = tiles.Sums{}
		act, columns := s.act, tiles.Side
		if !u.full[c].Load() {
			columns /= 2 // sums of zeros are zero
		}
		for i, run := range u.runs {
			s.acc.Multiply(act[:run.K*tile], u.wide[i][c*run.K*tile:][:run.K*tile], columns)
			act = act[run.K*tile:]
		}
		s.acc.Narrow((*[tile]uint16)(u.out[(r*u.cols+c)*tile:]), u.scale)
	}
}

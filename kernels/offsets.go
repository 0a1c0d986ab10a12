package kernels

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// shifted multiplies a matrix with offsets: the products of its codes, and those of the offsets
// with the sums of the columns that they are added to.
type shifted struct {
	codes, offsets Linear
	pool           *pool.Pool
	cols           int // that an offset is added to
	rows           int
}

// Mul sets y as Linear says.
func (l shifted) Mul(y []float32, x *Acts) {
	l.codes.Mul(y, x)
	s := x.sumsOf(l.pool, l.cols)
	s.part = cpu.Grow(s.part, x.N()*l.rows)
	l.offsets.Mul(s.part, &s.acts)
	s.what, s.to = addProducts, y[:len(s.part)]
	x.Run(l.pool, s, pool.Parts(len(s.part), addedAtOnce))
	s.to = nil
}

// sums are rows of the sums of some columns each of others, made once for all matrices that
// read these.
type sums struct {
	acts Acts
	cols int
	set  uint64    // Sets of the rows
	x    []float32 // [n][K/cols]

	// Of the Task under way.
	what sumsTask
	from *Acts
	part []float32 // products of offsets
	to   []float32 // what they are added to
}

type sumsTask uint8

const (
	sumColumns sumsTask = iota
	addProducts
)

// addedAtOnce is how many products are worth a call.
const addedAtOnce = 4096

// sumsOf returns the rows of sums of cols columns.
func (a *Acts) sumsOf(p *pool.Pool, cols int) *sums {
	if a.sums == nil {
		a.sums = new(sums)
	}
	s := a.sums
	if s.set == a.Sets() && s.cols == cols {
		return s
	}
	n, k := a.N(), a.K()/cols
	a.MakeRows(p)
	s.x = cpu.Grow(s.x, n*k)
	s.what, s.cols, s.from = sumColumns, cols, a
	a.Run(p, s, n)
	s.from = nil
	if a.Pinned() {
		s.acts.Pin(a.Worker())
	}
	s.acts.Set(s.x, n, k)
	s.set = a.Sets()
	return s
}

// Do sums the columns of row part, or adds a part of the products.
func (s *sums) Do(_, part int) {
	if s.what == addProducts {
		at, end := part*addedAtOnce, min(len(s.part), (part+1)*addedAtOnce)
		vector.AddInto(s.to[at:end], s.part[at:end])
		return
	}
	x := s.from.Row(part)
	to := s.x[part*(len(x)/s.cols):][:len(x)/s.cols]
	for i := range to {
		var a, b, c, d float32
		for v := x[i*s.cols : (i+1)*s.cols]; len(v) >= 4; v = v[4:] {
			a, b, c, d = a+v[0], b+v[1], c+v[2], d+v[3]
		}
		to[i] = a + b + (c + d)
	}
}

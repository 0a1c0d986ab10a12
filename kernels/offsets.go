package kernels

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// shifted multiplies a matrix with offsets: the products of its codes, and those of the offsets
// with the sums of the columns that they are added to. The sums are of the same int8 activations as
// the codes are multiplied with, so that a rounding error of an activation counts by the weight, which
// is small, and not by the distance of the weight from the middle of its codes.
type shifted struct {
	codes, offsets Linear
	pool           *pool.Pool
	limit          acts.Limit // of the activations that the codes are multiplied with
	cols           int        // that an offset is added to
	rows           int
}

// Mul sets y as Linear says.
func (l shifted) Mul(y []float32, x *Acts) {
	l.codes.Mul(y, x)
	s := x.sumsOf(l.pool, l.limit, l.cols)
	s.part = cpu.Grow(s.part, x.N()*l.rows)
	l.offsets.Mul(s.part, &s.acts)
	s.what, s.to = addProducts, y[:len(s.part)]
	x.Run(l.pool, s, pool.Parts(len(s.part), addedAtOnce))
	s.to = nil
}

// sums holds the sums of each cols columns of other rows, which all matrices that read these rows
// share.
type sums struct {
	acts  Acts
	limit acts.Limit
	cols  int
	set   uint64    // Sets of the rows
	x     []float32 // [n][K/cols]

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

// sumsOf returns the sums of each cols columns of the quantised rows.
func (a *Acts) sumsOf(p *pool.Pool, limit acts.Limit, cols int) *sums {
	if a.sums == nil {
		a.sums = new(sums)
	}
	s := a.sums
	if s.set == a.Sets() && s.cols == cols && s.limit == limit {
		return s
	}
	n, k := a.N(), a.K()/cols
	a.MakeGroups(p, limit)
	s.x = cpu.Grow(s.x, n*k)
	s.what, s.limit, s.cols, s.from = sumColumns, limit, cols, a
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
	each := len(s.x) / s.from.N()
	s.from.GroupSums(s.x[part*each:][:each], part, s.limit, s.cols)
}

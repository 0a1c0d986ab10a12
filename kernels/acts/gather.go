package acts

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// gathering is the Task that copies rows of other Rows, in the form that a product
// wants. A row keeps its codes and scales, so that its products have the bits that
// they have among the rows it was taken from.
type gathering struct {
	from *Rows   // nil: the rows were set
	rows []int32 // of from
	to   *Rows
	what gatherKind
	made bool      // the rows as they are
	x    []float32 // memory for them
}

type gatherKind uint8

const (
	gatherRows gatherKind = iota
	gatherCodes
	gatherGroups // Unlimited, and the groups of the other limits next
)

// Gather makes rows of from the current rows, in that order. Both lists are read
// until the next Set or Gather, and from must keep its rows so long. Quantised forms
// are copied from the forms of from, which are made if they are not there. Before
// several Rows gather from one at the same time, it must have them.
func (a *Rows) Gather(from *Rows, rows []int32) {
	a.n, a.k, a.x = len(rows), from.k, nil
	a.gather.from, a.gather.rows, a.gather.made = from, rows, false
	a.reset()
}

// MakeRows makes the rows readable as they are, unless that was done since Gather.
func (a *Rows) MakeRows(p *pool.Pool) {
	g := &a.gather
	if g.from == nil || g.made {
		return
	}
	g.x = cpu.Grow(g.x, a.n*a.k)
	a.x = g.x
	g.run(a, p, gatherRows)
	g.made = true
}

// gatheredRows is the number of rows that a part copies.
const gatheredRows = 16

// run copies the rows' form.
func (g *gathering) run(to *Rows, p *pool.Pool, what gatherKind) {
	switch g.to, g.what = to, what; what {
	case gatherRows:
		g.from.MakeRows(p)
	case gatherCodes:
		g.from.Codes(p)
	default:
		g.from.MakeGroups(p, Limit(what-gatherGroups))
	}
	to.Run(p, g, pool.Parts(len(g.rows), gatheredRows))
	g.to = nil
}

// Do copies the rows of a part.
func (g *gathering) Do(_, part int) {
	for i := part * gatheredRows; i < min(len(g.rows), (part+1)*gatheredRows); i++ {
		at := int(g.rows[i])
		switch g.what {
		case gatherRows:
			copy(g.to.Row(i), g.from.Row(at))
		case gatherCodes:
			from, to := &g.from.codes, &g.to.codes
			copy(to.Q[i*to.Stride:(i+1)*to.Stride], from.Q[at*from.Stride:])
			to.Scale[i], to.NegSum[i] = from.Scale[at], from.NegSum[at]
		default:
			size, limit := g.to.GroupStride(), Limit(g.what-gatherGroups)
			copy(g.to.Groups(limit).rec[i*size:(i+1)*size], g.from.Groups(limit).rec[at*size:])
		}
	}
}

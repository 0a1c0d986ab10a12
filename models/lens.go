package models

import (
	"github.com/lutra-lm/lutra/kernels/attention"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// lens is how the rows of a layer look at the keys before them.
type lens struct {
	scale  float32 // of scores
	limit  float32 // scores are drawn into (-limit, limit); 0: they are not
	window int     // keys that are seen, the row's own included; 0: all
}

// reaches tells whether a row sees a key ahead of position hi.
func (l *lens) reaches(rows []rowPos, hi int) bool {
	if l.window == 0 {
		return true
	}
	for i := range rows {
		if hi > rows[i].pos+1-l.window {
			return true
		}
	}
	return false
}

// unseen is the score of a key that has left a row's window: a number, for
// softmaxes take no row of infinities.
const unseen = -1e30

// forget begins anew the queries that have seen no key of their window yet. The
// next softmax would weigh what they have gathered with the smallest number
// rather than with zero, which can still tip the rounding of a sum.
func forget(soft []attention.Softmax, acc []float32, dim int) {
	for i := range soft {
		if soft[i].Max == unseen {
			soft[i] = attention.NewSoftmax()
			clear(acc[i*dim : (i+1)*dim])
		}
	}
}

// look finishes the scores of rows, with group queries each, for the keys from
// position lo on, of which query i sees the first n[i].
func (l *lens) look(scores []float32, ld, group int, rows []rowPos, n []int32, lo int) {
	if l.limit == 0 && l.window == 0 {
		return
	}
	for i := range len(rows) * group {
		x := scores[i*ld : i*ld+int(n[i])]
		if l.limit > 0 {
			vector.SoftCap(x, l.limit)
		}
		if l.window > 0 {
			gone := rows[i/group].pos + 1 - l.window - lo
			for k := range x[:min(len(x), max(0, gone))] {
				x[k] = unseen
			}
		}
	}
}

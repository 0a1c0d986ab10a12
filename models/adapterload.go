package models

import (
	"fmt"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/load"
)

// adapterLoader reads an adapter's tensors.
type adapterLoader struct {
	*load.Tensors
	strength func(tensor string, rank int) float32
	rank     int                    // the largest so far
	common   map[piece]load.Stacked // those that stand for all matrices of a target
}

// lowRanks reads what there is of a target: nil of matrices of which there is nothing, and of none.
func (l *adapterLoader) lowRanks(t *adapterSite) []*lowRank {
	list := make([]*lowRank, t.matrices)
	found := false
	for m := range list {
		list[m] = l.lowRank(t, m)
		found = found || list[m] != nil
	}
	if !found {
		return nil
	}
	return list
}

// lowRank reads what there is of matrix m of a target, nil: nothing.
func (l *adapterLoader) lowRank(t *adapterSite, m int) *lowRank {
	var downs []piece
	from, ranks, sum := map[string]int{}, map[string]int{}, 0
	for i := range t.rows {
		name, alone := l.nameOf(t, i, m)
		a := l.File().Tensor(name + downName)
		if _, seen := from[name]; seen || a == nil {
			continue
		}
		rank := 1
		if len(a.Dims) > 1 {
			rank = a.Dims[1]
		}
		if rank < 1 || rank > MaxRank {
			l.Fail("tensor %s has rank %d, want 1 to %d", a.Name, rank, MaxRank)
			return nil
		}
		downs = append(downs, l.piece(a.Name, t.cols, rank, 0, rank, t.among(alone), m))
		from[name], ranks[name] = sum, rank
		sum, l.rank = sum+rank, max(l.rank, rank)
	}
	if len(downs) == 0 || l.Err() != nil {
		return nil
	}
	low, to := &lowRank{down: l.stack(downs...)}, 0
	for i, r := range t.rows {
		name, alone := l.nameOf(t, i, m)
		if rank := ranks[name]; rank > 0 {
			of, lo := r.Of/t.matrices, r.Lo
			if alone {
				of, lo = r.N, 0
			}
			b := l.stack(l.piece(name+upName, rank, of, lo, lo+r.N, t.among(alone), m))
			low.up = append(low.up, upProduct{b: b, from: from[name], rank: rank, to: to, n: r.N, strength: l.strength(name, rank)})
		}
		to += r.N
	}
	return low
}

// nameOf returns what the adapter calls rows i of matrix m, and whether a tensor of that name has no
// others.
func (l *adapterLoader) nameOf(t *adapterSite, i, m int) (name string, alone bool) {
	if t.alone != nil {
		if name = fmt.Sprintf(t.alone[i], m); l.File().Tensor(name+downName) != nil {
			return name, true
		}
	}
	return t.rows[i].Tensor, false
}

// piece is rows [lo, hi) of a tensor of matrices [rows][cols].
type piece struct {
	name                 string
	cols, rows, matrices int
	lo, hi               int
}

// piece finds rows [lo, hi) of matrix m in a tensor that has one for each of so many, or one for all.
func (l *adapterLoader) piece(name string, cols, rows, lo, hi, matrices, m int) piece {
	if x := l.File().Tensor(name); x == nil || len(x.Dims) < 3 || x.Dims[2] == 1 {
		return piece{name, cols, rows, 1, lo, hi}
	}
	return piece{name, cols, rows, matrices, m*rows + lo, m*rows + hi}
}

// stack loads pieces. One that stands for many matrices is loaded once.
func (l *adapterLoader) stack(pieces ...piece) load.Stacked {
	common := len(pieces) == 1 && pieces[0].matrices == 1
	if s, ok := l.common[pieces[0]]; ok && common {
		return s
	}
	var ms []*load.Stored
	for _, p := range pieces {
		ms = append(ms, l.Rows(p.name, p.lo, p.hi, p.cols, p.rows, p.matrices))
	}
	s := l.Stack(ms...)
	if common {
		l.common[pieces[0]] = s
	}
	return s
}

// refuse fails for a tensor that no target has asked for.
func (l *adapterLoader) refuse(name string, model *gguf.File) {
	of, suffixed := strings.CutSuffix(name, downName)
	if !suffixed {
		of, suffixed = strings.CutSuffix(name, upName)
	}
	switch {
	case !suffixed:
		l.Fail("tensor %s: its name ends with neither %s nor %s", name, downName, upName)
	case model.Tensor(of) == nil && of != outputTensor:
		l.Fail("tensor %s: the model has no tensor %s", name, of)
	case l.File().Tensor(of+downName) != nil && l.File().Tensor(of+upName) == nil:
		l.Fail("tensor %s is missing", of+upName)
	case l.File().Tensor(of+downName) == nil:
		l.Fail("tensor %s is missing", of+downName)
	default:
		l.Fail("tensor %s: adapters of %s are not supported", name, of)
	}
}

package calibration

import (
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/hexagon/experts"
)

// overlapOf are the numbers of popular experts that sets are compared by.
var overlapOf = []int{4, 8, 16}

// overlaps compares each further set with the first.
func (c *Calibration) overlaps() (list []Overlap) {
	for i := range c.Sets[1:] {
		for _, k := range overlapOf {
			if k < c.Shape.Experts {
				list = append(list, newOverlap(&c.Sets[0], &c.Sets[1+i], k))
			}
		}
	}
	return list
}

func newOverlap(a, b *Set, k int) Overlap {
	o := Overlap{First: a.Name, Other: b.Name, K: k}
	covered, all := int64(0), int64(0)
	for i := range a.Layers {
		top, other := a.Layers[i].Order[:k], b.Layers[i].Order[:k]
		hits := 0
		for _, e := range top {
			if slices.Contains(other, e) {
				hits++
			}
			covered += b.Layers[i].Tokens[e]
		}
		for _, n := range b.Layers[i].Tokens {
			all += n
		}
		share := float64(hits) / float64(k)
		o.Layers = append(o.Layers, share)
		o.Mean += share / float64(len(a.Layers))
	}
	o.Covered = float64(covered) / float64(all)
	sorted := slices.Sorted(slices.Values(o.Layers))
	n := len(sorted)
	o.Median = (sorted[(n-1)/2] + sorted[n/2]) / 2
	return o
}

// check reports an overlap that is none of a calibration.
func (o *Overlap) check(shape experts.Shape) error {
	if len(o.First) > experts.MostName || len(o.Other) > experts.MostName || o.K < 1 || o.K > shape.Experts || len(o.Layers) != shape.Layers {
		return fmt.Errorf("an overlap of the %d most popular experts of %d layers", o.K, len(o.Layers))
	}
	for _, x := range append([]float64{o.Median, o.Mean, o.Covered}, o.Layers...) {
		if !(x >= 0 && x <= 1+1e-9) {
			return fmt.Errorf("an overlap of %v", x)
		}
	}
	return nil
}

// Covered returns the share of a layer's choices that fall on its k most popular experts.
func (l *Loads) Covered(k int) float64 {
	covered, all := int64(0), int64(0)
	for i, e := range l.Order {
		if i < k {
			covered += l.Tokens[e]
		}
		all += l.Tokens[e]
	}
	return float64(covered) / float64(max(1, all))
}

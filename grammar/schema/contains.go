package schema

import (
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// The bounds of counting items.
const (
	mostCounted = 4       // demands at once
	mostCounts  = 1 << 14 // combinations of places and counts
	mostPlaces  = 1 << 12 // items with schemas of their own
	countBits   = 15
)

// count works out the items of a branch that contains counts.
func (c *graph) count(b *branch) error {
	s := b.shape
	k := &counting{all: s.contained, done: map[[2]int]bool{}}
	if len(k.all) > mostCounted {
		return fmt.Errorf("contains: more than %d at once are not supported", mostCounted)
	}
	lengths := b.longest
	if lengths == regex.Infinite {
		lengths = max(len(b.prefix), b.fewest)
	}
	combinations := lengths + 1
	for _, d := range k.all {
		if combinations *= d.cap() + 1; combinations > mostCounts {
			return fmt.Errorf("contains: so many items are not counted")
		}
	}
	for index := range len(b.prefix) + 1 {
		nodes := make([]int, 1<<len(k.all))
		for set := range nodes {
			all, possible := slices.Clone(s.item(index)), true
			for i, d := range k.all {
				switch {
				case set>>i&1 != 0:
					all, possible = append(all, d.sub), possible && index >= d.from
				case d.most != regex.Infinite && index >= d.from:
					all = append(all, sub{d.schema, !d.negated})
				}
			}
			nodes[set] = -1
			if possible {
				var err error
				if nodes[set], err = c.node(all); err != nil {
					return err
				}
			}
		}
		k.nodes = append(k.nodes, nodes)
	}
	b.counting = k
	return nil
}

// enough reports whether the list may end with such counts.
func (k *counting) enough(counts int) bool {
	for i, d := range k.all {
		if counts>>(i*countBits)&(1<<countBits-1) < d.least {
			return false
		}
	}
	return true
}

// pick is an item: its node, and the counts with it.
type pick struct{ node, counts int }

// picks returns the items that may come next, so that the list can be completed.
func (c *graph) picks(b *branch, index, counts int) []pick {
	k := b.counting
	if most := c.longestPossible(b); most != regex.Infinite && index >= most {
		return nil
	}
	var out []pick
	for set, node := range k.nodes[min(index, len(b.prefix))] {
		if node < 0 || !c.nodes[node].possible {
			continue
		}
		next, ok := counts, true
		for i, d := range k.all {
			if set>>i&1 == 0 {
				continue
			}
			switch n := counts >> (i * countBits) & (1<<countBits - 1); {
			case n < d.cap():
				next += 1 << (i * countBits)
			case d.most != regex.Infinite:
				ok = false
			}
		}
		if ok && c.completes(b, c.counted(b, index+1), next) {
			out = append(out, pick{node, next})
		}
	}
	return out
}

// completes reports whether a list of that many items, with these counts, can be completed.
func (c *graph) completes(b *branch, index, counts int) bool {
	k := b.counting
	if index >= b.fewest && k.enough(counts) {
		return true
	}
	at := [2]int{index, counts}
	done, known := k.done[at]
	if !known {
		k.done[at] = false // one that changes nothing does not help
		done = len(c.picks(b, index, counts)) > 0
		k.done[at] = done
	}
	return done
}

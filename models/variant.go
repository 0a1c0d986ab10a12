package models

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Use is an adapter at a scale.
type Use struct {
	Adapter *Adapter
	Scale   float32
}

// Variant is a model with some of its adapters, each at a scale. nil is the model as it is.
type Variant struct {
	Uses []Use // in the order in which their products are added
	// Root is positive, and another one for each variant of a model: keys and values of
	// one are not those of another.
	Root  int32
	graph *decoder
}

// KVRoot returns Root; 0 of nil.
func (v *Variant) KVRoot() int32 {
	if v == nil {
		return 0
	}
	return v.Root
}

// variants finds those of a model again: equal uses are one variant.
type variants struct {
	mu   sync.Mutex
	by   map[string]*Variant // their uses
	next int32
}

// maxVariants bounds those that are known. When there are more, all are forgotten: what caches
// hold of them is not found again.
const maxVariants = 1024

// Variant returns the model with those adapters; nil: none has a scale but 0. Any goroutine may
// call it. Errors: ErrAdapter.
func (b *Bundle) Variant(uses ...Use) (*Variant, error) {
	uses = slices.DeleteFunc(slices.Clone(uses), func(u Use) bool { return u.Scale == 0 })
	if len(uses) == 0 {
		return nil, nil
	}
	graph, known := b.exec.graph, &b.exec.known
	if err := checkScales(graph, uses); err != nil {
		return nil, err
	}
	slices.SortFunc(uses, func(x, y Use) int { return cmp.Compare(x.Adapter.number, y.Adapter.number) })
	key := ""
	for _, u := range uses {
		key += fmt.Sprintf("%d %x ", u.Adapter.number, math.Float32bits(u.Scale))
	}
	known.mu.Lock()
	defer known.mu.Unlock()
	if v := known.by[key]; v != nil {
		return v, nil
	}
	if known.next == math.MaxInt32-1 {
		return nil, fmt.Errorf("%w: there were %d variants of it", ErrAdapter, known.next)
	}
	if known.by == nil || len(known.by) == maxVariants {
		known.by = map[string]*Variant{}
	}
	known.next++
	v := &Variant{Uses: uses, Root: known.next, graph: graph}
	known.by[key] = v
	return v, nil
}

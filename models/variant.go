package models

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lutra-lm/lutra/models/kv"
)

// Use is an adapter at a scale.
type Use struct {
	Adapter *Adapter
	Scale   float32
}

// Variant is a model with some of its adapters, each at a scale. nil is the model as it is.
type Variant struct {
	Uses  []Use   // in the order in which their products are added
	Root  kv.Root // variants share no keys and values
	graph *decoder
}

// KVRoot returns Root; nil of nil.
func (v *Variant) KVRoot() *kv.Root {
	if v == nil {
		return nil
	}
	return &v.Root
}

// mixID is added to the ID of variants that are not one adapter at its own scale.
const mixID = 1 << 30

// newRoot returns the root of a variant. One adapter at its own scale goes by its name; others go by a hash of
// names and scales, which is the same in every process.
func newRoot(number int32, uses []Use) kv.Root {
	digest := func(ctx context.Context) (string, error) { return digestOf(ctx, uses) }
	if a := uses[0].Adapter; len(uses) == 1 && uses[0].Scale == a.Scale {
		return kv.Root{Number: number, ID: int(a.ID), Name: a.Name, Digest: digest}
	}
	var parts []string
	for _, u := range uses {
		parts = append(parts, u.Adapter.Name+"="+strconv.FormatFloat(float64(u.Scale), 'g', -1, 32))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "+")))
	return kv.Root{Number: number, ID: mixID | int(binary.BigEndian.Uint32(sum[:])>>2), Name: hex.EncodeToString(sum[:8]), Digest: digest}
}

// digestOf identifies uses by the contents of their files, in the order in which products are added.
func digestOf(ctx context.Context, uses []Use) (text string, err error) {
	for _, u := range uses {
		sum, err := u.Adapter.Identity.Digest(ctx, func(ctx context.Context) (func(), error) { return func() {}, context.Cause(ctx) })
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf("%s %x ", sum, math.Float32bits(u.Scale))
	}
	return text, nil
}

// variants finds a variant again: equal uses are one variant.
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
	slices.SortFunc(uses, func(x, y Use) int { return cmp.Compare(x.Adapter.ID, y.Adapter.ID) })
	key := ""
	for _, u := range uses {
		key += fmt.Sprintf("%d %x ", u.Adapter.ID, math.Float32bits(u.Scale))
	}
	known.mu.Lock()
	defer known.mu.Unlock()
	if v := known.by[key]; v != nil {
		return v, nil
	}
	if known.next == kv.MaxRoot {
		return nil, fmt.Errorf("%w: there were %d variants of it", ErrAdapter, known.next)
	}
	if known.by == nil || len(known.by) == maxVariants {
		known.by = map[string]*Variant{}
	}
	known.next++
	v := &Variant{Uses: uses, Root: newRoot(known.next, uses), graph: graph}
	known.by[key] = v
	return v, nil
}

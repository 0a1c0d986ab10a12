package models

import (
	"errors"
	"fmt"

	"github.com/lutra-lm/lutra/models/kv"
)

// ErrBatch says that a batch cannot be computed as it stands. Nothing has been
// written when Forward returns it.
var ErrBatch = errors.New("models: invalid batch")

// check reports ErrBatch for a batch that a model of shape c cannot compute with cache, or whose
// sequences are longer than context.
func (c *Config) check(b *Batch, cache *kv.Cache, graph *decoder, context int) error {
	if len(b.Positions) != len(b.Tokens) {
		return fmt.Errorf("%w: %d positions for %d tokens", ErrBatch, len(b.Positions), len(b.Tokens))
	}
	if have, want := cache.Shape(), c.KV(); have != want {
		return fmt.Errorf("%w: KV cache of %d layers of %d heads of %d and states of %d for a model of %d layers of %d of %d and states of %d", ErrBatch,
			have.Layers, have.Heads, have.HeadDim, have.State, want.Layers, want.Heads, want.HeadDim, want.State)
	}
	for i, t := range b.Tokens {
		if t < 0 || int(t) >= c.Vocab {
			return fmt.Errorf("%w: token %d at %d is outside the vocabulary of %d", ErrBatch, t, i, c.Vocab)
		}
	}
	end := 0
	for i := range b.Spans {
		sp := &b.Spans[i]
		if sp.Start != end || sp.End <= sp.Start || sp.End > len(b.Tokens) || sp.Out < 0 || sp.Out > sp.End-sp.Start {
			return fmt.Errorf("%w: span %d is [%d, %d) with %d outputs, after %d of %d tokens", ErrBatch, i, sp.Start, sp.End, sp.Out, end, len(b.Tokens))
		}
		if sp.Variant != nil && sp.Variant.graph != graph {
			return fmt.Errorf("%w: span %d is of a variant of another model", ErrBatch, i)
		}
		end = sp.End
		if err := c.checkPositions(sp, b.Positions[sp.Start:sp.End], cache, context); err != nil {
			return fmt.Errorf("%w: span %d %w", ErrBatch, i, err)
		}
	}
	if end != len(b.Tokens) {
		return fmt.Errorf("%w: spans cover %d of %d tokens", ErrBatch, end, len(b.Tokens))
	}
	return nil
}

// checkPositions verifies that the keys and values of a span get positions pos of their own.
func (c *Config) checkPositions(sp *Span, pos []int32, cache *kv.Cache, context int) error {
	if sp.KV == nil || !sp.KV.In(cache) {
		return errors.New("is of another KV cache")
	}
	first := int(pos[0])
	for i, p := range pos {
		if p < 0 || int(p) != first+i {
			return fmt.Errorf("has position %d at %d", p, i)
		}
	}
	last := first + len(pos) - 1
	if last >= context {
		return fmt.Errorf("reaches position %d, beyond the context of %d", last, context)
	}
	if c.Bidirectional && (first != 0 || last+1 != sp.KV.Len()) {
		return fmt.Errorf("is [%d, %d] of a sequence of %d, which must be whole", first, last, sp.KV.Len())
	}
	if last >= sp.KV.Len() {
		return fmt.Errorf("reaches position %d of a KV sequence of %d", last, sp.KV.Len())
	}
	if at, shared := sp.KV.FirstShared(first, last); shared {
		return fmt.Errorf("writes to position %d on, in a block that is shared", at)
	}
	if at, own := sp.KV.StateAt(); c.State > 0 && (at != first || !own) {
		return fmt.Errorf("begins at position %d, where the recurrent state is that of %d tokens, shared: %t", first, at, !own)
	}
	return nil
}

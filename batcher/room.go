package batcher

import "github.com/lutra-lm/lutra/models/kv"

// room measures what sequences take of a cache.
type room struct {
	blocks    int
	states    int // recurrent states, of models that have them
	residuals int // of blocks that are written, of caches with 4 bits
}

// freeRoom returns what Grow can still obtain.
func freeRoom(c *kv.Cache) room { return room{c.Free(), c.FreeStates(), c.FreeResiduals()} }

// needs returns what s takes when it grows by n tokens, a step's at a time: residuals are given back after each.
func needs(s *kv.Sequence, n int) room { return room{s.Need(n), s.NeedState(), s.NeedResidual()} }

// stepRoom returns what the prompts of a step take besides what each sequence needs.
func stepRoom(c *kv.Cache, stepTokens int) (r room) {
	if scarce(c) {
		r.residuals = StepResiduals(stepTokens, c.BlockLen()) - 1
	}
	return r
}

func (r room) plus(o room) room {
	return room{r.blocks + o.blocks, r.states + o.states, r.residuals + o.residuals}
}

// within tells whether r is no more than o.
func (r room) within(o room) bool {
	return r.blocks <= o.blocks && r.states <= o.states && r.residuals <= o.residuals
}

package batcher

import "github.com/lutra-lm/lutra/models/kv"

// room measures what sequences take of a cache.
type room struct {
	blocks int
	states int // recurrent states, of models that have them
}

// freeRoom returns what Grow can still obtain.
func freeRoom(c *kv.Cache) room { return room{c.Free(), c.FreeStates()} }

// needs returns what s takes when it grows by n tokens.
func needs(s *kv.Sequence, n int) room { return room{s.Need(n), s.NeedState()} }

func (r room) plus(o room) room { return room{r.blocks + o.blocks, r.states + o.states} }

// within tells whether r is no more than o.
func (r room) within(o room) bool { return r.blocks <= o.blocks && r.states <= o.states }

package batcher

import (
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/batcher/schedule"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/kv/offload"
)

// task holds what the step loop knows of a sequence.
//
//	        settle          admit          deliver, settle
//	parked ───────▶ waiting ─────▶ active ─────────────────▶ idle
//	   ▲               ▲             │ preempt     settle     │ │
//	   │               └─────────────┘ ◀──────────────────────┘ │
//	   └───────────────────────── evict ◀───────────────────────┘
type task struct {
	demand  schedule.Demand // what the caller waits for; Computed == Target: nothing
	kv      *kv.Sequence    // demand.Computed is its Len between steps; nil: no blocks, 0 computed
	list    list
	seen    uint64 // the epoch that demand was made of
	reached int    // the most positions that were ever computed
	begun   bool
	tried   int // admission.freed when there were too few blocks to admit it

	leader *task // in the step under way: who is computed in its place
	span   int   // in the step under way: a leader's span, or -1

	restore restore
	chain   offload.Chain // what of it is in files
	forked  bool          // its like are many, and are not kept

	hash       tokenHash
	drafts     drafts
	constraint constraint
	flush      flushState
}

// list says which list a sequence is in.
type list uint8

const (
	parked  list = iota // no blocks, no work
	waiting             // admission.waiting; of those whose blocks are being read these are there
	active              // admission.active
	idle                // admission.idle
	retired             // closed, blocks given back
)

// flushState says when a sequence's reader is woken.
type flushState struct {
	woken     time.Time // when the reader was, last
	unflushed bool      // it is among delivery.unflushed
}

// cut drops computed positions from n on, and of a model with recurrent layers those
// after the last checkpoint before n: they are computed again.
func (t *task) cut(n int) {
	t.kv.Truncate(n)
	t.demand.Computed = t.kv.Len()
}

// copyFrom takes over what leader has computed.
func (t *task) copyFrom(leader *task) {
	t.kv.Become(leader.kv)
	t.demand.Computed = leader.demand.Computed
}

// seal offers what was computed of tokens to the prefix cache, unless it depends on what
// was computed with it.
func (t *task) seal(tokens []int32) {
	switch {
	case t.kv == nil:
	case t.demand.Whole:
		t.kv.Settle()
	default:
		t.kv.Seal(tokens)
	}
}

// prefix returns the first tokens, which the prefix cache may supply.
func (t *task) prefix(tokens []int32) []int32 {
	if t.demand.Whole {
		return nil
	}
	return tokens[:min(t.demand.Target, t.demand.LogitsFrom)]
}

// common returns the length of the longest common prefix.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// restore notes the progress of reading a sequence's prefix from files.
type restore struct {
	lookup  *offload.Lookup // nil: it was not asked for
	tokens  []int32         // that it was asked for
	loading bool            // its blocks are being filled
	failed  int             // readings that have not given what was found
}

// forget has the caller's new tokens looked for.
func (r *restore) forget() {
	if r.lookup != nil {
		r.lookup.Cancel()
	}
	*r = restore{}
}

// tokenHash is a hash of a sequence's first tokens.
type tokenHash struct {
	sum    uint64
	length int // how many tokens these are
}

// extend makes the hash cover the first n tokens.
func (h *tokenHash) extend(tokens []int32, n int) {
	h.reset(n)
	for ; h.length < n; h.length++ {
		h.sum = sampling.Mix(h.sum + uint64(tokens[h.length]))
	}
}

// reset begins the hash anew when tokens from n on are others by now.
func (h *tokenHash) reset(n int) {
	if n < h.length {
		*h = tokenHash{}
	}
}

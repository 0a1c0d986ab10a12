package batcher

import "github.com/lutra-lm/lutra/models/kv/offload"

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

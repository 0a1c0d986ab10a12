package batcher

import "github.com/lutra-lm/lutra/batcher/sampling"

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

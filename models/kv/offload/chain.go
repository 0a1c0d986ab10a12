package offload

import (
	"crypto/sha256"
	"encoding/binary"
)

// Hash is a SHA-256.
type Hash [sha256.Size]byte

// next returns the hash of a prefix that block follows after one of hash h.
func (h Hash) next(block []int32) Hash {
	data := append(make([]byte, 0, len(h)+4*len(block)), h[:]...)
	for _, t := range block {
		data = binary.LittleEndian.AppendUint32(data, uint32(t))
	}
	return sha256.Sum256(data)
}

// Chain notes for a sequence how much of it has been offered to a Store. The zero Chain is of a new one.
type Chain struct {
	hashes []Hash // of the prefixes that end with each block
	saved  int    // blocks of whole chunks that are in files, or on their way
	state  int    // tokens before the last recurrent state that is
	length int    // of a block
}

// Cut says that the tokens from n on have changed.
func (c *Chain) Cut(n int) {
	if c.length == 0 || n >= c.length*len(c.hashes) {
		return
	}
	blocks := n / c.length
	c.hashes = c.hashes[:blocks]
	c.saved, c.state = min(c.saved, blocks), min(c.state, blocks*c.length)
}

// extend hashes the first blocks of tokens.
func (c *Chain) extend(tokens []int32, blocks, length int) {
	c.length = length
	var last Hash
	if n := len(c.hashes); n > 0 {
		last = c.hashes[n-1]
	}
	for n := len(c.hashes); n < blocks; n++ {
		last = last.next(tokens[n*length : (n+1)*length])
		c.hashes = append(c.hashes, last)
	}
}

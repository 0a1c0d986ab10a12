package models

import "errors"

// ErrNoBlocks says that the cache has no free or evictable block left.
var ErrNoBlocks = errors.New("models: out of KV blocks")

// KVType is the number format of cached keys and values.
type KVType uint8

// The KV formats.
const (
	KVF16  KVType = iota // IEEE half
	KVInt8               // int8 with one float32 scale a head and token
)

// KVOptions sizes a cache.
type KVOptions struct {
	Type     KVType
	BlockLen int // tokens a block
	Blocks   int // blocks in the pool
}

// KVCache is a paged pool of keys and values, shared by all sequences. Full
// blocks are indexed by their token prefix, so a new sequence starts with the
// longest prefix any earlier one left behind. Owned by one goroutine.
type KVCache struct{ opt KVOptions }

// NewKVCache makes a cache for models of cfg's shape.
func NewKVCache(cfg Config, opt KVOptions) (*KVCache, error) { panic("to be written") }

// Open starts a sequence with the longest cached prefix of tokens; its Len
// tells how many of them need no computing. Pass all but the last token when
// the last one's logits are wanted.
func (c *KVCache) Open(tokens []int32) *KVSeq { panic("to be written") }

// Free is the number of blocks that Grow can still obtain: free ones and
// indexed ones that no sequence holds.
func (c *KVCache) Free() int { panic("to be written") }

// Blocks is the size of the pool; BlockLen the tokens a block holds.
func (c *KVCache) Blocks() int   { return c.opt.Blocks }
func (c *KVCache) BlockLen() int { return c.opt.BlockLen }

// Check verifies that every block is free, indexed or referenced exactly as
// counted. It is for tests and idle moments.
func (c *KVCache) Check() error { panic("to be written") }

// KVSeq is one sequence's view of the cache: a list of blocks.
type KVSeq struct{}

// Len is the number of positions the sequence holds.
func (s *KVSeq) Len() int { panic("to be written") }

// Need is the number of blocks that Grow(n) would take from the pool, the
// copy of a shared last block included.
func (s *KVSeq) Need(n int) int { panic("to be written") }

// Grow adds n positions, copying the last block first when a fork shares it.
// On ErrNoBlocks nothing has changed.
func (s *KVSeq) Grow(n int) error { panic("to be written") }

// Seal says which tokens the positions hold (tokens[i] at position i, for all
// Len positions, all computed), so that full blocks enter the prefix index.
func (s *KVSeq) Seal(tokens []int32) { panic("to be written") }

// Fork is a second sequence that shares every block.
func (s *KVSeq) Fork() *KVSeq { panic("to be written") }

// Truncate drops positions from n on.
func (s *KVSeq) Truncate(n int) { panic("to be written") }

// Release gives all blocks back; indexed ones stay cached until needed.
// The sequence must not be used afterwards.
func (s *KVSeq) Release() { panic("to be written") }

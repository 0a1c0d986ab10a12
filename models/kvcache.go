package models

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/cpu"
)

// ErrNoBlocks says that the cache has no free or evictable block left.
var ErrNoBlocks = errors.New("models: out of KV blocks")

// KVType is the number format of cached keys and values.
type KVType uint8

// The KV formats.
const (
	KVF16  KVType = iota // IEEE half
	KVInt8               // int8 with one float32 scale a head and token
	KVF32                // single precision, for reference runs
)

var kvTypeNames = [...]string{"f16", "int8", "f32"}

// String gives the name used in the configuration.
func (t KVType) String() string {
	if int(t) < len(kvTypeNames) {
		return kvTypeNames[t]
	}
	return fmt.Sprintf("KVType(%d)", uint8(t))
}

// ParseKVType reads "f16", "int8" or "f32".
func ParseKVType(name string) (KVType, error) {
	for i, n := range kvTypeNames {
		if n == name {
			return KVType(i), nil
		}
	}
	return 0, fmt.Errorf("models: unknown KV type %q (have %v)", name, kvTypeNames)
}

// KVOptions sizes a cache.
type KVOptions struct {
	Type     KVType
	BlockLen int  // tokens a block
	Blocks   int  // blocks in the pool
	Cold     bool // Open finds nothing, so that every prompt is computed
}

// KVStats counts what a cache holds now and what it did since it was made.
type KVStats struct {
	Blocks, Free, Cached   int   // pool size; blocks Grow can obtain; those of them that are indexed
	Queries                int64 // calls of Open
	QueryTokens, HitTokens int64 // tokens asked for by Open, and found
	Evictions, Copies      int64 // indexed blocks given to others; copies on write
}

// KVCache is a paged pool of keys and values, shared by all sequences. Full
// blocks are indexed by their token prefix, so a new sequence starts with the
// longest prefix any earlier one left behind. Owned by one goroutine.
//
//	free ──Grow──▶ referenced ──Seal──▶ referenced + indexed
//	 ▲               │ Release              │ Release
//	 └───────────────┘                      ▼
//	 └──────────── evicted, oldest first ── cached (indexed, no reference)
//
// Invariants (see Check): a block that is referenced twice or indexed is never
// written; who references an indexed block references its whole prefix, hence
// prefixes are younger than their continuations in the eviction order and no
// indexed block ever loses its parent.
type KVCache struct {
	opt    KVOptions
	heads  int // KV heads
	dim    int // head dim
	layers []kvLayer

	blocks []kvBlock
	tokens []int32 // [Blocks][BlockLen], what indexed blocks hold
	free   []int32 // stack of blocks that hold nothing
	index  kvIndex
	stats  KVStats
	front  kvFront
	memory *cpu.Arena // of the layers and tokens; nil: the heap
}

// kvBlock is the bookkeeping of one block.
type kvBlock struct {
	refs    int32
	indexed bool
	parent  int32  // indexed: the block of the tokens before, or none
	sons    int32  // indexed: blocks whose parent this is
	hash    uint64 // indexed: key in the index
	twin    int32  // indexed: next block with the same hash, or none
	older   int32  // cached: neighbours in eviction order, or none
	younger int32
}

// none stands for "no block".
const none = int32(-1)

// NewKVCache makes a cache for models of cfg's shape. Memory is reserved at
// once, outside the heap, and found by the system when blocks are committed or
// first written. It reports kernels.ErrMemory where there is none. The caller
// closes the cache.
func NewKVCache(cfg Config, opt KVOptions) (*KVCache, error) {
	if cfg.Layers < 1 || cfg.KVHeads < 1 || cfg.HeadDim < 1 {
		return nil, fmt.Errorf("models: KV cache for %d layers of %d heads of %d", cfg.Layers, cfg.KVHeads, cfg.HeadDim)
	}
	if opt.BlockLen < 1 || opt.BlockLen > 1<<16 || opt.Blocks < 1 || opt.Blocks > math.MaxInt32 {
		return nil, fmt.Errorf("models: KV cache of %d blocks of %d tokens", opt.Blocks, opt.BlockLen)
	}
	if int(opt.Type) >= len(kvTypeNames) {
		return nil, fmt.Errorf("models: unknown KV type %d", opt.Type)
	}
	per := KVBytesPerBlock(cfg, opt)
	if per < 1 || int64(opt.Blocks) > min(maxKVBytes, math.MaxInt)/per || int64(opt.Blocks)*int64(cfg.KVHeads)*int64(wholeGroups(opt.BlockLen)) > math.MaxInt32 {
		return nil, fmt.Errorf("models: KV cache of %d blocks of %d bytes is beyond %d bytes", opt.Blocks, per, int64(maxKVBytes))
	}
	c := &KVCache{opt: opt, heads: cfg.KVHeads, dim: cfg.HeadDim, layers: make([]kvLayer, cfg.Layers)}
	if err := c.reserve(per * int64(opt.Blocks)); err != nil {
		return nil, errors.Join(fmt.Errorf("models: KV cache of %d blocks of %d bytes: %w", opt.Blocks, per, err), c.Close())
	}
	c.blocks, c.free = make([]kvBlock, opt.Blocks), make([]int32, opt.Blocks)
	for i := range c.free {
		c.free[i] = int32(opt.Blocks - 1 - i) // low numbers go first
	}
	c.index = kvIndex{seed: maphash.MakeSeed(), mask: math.MaxUint64, first: map[uint64]int32{}, oldest: none, youngest: none}
	c.front.moved = make(chan struct{}, 1)
	return c, nil
}

// maxKVBytes bounds a pool: nothing sane reaches it, and sizes below it do not overflow.
const maxKVBytes = 1 << 46

// smallCache is the size below which a cache is not worth memory of its own.
const smallCache = 1 << 20

// reserve makes the arrays, which are about so many bytes.
func (c *KVCache) reserve(bytes int64) error {
	if bytes >= smallCache {
		c.memory = new(cpu.Arena)
		if err := c.memory.Reserve(int(bytes)); err != nil {
			return err
		}
	}
	err := room(c.memory, &c.tokens, c.opt.Blocks*c.opt.BlockLen)
	for i := 0; i < len(c.layers) && err == nil; i++ {
		c.layers[i], err = newKVLayer(c.memory, c.opt.Type, c.opt.Blocks*c.heads, c.opt.BlockLen, c.dim)
	}
	return err
}

// Close gives the memory back. The cache and its sequences must not be used
// afterwards.
func (c *KVCache) Close() error {
	if c.memory == nil {
		return nil
	}
	return c.memory.Free()
}

// KVBytesPerBlock is the memory that one block takes: keys and values of all
// layers with their scales, and what the cache and a sequence note of it.
func KVBytesPerBlock(cfg Config, opt KVOptions) int64 {
	return 2*int64(cfg.Layers)*kvArrayBytes(cfg, opt) + kvNotes + 4*int64(opt.BlockLen)
}

// kvNotes is what is noted of a block besides its tokens: a kvBlock, a place in
// the list of free blocks, in the index (half of whose table may be empty) and in
// the sequence that holds it.
const kvNotes = int64(unsafe.Sizeof(kvBlock{})) + 4 + 40 + 4

// kvArrayBytes is the memory of the keys, or the values, of a block in one layer.
func kvArrayBytes(cfg Config, opt KVOptions) int64 {
	vec := int64(cfg.HeadDim)
	switch opt.Type {
	case KVF16:
		vec *= 2
	case KVInt8:
		vec += 4
	case KVF32:
		vec *= 4
	}
	return vec * int64(wholeGroups(opt.BlockLen)) * int64(cfg.KVHeads)
}

// Free is the number of blocks that Grow can still obtain: free ones and
// indexed ones that no sequence holds.
func (c *KVCache) Free() int { return len(c.free) + c.index.cached }

// Blocks is the size of the pool.
func (c *KVCache) Blocks() int { return c.opt.Blocks }

// BlockLen is the number of tokens a block holds.
func (c *KVCache) BlockLen() int { return c.opt.BlockLen }

// Stats tells how full the cache is and what the prefix index was worth.
func (c *KVCache) Stats() KVStats {
	s := c.stats
	s.Blocks, s.Free, s.Cached = c.opt.Blocks, c.Free(), c.index.cached
	return s
}

// take hands out a block that nobody references, evicting the oldest cached
// one when none is free. Free() must not be 0.
func (c *KVCache) take() int32 {
	var b int32
	if n := len(c.free); n > 0 {
		b = c.free[n-1]
		c.free = c.free[:n-1]
		c.front.pass(b)
	} else {
		b = c.index.oldest
		c.uncache(b)
		c.remove(b)
		c.stats.Evictions++
	}
	c.blocks[b].refs = 1
	return b
}

// hold adds a reference to b.
func (c *KVCache) hold(b int32) {
	if c.blocks[b].refs == 0 {
		c.uncache(b)
	}
	c.blocks[b].refs++
}

// drop takes a reference from b. An indexed block stays cached.
func (c *KVCache) drop(b int32) {
	m := &c.blocks[b]
	if m.refs--; m.refs > 0 {
		return
	}
	if m.refs < 0 {
		panic(fmt.Sprintf("models: KV block %d has %d references", b, m.refs))
	}
	if m.indexed {
		c.cache(b)
	} else {
		c.free = append(c.free, b)
	}
}

// Check verifies that every block is free, indexed or referenced exactly as
// counted, given all sequences that are in use (none: references are not
// counted). It is for tests and idle moments.
func (c *KVCache) Check(seqs ...*KVSeq) error {
	state := make([]int32, len(c.blocks)) // free and cached places found
	for _, b := range c.free {
		state[b]++
		if m := &c.blocks[b]; m.refs != 0 || m.indexed {
			return fmt.Errorf("models: free KV block %d has %d references, indexed %t", b, m.refs, m.indexed)
		}
	}
	cached, prev := 0, none
	for b := c.index.oldest; b != none; b = c.blocks[b].younger {
		m := &c.blocks[b]
		if state[b]++; m.refs != 0 || !m.indexed || m.older != prev {
			return fmt.Errorf("models: cached KV block %d has %d references, indexed %t, neighbour %d, want %d", b, m.refs, m.indexed, m.older, prev)
		}
		if m.parent != none && state[m.parent] != 0 {
			return fmt.Errorf("models: KV block %d would be evicted before its continuation %d", m.parent, b)
		}
		prev, cached = b, cached+1
	}
	if cached != c.index.cached || prev != c.index.youngest {
		return fmt.Errorf("models: %d cached KV blocks up to %d, counted %d up to %d", cached, prev, c.index.cached, c.index.youngest)
	}
	for b := range c.blocks {
		if held := c.blocks[b].refs > 0; state[b] > 1 || held == (state[b] == 1) {
			return fmt.Errorf("models: KV block %d has %d references and is free or cached %d times", b, c.blocks[b].refs, state[b])
		}
	}
	if err := c.checkIndex(); err != nil {
		return err
	}
	if len(seqs) == 0 {
		return nil
	}
	return c.checkRefs(seqs)
}

// checkRefs counts the references that seqs hold.
func (c *KVCache) checkRefs(seqs []*KVSeq) error {
	refs := make([]int32, len(c.blocks))
	for _, s := range seqs {
		if want := ceilDiv(s.n, c.opt.BlockLen); len(s.blocks) != want {
			return fmt.Errorf("models: KV sequence of %d tokens has %d blocks, want %d", s.n, len(s.blocks), want)
		}
		for i, b := range s.blocks {
			refs[b]++
			if i < s.sealed && !c.blocks[b].indexed {
				return fmt.Errorf("models: sealed KV block %d is not indexed", b)
			}
		}
	}
	for b, n := range refs {
		if c.blocks[b].refs != n {
			return fmt.Errorf("models: KV block %d counts %d references, has %d", b, c.blocks[b].refs, n)
		}
	}
	return nil
}

// ceilDiv is the number of pieces of length l that n things take.
func ceilDiv(n, l int) int { return (n + l - 1) / l }

package kv

import (
	"hash/maphash"
	"sync/atomic"
)

// Cache is a paged pool of keys and values, shared by all sequences. Full
// blocks are indexed by their token prefix, so a new sequence starts with the
// longest prefix any earlier one left behind. Owned by one goroutine.
//
//	free ──Grow──▶ referenced ──Seal──▶ referenced + indexed
//	 ▲               │ Release              │ Release
//	 └───────────────┘                      ▼
//	 └──────────── evicted, oldest first ── cached (indexed, no reference)
//
// Invariants (see Check): a block that is referenced twice or indexed is never
// written. A sequence with an indexed block references its whole prefix. Hence
// prefixes are younger than their continuations in the eviction order, and no
// indexed block ever loses its parent.
//
//	Cache ─┬─ store   the numbers: layers, in the order of blocks
//	       ├─ pool    who holds a block ─┬─ index   which block has which prefix
//	       │                             └─ residuals  rows in 8 bits of blocks that are written
//	       └─ states  recurrent states, and whose checkpoints they are
type Cache struct {
	store
	pool
	states
	stats Stats // of Open and Grow alone
}

// pool knows of each block whether it is free, held by sequences, or cached.
type pool struct {
	blocks []block
	free   []int32 // stack of blocks that hold nothing
	index  index
	residuals
	checkpoints *states // of blocks that leave the index
	evictions   int64
	highWater   highWater
}

// block is the bookkeeping of one block.
type block struct {
	refs     int32
	taken    uint32 // how often it was handed out
	indexed  bool
	salted   bool   // indexed: under a root with a salt
	parent   int32  // indexed: the block of the tokens before; negative: the root of its sequence
	children int32  // indexed: blocks whose parent this is
	hash     uint64 // indexed: key in the index
	sameHash int32  // indexed: next block with the same hash, or none
	older    int32  // cached: neighbours in eviction order, or none
	younger  int32

	checkpoint int32 // indexed: the recurrent state at its end, or none
	residual   int32 // its rows in 8 bits, or none; not indexed
}

// none stands for "no block".
const none = int32(-1)

// index finds full blocks by their tokens and all tokens before them. It is
// a tree: the key of a block is its parent block and its own tokens, so equal
// keys mean equal prefixes by induction. The hash only narrows the search;
// parent and tokens are compared in full.
//
// Indexed blocks that no sequence references form a list in eviction order.
type index struct {
	blocks   []block  // the pool's
	tokens   []int32  // [Blocks][blockLen], what indexed blocks hold
	blockLen int      // tokens a block
	observer Observer // nil: nobody

	seed     maphash.Seed     // random: nobody can prepare colliding prompts
	mask     uint64           // bits of the hash in use; tests narrow it to force collisions
	first    map[uint64]int32 // hash → first block with it; others follow by block.sameHash
	key      []byte           // scratch of hash
	oldest   int32
	youngest int32
	cached   int // length of the list
	salts    salts
}

// states are a pool of their own.
type states struct {
	owners   []block   // the blocks, some of which have a checkpoint
	size     int       // numbers of a state; 0: the models have none
	blockLen int       // tokens of a block
	data     []float32 // [slots][size]
	slots    []slot
	free     []int32
	kept     int    // checkpoints
	spare    int    // of them, those that no sequence shares
	clock    uint64 // counts uses of checkpoints
	last     uint64 // the version given out last
}

// slot is the bookkeeping of one state.
type slot struct {
	users   int32  // sequences that hold it
	block   int32  // the block whose checkpoint it is, or none
	used    uint64 // when the checkpoint was last of use
	version uint64 // of its numbers: see StateVersion
}

// recurrent holds a Sequence's slot of recurrent state and its checkpoints.
type recurrent struct {
	pool  *states
	state int32 // its slot, or none
	at    int   // tokens that have changed it

	wanted []int     // where checkpoints are asked for, in order
	marks  []pending // checkpoints that Seal may keep, of which one may be state
	given  []Mark    // scratch of Advance

	saved   int32 // the slot of what Undo needs, or none
	guesses int   // positions, the last ones, that Undo can take back
}

// Sequence is one sequence's view of the cache: a list of blocks, and a recurrent state.
type Sequence struct {
	extent
	root   *Root // nil: none but the model's own
	sealed int   // leading blocks that are in the index
	// swapped tells that the last sealed block took the place of an own copy.
	// Forks that share the blocks after it may still hold the copy.
	swapped bool
	recurrent
}

// extent holds a Sequence's blocks and how many positions these have.
type extent struct {
	c       *Cache
	blocks  []int32
	n       int // positions held
	settled int // leading blocks that have no residual any more
}

// highWater counts the blocks that have ever been handed out. Another goroutine may
// read it.
type highWater struct {
	blocks atomic.Int32 // those handed out have lower numbers
	moved  chan struct{}
}

// Layer holds the keys and values of one layer. A vector is the key or value of one token and head. In the formats that
// kernels read, keys of one head and block are interleaved in groups of eight:
//
//	keys    [Blocks][KVHeads][⌈BlockLen/8⌉][HeadDim][8]
//	values  [Blocks][KVHeads][8·⌈BlockLen/8⌉][HeadDim]
//
// F32 has no groups: keys stand like values. Vectors of 4 bits are rotated, each head by a Hadamard transform, so that
// no element stands out among those that share a scale (Ashkboos et al. 2024, "QuaRot", §4); kernels/attention has
// their layout. Queries are rotated alike, which changes no score, and sums of values are rotated back.
type Layer struct {
	heads, dim   int // KV heads, and elements of each
	stride       int // vectors of a head and block
	keys, values vectors
}

// Stats counts what a cache holds now and what it did since it was made.
type Stats struct {
	Blocks, Free, Cached     int   // pool size; blocks Grow can obtain; how many of these are indexed
	Queries                  int64 // calls of Open
	QueryTokens, HitTokens   int64 // tokens asked for by Open, and found
	Evictions, Copies        int64 // indexed blocks given to others; copies on write
	States, FreeStates       int   // recurrent states in the pool; how many of them Grow can obtain
	Checkpoints              int   // recurrent states that blocks hold
	Residuals, FreeResiduals int   // pool of rows in 8 bits; how many of its residuals Grow can obtain
}

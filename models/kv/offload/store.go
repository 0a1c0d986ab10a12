package offload

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/models/kv"
)

// chunkTokens is about how many tokens a file of keys and values has. With more, a prompt that parts from another one
// would compute more; with fewer, a disk would be read in short pieces.
const chunkTokens = 256

// MostQueued bounds the bytes that wait to be written, unless a single file has more.
const MostQueued = 64 << 20

// Sources tell what the numbers of a cache are computed from.
type Sources struct {
	About
	// Digest returns the SHA-256 of the model's file.
	Digest func(context.Context) (string, error)
	// State is the same text in another process only if Digest is; empty: nothing tells.
	State string
	// Options has all else that the numbers depend on, the same text in every process.
	Options string
}

// Store keeps blocks of one cache in a folder. Save and Find are for the goroutine that owns the cache.
type Store struct {
	folder *Folder
	cache  *kv.Cache
	id     *identity
	length int // tokens of a block
	chunk  int // blocks of a file
	stride int // tokens between the recurrent states that are kept within a prompt; 0: there are none

	ctx    context.Context // of readers
	cancel context.CancelFunc
	group  parallel.Group
	finds  chan struct{} // a place for each of those that look files up
	loads  chan struct{} // for each of those that read them
	jobs   chan job
	queued atomic.Int64 // bytes of jobs
	spare  sync.Pool    // of *[]byte

	known presences

	mu    sync.Mutex // guards stats
	stats Stats
}

// Stats count what a store has done.
type Stats struct {
	Asked, Found  int64 // tokens that memory did not have; of them read
	Read, Written int64 // bytes
	Dropped       int64 // files that were not written, for want of room in the queue or because writing fails
	Damaged       int64 // files that were not what they should be
	Failures      int64 // reads and writes that failed
}

// New returns the store of a cache. The caller closes it before the cache, and after the cache's owner has ended.
func New(f *Folder, cache *kv.Cache, s Sources) *Store {
	st := &Store{folder: f, cache: cache, id: newIdentity(s), length: cache.BlockLen(), chunk: max(1, chunkTokens/cache.BlockLen()),
		finds: make(chan struct{}, 4), loads: make(chan struct{}, 2), jobs: make(chan job, 256), known: presences{now: f.now, items: map[item]*presence{}}}
	st.ctx, st.cancel = context.WithCancel(context.Background())
	if each := cache.StateBytes(); each > 0 {
		token := max(1, cache.BlockBytes()/st.length)
		st.stride = max(st.chunk*st.length, each/token) // states take no more than keys and values
		if cache.BlockBytes() == 0 {
			st.stride = statesApart
		}
	}
	st.group.Go(st.run)
	return st
}

// statesApart is the stride of models that have no keys and values.
const statesApart = 2048

// Close writes what is queued, ends reading, and returns when no goroutine of the store is left.
func (st *Store) Close() {
	st.cancel()
	if st.queued.Load() == 0 {
		st.id.giveUp()
	}
	close(st.jobs)
	st.group.Wait()
	st.id.giveUp()
}

// Stats counts what has been done so far.
func (st *Store) Stats() Stats {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.stats
}

// count changes the counts.
func (st *Store) count(change func(*Stats)) {
	st.mu.Lock()
	defer st.mu.Unlock()
	change(&st.stats)
}

// run finds out what the model is, and writes until the store is closed.
func (st *Store) run() {
	err := parallel.Try(func() error { return st.id.find(st.folder, st.cache) })
	if err == nil {
		st.folder.makeRoom(0)
	} else if st.id.begin.Err() == nil {
		st.folder.log.Warn().Err(err).Str("model", st.id.sources.Model).Msg("kv.disk keeps no prefixes of this model")
	}
	st.id.err = err
	close(st.id.ready)
	for j := range st.jobs {
		if err := parallel.Try(func() error { return st.write(&j) }); err != nil {
			st.dropped(&j, err)
		}
		st.release(&j)
	}
}

// number returns a root's number; 0: the model's own.
func number(root *kv.Root) int32 {
	if root == nil {
		return 0
	}
	return root.Number
}

// keeps tells whether prefixes of a root may be in files.
func keeps(root *kv.Root) bool { return root == nil || root.Digest != nil }

// path returns the path of a file.
func (st *Store) path(name string) string { return filepath.Join(st.id.dir, name) }

package offload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/lutra-lm/lutra/models/kv"
)

// job is something to write, or a file to say of that it is of use.
type job struct {
	root  *kv.Root
	kind  kind
	ids   []Hash // of the prefixes that end with each piece; of a state one
	end   int    // blocks before the end
	each  int
	image []byte // the file, whose header is not there yet; nil: it is there
}

func (j *job) item() item { return item{number(j.root), j.ids[len(j.ids)-1], j.kind} }

// digestOf returns the SHA-256 of what r reads, in hexadecimal.
func digestOf(r io.Reader) (string, error) {
	h := sha256.New()
	_, err := io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), err
}

// mostSaved bounds the chunks that a call of Save copies while the sequence goes on: some MB.
const mostSaved = 4

// Save copies what of a sequence's blocks is in no file yet, to be written: whole chunks, and if the sequence rests the
// last blocks too. tokens stand at the sealed positions. What finds no room in the queue is offered by a later call;
// of one that rests it is dropped.
func (st *Store) Save(c *Chain, s *kv.Sequence, root *kv.Root, tokens []int32, rests bool) {
	sealed := min(s.Sealed(), len(tokens)) / st.length
	if !keeps(root) || sealed <= c.saved && st.stride == 0 {
		return
	}
	c.extend(tokens, sealed, st.length)
	full := true
	for n := 0; full && c.saved+st.chunk <= sealed && (rests || n < mostSaved); n++ {
		if full = st.saveBlocks(c, s, root, c.saved, c.saved+st.chunk); full {
			c.saved += st.chunk
		}
	}
	switch {
	case !full:
	case st.stride > 0:
		full = st.saveStates(c, s, root, sealed, rests)
	case rests:
		full = st.saveBlocks(c, s, root, c.saved, sealed)
	}
	if rests && !full {
		st.count(func(s *Stats) { s.Dropped++ })
	}
}

// saveStates queues the last checkpoint of the sealed blocks, if it is far enough from the one before; if the sequence
// rests, those before it too that were asked for.
func (st *Store) saveStates(c *Chain, s *kv.Sequence, root *kv.Root, sealed int, rests bool) bool {
	if !rests {
		return st.saveState(c, s, root, c.state+st.stride, sealed*st.length)
	}
	for _, at := range s.Wanted() {
		if at > c.state && at < sealed*st.length && !st.saveState(c, s, root, at, at) {
			return false
		}
	}
	return st.saveState(c, s, root, c.state+st.length, sealed*st.length)
}

// saveState queues the last checkpoint after lo to hi tokens, with the blocks before it that no whole chunk has.
func (st *Store) saveState(c *Chain, s *kv.Sequence, root *kv.Root, lo, hi int) bool {
	if lo > hi {
		return true
	}
	at, state := s.Checkpoint(lo, hi)
	end := at / st.length
	start := end / st.chunk * st.chunk
	if state == nil || start > c.saved { // the chunks before it come first
		return true
	}
	if !st.saveBlocks(c, s, root, start, end) {
		return false
	}
	j := job{root: root, kind: stateKind, ids: append([]Hash(nil), c.hashes[end-1]), end: end, each: len(state)}
	if !st.offer(&j, func(to []byte) { copy(to, state) }) {
		return false
	}
	c.state = at
	return true
}

// saveBlocks queues the blocks from first to end, of one chunk. It reports whether they are in a file or queued.
func (st *Store) saveBlocks(c *Chain, s *kv.Sequence, root *kv.Root, first, end int) bool {
	each := st.cache.BlockBytes()
	if first >= end || each == 0 {
		return true
	}
	j := job{root: root, kind: blocksKind, ids: append([]Hash(nil), c.hashes[first:end]...), end: end, each: each}
	return st.offer(&j, func(to []byte) {
		for i, b := range s.Blocks()[first:end] {
			st.cache.Export(to[i*each:(i+1)*each], b)
		}
	})
}

// offer queues a job, unless its file is there, or the queue is full.
func (st *Store) offer(j *job, fill func(to []byte)) bool {
	it, size := j.item(), fileBytes(len(j.ids), j.each)
	if size > st.folder.size/4 {
		return false
	}
	if known, idle := st.known.use(it); known {
		if idle {
			select {
			case st.jobs <- *j:
			default: // it is said another time
			}
		}
		return true
	}
	if n := st.queued.Load(); n > 0 && n+size > MostQueued {
		return false
	}
	j.image = st.buffer(int(size))
	fill(j.image[headBytes(len(j.ids)):])
	st.queued.Add(size)
	st.known.note(it, "") // before the writer, who notes its name
	select {
	case st.jobs <- *j:
		return true
	default:
		st.known.forget(it)
		st.release(j)
		return false
	}
}

// buffer returns size bytes, of which nothing is known.
func (st *Store) buffer(size int) []byte {
	if b, ok := st.spare.Get().(*[]byte); ok && cap(*b) >= size {
		return (*b)[:size]
	}
	return make([]byte, size)
}

// release takes a job out of the queue's account.
func (st *Store) release(j *job) {
	if j.image != nil {
		st.queued.Add(-int64(len(j.image)))
		st.spare.Put(&j.image)
	}
}

// dropped notes that a job is not done.
func (st *Store) dropped(j *job, err error) {
	st.known.forget(j.item())
	if j.image == nil {
		return
	}
	st.count(func(s *Stats) {
		s.Dropped++
		if st.id.err == nil && !errors.Is(err, errSilent) {
			s.Failures++
		}
	})
}

// write does a job.
func (st *Store) write(j *job) error {
	root, err := st.id.rootOf(st.id.begin, j.root)
	if err != nil {
		return err
	}
	p := prefix{root, j.ids[len(j.ids)-1], j.end}
	name := p.name(j.kind)
	path, size := st.path(name), fileBytes(len(j.ids), j.each)
	switch info, err := os.Lstat(path); {
	case err != nil: // it is not there
	case regular(info, nil) != nil:
		return fs.ErrExist // something of somebody else
	case info.Size() == size:
		st.touch(path)
		st.known.note(j.item(), name)
		return nil
	}
	if j.image == nil {
		st.known.forget(j.item())
		return nil
	}
	if names := st.folder.makeRoom(size); names != nil {
		st.known.refresh(names)
	}
	finish(j.image, &p, len(j.ids), j.each)
	if err := st.folder.put(st.id.dir, name, st.id.sources.About, j.image); err != nil {
		return err
	}
	st.known.note(j.item(), name)
	st.count(func(s *Stats) { s.Written += size })
	return nil
}

// touch says that a file is of use.
func (st *Store) touch(path string) {
	now := st.folder.now()
	_ = os.Chtimes(path, now, now) // it is gone sooner without
}

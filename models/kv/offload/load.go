package offload

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/models/kv"
)

// Lookup is a search for the files of a prefix, and the reading of what was found. Its methods are for the goroutine that
// owns the cache.
type Lookup struct {
	store  *Store
	root   *kv.Root
	tokens []int32
	tell   func()
	ctx    context.Context
	cancel context.CancelFunc

	from, to int // tokens: what memory had; what has files
	parts    []part
	state    *part // the recurrent state at the end; nil: there is none

	mu   sync.Mutex // guards what follows
	done bool       // the search, and then the reading
	got  int        // tokens that are there: by the search in files, by the reading in blocks
}

// part is a file of which some pieces are wanted.
type part struct {
	prefix
	path   string
	first  int // block of the sequence that is the file's first
	pieces int
}

// Find looks for files of tokens behind the first from, a whole number of blocks, that are in memory. tell is called,
// by another goroutine, when Result has something to say: after the search, and after Load. tokens must not change.
func (st *Store) Find(root *kv.Root, tokens []int32, from int, tell func()) *Lookup {
	l := &Lookup{store: st, root: root, tokens: tokens, from: from, to: from, tell: tell}
	l.ctx, l.cancel = context.WithCancel(st.ctx)
	st.count(func(s *Stats) { s.Asked += int64(len(tokens)/st.length*st.length - from) })
	l.start(st.finds, func() int {
		l.search()
		return l.to
	})
	return l
}

// Keeps tells whether prefixes of a root can have files.
func (st *Store) Keeps(root *kv.Root) bool { return keeps(root) }

// start has f run once there is a place, which gives what Result says.
func (l *Lookup) start(places chan struct{}, f func() int) {
	l.store.group.Go(func() {
		got := l.from
		defer func() {
			l.mu.Lock()
			l.done, l.got = true, got
			l.mu.Unlock()
			l.tell()
		}()
		select {
		case places <- struct{}{}:
		case <-l.ctx.Done():
			return
		}
		defer func() { <-places }()
		if err := parallel.Try(func() error { got = f(); return nil }); err != nil {
			l.failed(err)
		}
	})
}

// Result returns how many tokens have been found, or read; done: none of both goes on.
func (l *Lookup) Result() (n int, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got, l.done
}

// From returns how many tokens memory had when the search began.
func (l *Lookup) From() int { return l.from }

// Cancel ends the search or the reading soon: Result tells when.
func (l *Lookup) Cancel() { l.cancel() }

// Load reads what was found into the blocks of s, which has Result's number of positions and owns those from token from
// on, no less than From. Until Result says that it is done, nobody may use s.
func (l *Lookup) Load(s *kv.Sequence, from int) {
	l.from = from
	blocks, state := append([]int32(nil), s.Blocks()...), s.State()
	l.mu.Lock()
	l.done = false
	l.mu.Unlock()
	l.start(l.store.loads, func() int { return l.read(blocks, state) })
}

// search finds the files.
func (l *Lookup) search() {
	st := l.store
	root, err := st.id.rootOf(l.ctx, l.root)
	if err != nil {
		return
	}
	var c Chain
	n := len(l.tokens) / st.length
	c.extend(l.tokens, n, st.length)
	first := l.from / st.length / st.chunk * st.chunk // the first block of the chunk
	var whole []part
	for first+st.chunk <= n && l.ctx.Err() == nil {
		p, ok := l.partAt(root, &c, blocksKind, first, first+st.chunk)
		if !ok {
			break
		}
		whole, first = append(whole, p), first+st.chunk
	}
	if st.stride > 0 {
		l.searchState(root, &c, whole, first)
		return
	}
	l.parts, l.to = whole, max(l.from, first*st.length)
	for end := min(n, first+st.chunk-1); end*st.length > l.to; end-- {
		if p, ok := l.partAt(root, &c, blocksKind, first, end); ok {
			l.parts, l.to = append(whole, p), end*st.length
			return
		}
	}
}

// searchState finds the last recurrent state before which all blocks have files. first is the block at which whole
// chunks end.
func (l *Lookup) searchState(root Hash, c *Chain, whole []part, first int) {
	st := l.store
	for end := min(len(c.hashes), first+st.chunk-1); end*st.length > l.from && l.ctx.Err() == nil; end-- {
		state, ok := l.partAt(root, c, stateKind, end-1, end)
		if !ok {
			continue
		}
		start, parts := end/st.chunk*st.chunk, []part(nil)
		for _, p := range whole {
			if p.first < start {
				parts = append(parts, p)
			}
		}
		if end > start {
			p, ok := l.partAt(root, c, blocksKind, start, end)
			if !ok {
				continue
			}
			parts = append(parts, p)
		}
		l.parts, l.state, l.to = parts, &state, end*st.length
		return
	}
}

// partAt returns the file of the blocks first to end, if it is there; for models without keys and values there need be
// none.
func (l *Lookup) partAt(root Hash, c *Chain, k kind, first, end int) (part, bool) {
	st, p := l.store, prefix{root, c.hashes[end-1], end}
	pieces, each := end-first, st.cache.BlockBytes()
	if k == stateKind {
		pieces, each = 1, st.cache.StateBytes()
	}
	y := part{prefix: p, path: st.path(p.name(k)), first: first, pieces: pieces}
	if each == 0 {
		return y, true
	}
	info, err := os.Lstat(y.path)
	if err != nil {
		st.known.forget(item{number(l.root), p.hash, k})
		return y, false
	}
	if regular(info, nil) != nil {
		return y, false
	}
	if info.Size() != fileBytes(pieces, each) {
		l.damaged(&y, k)
		return y, false
	}
	return y, true
}

// read reads the files, and returns how many tokens of the sequence are there then.
func (l *Lookup) read(blocks []int32, state []byte) (n int) {
	st := l.store
	each := st.cache.BlockBytes()
	buf := make([]byte, max(each, st.cache.StateBytes()))
	n = l.from
	for i := range l.parts {
		if p := &l.parts[i]; (p.first+p.pieces)*st.length <= n { // memory has it by now
			continue
		}
		got, err := l.readBlocks(&l.parts[i], blocks, n/st.length, buf)
		n = got * st.length
		if err != nil {
			if l.failed(err); st.stride > 0 {
				return l.from // the state is of all of them
			}
			break
		}
	}
	if l.state != nil {
		if err := l.readState(state, buf); err != nil {
			l.failed(err)
			return l.from
		}
		n = l.to
	}
	st.count(func(s *Stats) { s.Found += int64(n - l.from) })
	return n
}

// readBlocks reads the blocks of a part from number next of the sequence on, and returns the number after the last.
func (l *Lookup) readBlocks(p *part, blocks []int32, next int, buf []byte) (int, error) {
	st, each, end := l.store, l.store.cache.BlockBytes(), p.first+p.pieces
	if each == 0 {
		return end, nil
	}
	f, err := open(p.path, &p.prefix, p.pieces, each)
	if err != nil {
		return next, l.faulty(p, blocksKind, err)
	}
	defer f.close()
	for ; next < end; next++ {
		if l.ctx.Err() != nil {
			return next, l.ctx.Err()
		}
		if err := f.read(buf, next-p.first); err != nil {
			return next, l.faulty(p, blocksKind, err)
		}
		st.cache.Import(blocks[next], buf[:each])
	}
	st.count(func(s *Stats) { s.Read += fileBytes(p.pieces, each) })
	st.touch(p.path)
	st.known.note(item{number(l.root), p.hash, blocksKind}, p.name(blocksKind))
	return next, nil
}

// readState reads the recurrent state, which nothing is left to fail after.
func (l *Lookup) readState(state, buf []byte) error {
	f, err := open(l.state.path, &l.state.prefix, 1, len(state))
	if err != nil {
		return l.faulty(l.state, stateKind, err)
	}
	defer f.close()
	if err := f.read(buf, 0); err != nil {
		return l.faulty(l.state, stateKind, err)
	}
	copy(state, buf)
	st := l.store
	st.count(func(s *Stats) { s.Read += fileBytes(1, len(state)) })
	st.touch(l.state.path)
	st.known.note(item{number(l.root), l.state.hash, stateKind}, l.state.name(stateKind))
	return nil
}

// faulty deals with a file that cannot be read: a damaged one is removed.
func (l *Lookup) faulty(p *part, k kind, err error) error {
	if errors.Is(err, errDamaged) {
		l.damaged(p, k)
	}
	l.store.known.forget(item{number(l.root), p.hash, k})
	return err
}

// damaged removes a file.
func (l *Lookup) damaged(p *part, k kind) {
	_ = os.Remove(p.path) // another may have
	l.store.known.forget(item{number(l.root), p.hash, k})
	l.store.count(func(s *Stats) { s.Damaged++ })
}

// failed counts an error, unless nobody wants the result, or another process has removed the file.
func (l *Lookup) failed(err error) {
	if l.ctx.Err() == nil && !errors.Is(err, errDamaged) && !errors.Is(err, fs.ErrNotExist) {
		l.store.count(func(s *Stats) { s.Failures++ })
	}
}

package structure

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/lutra-lm/lutra/grammar/budget"
)

// CacheOptions bound what formats take.
type CacheOptions struct {
	Memory  int64 // bytes of all formats, in use or kept for later
	Largest int64 // bytes of one, at most three quarters of all
}

// DefaultCacheOptions returns options that are enough for any schema that people write.
func DefaultCacheOptions() CacheOptions {
	return CacheOptions{Memory: 256 << 20, Largest: budget.Bytes}
}

// ErrBusy says that formats in use take all the memory that formats may have.
var ErrBusy = budget.ErrBusy

// errDropped says that a format is used on after its request has ended.
var errDropped = errors.New("structure: the format is not in use any more")

// errPanic is met by those who wait for a format whose compiler panicked.
var errPanic = errors.New("structure: the format could not be compiled")

// Key names a format: by whose it is, such as a model's, and what it was made of.
type Key struct {
	Owner any
	Sum   [32]byte
}

// Cache makes formats, each once for all that ask for it, and keeps them as long as they
// are in use, and then as long as there is memory. Those that are not in use give way,
// the one first whose use is longest ago.
//
//	Format ──▶ compiled, or found ──▶ in use ──ctx ends──▶ idle ──▶ evicted
type Cache struct {
	options CacheOptions

	mu      sync.Mutex
	entries map[Key]*entry
	idle    *list.List // of *entry, the latest in front
	stats   CacheStats
}

// CacheStats counts a cache's work.
type CacheStats struct {
	Bytes     int64 // that formats take, in use or not
	Formats   int   // that are kept for whoever asks, or in use
	Used      int   // of them, in use
	Hits      int64 // formats that were there, or being compiled
	Misses    int64
	Evictions int64
	Refused   int64 // formats that were refused, or turned away for want of memory
}

// entry is a format and its memory, of which it is the account.
type entry struct {
	cache   *Cache
	key     Key
	users   int // requests that wait for it or use it
	bytes   int64
	listed  bool // it is found by its key
	dropped bool // its memory counts no more
	place   *list.Element
	cancel  context.CancelFunc
	done    chan struct{} // closed when format and err are there
	format  *Format
	err     error
}

var _ budget.Account = (*entry)(nil)

// NewCache makes an empty cache.
func NewCache(o CacheOptions) *Cache {
	return &Cache{options: o, entries: map[Key]*entry{}, idle: list.New()}
}

// Stats returns what the cache has done so far.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Format returns the format of a key, in use until ctx ends. If it is not there, compile makes it within its
// budget, until the contexts of all who wait for it have ended. Errors: compile's, ErrBusy and ctx's.
func (c *Cache) Format(ctx context.Context, key Key, compile func(context.Context, *budget.Budget) (*Format, error)) (*Format, error) {
	e, found := c.enter(ctx, key)
	if e == nil {
		return nil, context.Cause(ctx)
	}
	context.AfterFunc(ctx, func() { c.leave(e) })
	if found {
		select {
		case <-e.done:
			return e.format, e.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	inside, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	c.mu.Lock()
	if e.cancel = cancel; e.users == 0 { // gone already
		cancel()
	}
	c.mu.Unlock()
	f, err := (*Format)(nil), errPanic
	defer func() {
		if err == errPanic {
			c.made(e, nil, err)
		}
	}()
	f, err = compile(inside, budget.New(inside, budget.Steps, c.options.Largest, e))
	c.made(e, f, err)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return f, err
}

// enter finds or begins an entry for one more user; nil: ctx has ended.
func (c *Cache) enter(ctx context.Context, key Key) (e *entry, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return nil, false
	}
	e = c.entries[key]
	if e != nil && e.format != nil && e.format.Worn() {
		c.unlist(e)
		e = nil
	}
	if e != nil {
		c.stats.Hits++
		if e.users++; e.place != nil {
			c.idle.Remove(e.place)
			e.place = nil
		}
		if e.users == 1 {
			c.stats.Used++
		}
		return e, true
	}
	c.stats.Misses++
	c.stats.Formats++
	c.stats.Used++
	e = &entry{cache: c, key: key, users: 1, listed: true, done: make(chan struct{})}
	c.entries[key] = e
	return e, false
}

// made publishes what came of compiling.
func (c *Cache) made(e *entry, f *Format, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.format, e.err = f, err; err != nil {
		if !errors.Is(err, context.Canceled) {
			c.stats.Refused++
		}
		c.unlist(e)
		c.drop(e)
	} else if e.users == 0 {
		c.rest(e)
	}
	close(e.done)
}

// leave ends one use.
func (c *Cache) leave(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.users--; e.users > 0 || e.dropped {
		return
	}
	c.stats.Used--
	select {
	case <-e.done:
		c.rest(e)
	default: // nobody waits for what is being compiled
		c.unlist(e)
		if e.cancel != nil {
			e.cancel()
		}
	}
}

// rest keeps an entry that is not in use, unless nobody will find it. Locked.
func (c *Cache) rest(e *entry) {
	if e.format.Worn() {
		c.unlist(e)
	}
	if !e.listed {
		c.drop(e)
		return
	}
	e.place = c.idle.PushFront(e)
	c.evict(c.options.Memory)
}

// unlist lets nobody find an entry any more. Locked.
func (c *Cache) unlist(e *entry) {
	if e.listed {
		e.listed = false
		delete(c.entries, e.key)
	}
	if e.place != nil {
		c.idle.Remove(e.place)
		e.place = nil
		c.drop(e)
	}
}

// drop counts an entry's memory no more. Locked.
func (c *Cache) drop(e *entry) {
	if e.dropped {
		return
	}
	if e.users > 0 {
		c.stats.Used--
	}
	e.dropped = true
	c.stats.Bytes -= e.bytes
	c.stats.Formats--
}

// evict drops what is not in use until the rest takes so many bytes at most. Locked.
func (c *Cache) evict(most int64) {
	for c.stats.Bytes > most && c.idle.Len() > 0 {
		c.stats.Evictions++
		c.unlist(c.idle.Back().Value.(*entry))
	}
}

// Take implements budget.Account. The last quarter of the memory is for formats in use,
// so that they need not break off because others are compiled.
func (e *entry) Take(n int64) error {
	c := e.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.dropped {
		if n > 0 {
			return errDropped
		}
		return nil
	}
	e.bytes += n
	c.stats.Bytes += n
	most := c.options.Memory
	if e.format == nil {
		most = most / 4 * 3
	}
	if n > 0 && c.stats.Bytes > most {
		if c.evict(most); c.stats.Bytes > most {
			return ErrBusy
		}
	}
	return nil
}

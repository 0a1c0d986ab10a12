package offload

import (
	"sync"
	"time"
)

// item is a file as the cache's owner knows it.
type item struct {
	root int32
	hash Hash
	kind kind
}

// presence notes that a file is there, or on its way.
type presence struct {
	name    string // empty: it is not there yet
	touched time.Time
}

// presences are the files that a store knows, so that it looks for none twice. Any goroutine may use them.
type presences struct {
	now   func() time.Time
	mu    sync.Mutex
	items map[item]*presence
}

// Bounds of what is remembered, and how often it is said that a file is of use.
const (
	mostKnown = 1 << 17
	touchTime = 10 * time.Minute
)

// note says that a file is there; without a name, that it is on its way.
func (p *presences) note(it item, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.items) >= mostKnown {
		clear(p.items) // they are offered again, and found to be there
	}
	p.items[it] = &presence{name, p.now()}
}

// forget says that a file is not there.
func (p *presences) forget(it item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.items, it)
}

// refresh forgets files that are gone, given the names of those that are not.
func (p *presences) refresh(names map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for it, x := range p.items {
		if x.name != "" && !names[x.name] {
			delete(p.items, it)
		}
	}
}

// use tells whether a file is known to be there, and whether it is time to say that it is of use.
func (p *presences) use(it item) (known, idle bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.items[it]
	if x == nil {
		return false, false
	}
	now := p.now()
	if idle = x.name != "" && now.Sub(x.touched) > touchTime; idle {
		x.touched = now
	}
	return true, idle
}

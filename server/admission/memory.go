package admission

import (
	"sync"
	"sync/atomic"
)

// Memory bounds the bytes that all requests hold together: their bodies, what
// is made of them, and the answers that gather. Nothing is allocated here; the
// server counts what a request will cost before it costs it.
type Memory struct {
	size int64

	mu   sync.Mutex
	used int64
}

// NewMemory returns a memory of size bytes.
func NewMemory(size int64) *Memory { return &Memory{size: size} }

// smallRequest is the most that a request may hold of the last quarter of the memory, which large ones leave
// free. An ordinary question finds room, however many large requests there are.
const smallRequest = 256 << 10

// most returns what one request can hold at all.
func (m *Memory) most() int64 { return max(m.size-m.size/4, min(m.size, smallRequest)) }

// Lease is the memory that one request holds. It is the handler's alone.
type Lease struct {
	m    *Memory
	held int64
}

// Lease begins with nothing.
func (m *Memory) Lease() *Lease { return &Lease{m: m} }

// Grow adds n bytes to what the request holds: ErrBusy when there is no room
// now, a *MemoryError when there never will be.
func (l *Lease) Grow(n int64) error {
	m := l.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.held+n > m.most() {
		return &MemoryError{m.most()}
	}
	room := m.size
	if l.held+n > smallRequest {
		room -= m.size / 4
	}
	if m.used+n > room {
		return ErrBusy
	}
	m.used += n
	l.held += n
	return nil
}

// Free gives n bytes back.
func (l *Lease) Free(n int64) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	n = min(n, l.held)
	l.m.used -= n
	l.held -= n
}

// End gives everything back.
func (l *Lease) End() { l.Free(l.held) }

// Bytes returns what all requests hold now.
func (m *Memory) Bytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// Places bounds the number of requests under way.
type Places struct {
	most  int64
	taken atomic.Int64
}

// NewPlaces returns n places.
func NewPlaces(most int) *Places { return &Places{most: int64(most)} }

// Enter takes a place until leave is called, or returns ErrBusy.
func (p *Places) Enter() (leave func(), err error) {
	if p.taken.Add(1) > p.most {
		p.taken.Add(-1)
		return nil, ErrBusy
	}
	return func() { p.taken.Add(-1) }, nil
}

// Full tells whether Enter would fail.
func (p *Places) Full() bool { return p.taken.Load() >= p.most }

// Taken returns the number of requests under way.
func (p *Places) Taken() int64 { return p.taken.Load() }

package server

import (
	"fmt"
	"net/http"
	"sync"
)

// memory bounds the bytes that all requests hold together: their bodies, what
// is made of them, and the answers that gather. Nothing is allocated here; the
// server counts what a request will cost before it costs it.
type memory struct {
	size int64

	mu   sync.Mutex
	used int64
}

// smallRequest is how much a request may hold of the last quarter of the
// memory, which large ones leave free: however many of those there are, an
// ordinary question finds room.
const smallRequest = 256 << 10

// most is what one request can hold at all.
func (m *memory) most() int64 { return max(m.size-m.size/4, min(m.size, smallRequest)) }

// lease is what one request holds. It is the handler's alone, but for free.
type lease struct {
	m    *memory
	held int64
}

// lease begins with nothing.
func (m *memory) lease() *lease { return &lease{m: m} }

// grow adds n bytes to what the request holds: 429 when there is no room now,
// 413 when there never will be.
func (l *lease) grow(n int64) error {
	m := l.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.held+n > m.most() {
		return tooLarge(fmt.Sprintf("The request needs more memory than the server gives to one (%d bytes). Send less, or ask for less at once.", m.most()))
	}
	room := m.size
	if l.held+n > smallRequest {
		room -= m.size / 4
	}
	if m.used+n > room {
		return busy()
	}
	m.used += n
	l.held += n
	return nil
}

// free gives n bytes back.
func (l *lease) free(n int64) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	n = min(n, l.held)
	l.m.used -= n
	l.held -= n
}

// end gives everything back.
func (l *lease) end() { l.free(l.held) }

// bytes is what all requests hold now.
func (m *memory) bytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// tooLarge is a 413.
func tooLarge(message string) *apiError {
	return &apiError{Status: http.StatusRequestEntityTooLarge, Type: typeInvalid, Code: "request_too_large", Message: message}
}

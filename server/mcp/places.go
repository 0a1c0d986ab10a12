package mcp

import (
	"errors"
	"sync"
)

// ErrBusy says that as many messages are under way to a server as it may have, or as the key that
// sends one may have there.
var ErrBusy = errors.New("mcp: too many messages wait for this server")

// mostMessages bounds the messages under way to one server.
const mostMessages = 64

// load counts messages and the bytes that they hold.
type load struct {
	messages int
	bytes    int64
}

// grown returns l with one more message of these bytes.
func (l load) grown(bytes int64) load { return load{l.messages + 1, l.bytes + bytes} }

// within reports whether l is no more than an n-th of most. A message that is alone is never too large.
func (l load) within(most load, n int) bool {
	return l.messages <= max(1, most.messages/n) && (l.bytes <= most.bytes/int64(n) || l.messages == 1)
}

// places bound what is under way to one server. A key gets half of them at most: a server that
// hangs keeps no other server's clients waiting, and a key that sends too much no other key.
type places struct {
	most load

	mu    sync.Mutex
	taken load
	byKey map[string]load
}

// enter takes a place until leave is called, or returns ErrBusy.
func (p *places) enter(key string, bytes int64) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, own := p.taken.grown(bytes), p.byKey[key].grown(bytes)
	if !all.within(p.most, 1) || !own.within(p.most, 2) {
		return nil, ErrBusy
	}
	p.taken, p.byKey[key] = all, own
	return func() { p.leave(key, bytes) }, nil
}

func (p *places) leave(key string, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken.messages--
	p.taken.bytes -= bytes
	own := p.byKey[key]
	own.messages--
	own.bytes -= bytes
	if p.byKey[key] = own; own.messages == 0 {
		delete(p.byKey, key)
	}
}

package batcher

import (
	"sync"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
)

// maze is a constraint that depends on every token. At each point some tokens may come, or one is forced, and
// the mask is known at once, soon or late.
type maze struct {
	*labyrinth
	sum uint64 // of the completion
}

// labyrinth holds the settings that the points of a maze share.
type labyrinth struct {
	seed  uint64
	vocab int
	slow  bool // some points take time
	plain bool // no token is forced: the one that is comes about by its mask

	mu    sync.Mutex
	known map[uint64]sampling.Prepared
}

func newMaze(l *labyrinth) sampling.Constraint {
	l.known = map[uint64]sampling.Prepared{}
	return maze{labyrinth: l, sum: l.seed}
}

func (m maze) Next(id int32) sampling.Constraint {
	return maze{m.labyrinth, sampling.Mix(m.sum + uint64(id))}
}

// only is the one token that may come, if there is just one.
func (m maze) only() (id int32, ok bool) {
	return int32(m.sum >> 20 % uint64(m.vocab)), m.sum%8 < 5
}

func (m maze) Forced() (id int32, ok bool) {
	id, ok = m.only()
	return id, ok && !m.plain
}

func (m maze) Allow(mask []uint64) {
	if id, ok := m.only(); ok {
		mask[id/64] |= 1 << (id % 64)
		return
	}
	for id := range m.vocab {
		if m.sum>>(id%48)&1 != 0 || id == 7 {
			mask[id/64] |= 1 << (id % 64)
		}
	}
}

func (m maze) Prepare() sampling.Prepared {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.known[m.sum]
	if !ok {
		forced, allowed := make(chan struct{}), make(chan struct{})
		m.close(forced, m.sum>>8%16)
		m.close(allowed, m.sum>>12%16)
		p = sampling.Prepared{Forced: forced, Allowed: allowed}
		m.known[m.sum] = p
	}
	return p
}

// close closes a channel now, soon or late.
func (m maze) close(c chan struct{}, how uint64) {
	switch {
	case !m.slow || how > 3:
		close(c)
	case how == 0:
		time.AfterFunc(50*time.Millisecond, func() { close(c) })
	default:
		time.AfterFunc(20*time.Microsecond, func() { close(c) })
	}
}

// behind is p for the token after a completion: where its constraint stands, and the
// token that is forced, or sampling.Sampled.
func behind(p sampling.Params, completion []int32, vocab int) (sampling.Params, int32) {
	if p.Constraint == nil {
		return p, sampling.Sampled
	}
	for _, id := range completion {
		p.Constraint = p.Constraint.Next(id)
	}
	if id, ok := p.Forced(vocab); ok {
		return p, id
	}
	return p, sampling.Sampled
}

package zmtp

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// What waits for one subscriber at most; further messages are dropped for it.
const (
	mostQueued      = 4096
	mostQueuedBytes = 8 << 20
)

// mostTopics bounds the subscriptions of one subscriber.
const mostTopics = 64

// Publisher is a PUB socket.
type Publisher struct {
	peers    peers
	listener net.Listener // nil: it connects

	mu      sync.Mutex
	subs    map[*subscriber]struct{}
	dropped atomic.Int64
}

// subscriber is a connected SUB socket.
type subscriber struct {
	peer   *peer
	queue  chan []byte
	bytes  atomic.Int64 // in queue
	topics [][]byte     // prefixes; guarded by Publisher.mu
}

// NewPublisher listens on e or keeps connecting to it. failed is told of panics, each of which has
// ended one connection.
func NewPublisher(e Endpoint, failed func(error)) (*Publisher, error) {
	p := &Publisher{subs: map[*subscriber]struct{}{}}
	p.peers.start(p.serve, failed)
	if !e.Binds {
		p.peers.dial(e.Addr)
		return p, nil
	}
	l, err := net.Listen("tcp", e.Addr)
	if err != nil {
		return nil, fmt.Errorf("zmtp: %w", err)
	}
	p.listener = l
	p.peers.listen(l)
	return p, nil
}

// Addr returns the address where the socket listens; nil: it connects.
func (p *Publisher) Addr() net.Addr {
	if p.listener == nil {
		return nil
	}
	return p.listener.Addr()
}

// Publish sends a message, which begins with its topic, to all who subscribed to that. It
// does not wait: a subscriber whose queue is full does not get it.
func (p *Publisher) Publish(frames ...[]byte) {
	data := message(frames...)
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.subs {
		if slices.ContainsFunc(s.topics, func(t []byte) bool { return bytes.HasPrefix(frames[0], t) }) && !s.put(data) {
			p.dropped.Add(1)
		}
	}
}

// put queues data, if there is room.
func (s *subscriber) put(data []byte) bool {
	n := int64(len(data))
	if s.bytes.Add(n) > mostQueuedBytes && s.bytes.Load() != n { // one that is alone always fits
		s.bytes.Add(-n)
		return false
	}
	select {
	case s.queue <- data:
		return true
	default:
		s.bytes.Add(-n)
		return false
	}
}

// Dropped counts the messages that subscribers were too slow for.
func (p *Publisher) Dropped() int64 { return p.dropped.Load() }

// Subscribers counts the peers that have subscribed to anything.
func (p *Publisher) Subscribers() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.subs {
		if len(s.topics) > 0 {
			n++
		}
	}
	return n
}

// serve runs one subscriber's connection: this goroutine writes, another one reads. Whoever
// ends it takes the subscriber out first: a peer that sees the end is no longer counted.
func (p *Publisher) serve(c *peer, r *bufio.Reader) {
	if greet(c, r, "PUB", "SUB", "XSUB") != nil {
		return
	}
	s := &subscriber{peer: c, queue: make(chan []byte, mostQueued)}
	p.mu.Lock()
	p.subs[s] = struct{}{}
	p.mu.Unlock()
	gone := make(chan struct{})
	p.peers.wg.Go(func() {
		defer close(gone)
		defer p.leave(s)
		p.peers.guard(c, func() { p.listenTo(s, r) })
	})
	defer func() {
		p.leave(s)
		<-gone
	}()
	for more := true; more; {
		select {
		case data := <-s.queue:
			more = send(c, data) == nil
			s.bytes.Add(-int64(len(data)))
		case <-gone:
			more = false
		}
	}
}

// leave ends a subscriber and its connection.
func (p *Publisher) leave(s *subscriber) {
	p.mu.Lock()
	delete(p.subs, s)
	p.mu.Unlock()
	p.peers.drop(s.peer)
}

// listenTo reads what a subscriber wants, until it has gone or asks for too much.
func (p *Publisher) listenTo(s *subscriber, r *bufio.Reader) {
	for {
		got, err := readParcel(r)
		if err != nil {
			return
		}
		switch {
		case got.command == "PING" && len(got.data) >= 2:
			if !s.put(command("PONG", got.data[2:])) { // the data begins with a time to live
				return
			}
		case got.command == "SUBSCRIBE":
			err = p.subscribe(s, got.data, true)
		case got.command == "CANCEL":
			err = p.subscribe(s, got.data, false)
		case len(got.frames) == 1 && len(got.frames[0]) > 0 && got.frames[0][0] <= 1:
			err = p.subscribe(s, got.frames[0][1:], got.frames[0][0] == 1)
		}
		if err != nil {
			return
		}
	}
}

// subscribe adds a prefix of topics to the subscriber's, or takes it away.
func (p *Publisher) subscribe(s *subscriber, topic []byte, on bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(s.topics, func(t []byte) bool { return bytes.Equal(t, topic) })
	switch {
	case !on && at >= 0:
		s.topics = slices.Delete(s.topics, at, at+1)
	case on && len(s.topics) == mostTopics:
		return fmt.Errorf("%w: more than %d subscriptions", errPeer, mostTopics)
	case on:
		s.topics = append(s.topics, topic)
		p.peers.hear(s.peer)
	}
	return nil
}

// Close gives subscribers so long to take what they have not yet taken, and ends their
// connections.
func (p *Publisher) Close(timeout time.Duration) {
	const looks = 100 // are counted, not the clock: subscribers' goroutines run no less than this one
	for range looks {
		if !p.queued() {
			break
		}
		time.Sleep(timeout / looks)
	}
	p.peers.stop()
}

// queued tells whether anything waits for a subscriber.
func (p *Publisher) queued() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.subs {
		if s.bytes.Load() > 0 {
			return true
		}
	}
	return false
}

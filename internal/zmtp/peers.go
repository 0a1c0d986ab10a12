package zmtp

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/lutra-lm/lutra/internal/parallel"
)

// mostPeers bounds the connections of a socket. For a further one the oldest silent peer gives
// its place; where none is silent, the further one is closed.
const mostPeers = 64

// sendTime is the time that a peer may take nothing of what is sent.
const sendTime = 30 * time.Second

// redial is the time until a connection is tried again.
const redial = time.Second

// peers are the connections of a socket, each with a goroutine.
type peers struct {
	serve  func(c *peer, r *bufio.Reader) // until the peer has gone
	failed func(error)                    // told of a panic

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu   sync.Mutex
	list []*peer // the oldest first
}

// peer is one of the connections.
type peer struct {
	net.Conn
	heard bool // it has asked for something; guarded by peers.mu
}

// start makes serve ready for connections.
func (p *peers) start(serve func(c *peer, r *bufio.Reader), failed func(error)) {
	p.serve, p.failed = serve, failed
	p.ctx, p.cancel = context.WithCancel(context.Background())
}

// listen serves those who connect to l, until stop.
func (p *peers) listen(l net.Listener) {
	context.AfterFunc(p.ctx, func() { l.Close() })
	p.wg.Go(func() {
		for p.ctx.Err() == nil {
			c, err := l.Accept()
			if err != nil {
				p.pause()
				continue
			}
			if c := p.admit(c); c != nil {
				p.wg.Go(func() { p.run(c) })
			}
		}
	})
}

// dial connects to addr, and again whenever the connection has ended, until stop.
func (p *peers) dial(addr string) {
	p.wg.Go(func() {
		var d net.Dialer
		for p.ctx.Err() == nil {
			if c, err := d.DialContext(p.ctx, "tcp", addr); err == nil {
				if c := p.admit(c); c != nil {
					p.run(c)
				}
			}
			p.pause()
		}
	})
}

// pause waits before something is tried again.
func (p *peers) pause() {
	select {
	case <-time.After(redial):
	case <-p.ctx.Done():
	}
}

// admit gives a connection a place; nil: there is none, and it is closed.
func (p *peers) admit(c net.Conn) *peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) == mostPeers {
		if i := slices.IndexFunc(p.list, func(c *peer) bool { return !c.heard }); i >= 0 {
			p.list[i].Close()
			p.list = slices.Delete(p.list, i, i+1)
		}
	}
	if len(p.list) == mostPeers || p.ctx.Err() != nil {
		c.Close()
		return nil
	}
	admitted := &peer{Conn: c}
	p.list = append(p.list, admitted)
	return admitted
}

// hear notes that a peer has asked for something: it keeps its place.
func (p *peers) hear(c *peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.heard = true
}

// run serves a connection until it ends.
func (p *peers) run(c *peer) {
	defer p.drop(c)
	p.guard(c, func() { p.serve(c, bufio.NewReaderSize(c, 2*mostFrame)) })
}

// guard calls f, which serves a connection: a panic ends that alone.
func (p *peers) guard(c *peer, f func()) {
	if err := parallel.Try(func() error { f(); return nil }); err != nil {
		p.drop(c)
		p.failed(fmt.Errorf("zmtp: the connection with %v: %w", c.RemoteAddr(), err))
	}
}

// drop takes a peer's place and then closes its connection: a peer that sees the end finds room
// when it connects again.
func (p *peers) drop(c *peer) {
	p.mu.Lock()
	if i := slices.Index(p.list, c); i >= 0 {
		p.list = slices.Delete(p.list, i, i+1)
	}
	p.mu.Unlock()
	c.Close()
}

// stop ends all connections and waits for what serves them.
func (p *peers) stop() {
	p.cancel()
	p.mu.Lock()
	for _, c := range p.list {
		c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// send writes to a peer.
func send(c net.Conn, data []byte) error {
	if err := c.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return err
	}
	_, err := c.Write(data)
	return err
}

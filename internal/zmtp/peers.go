package zmtp

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"
)

// mostPeers bounds the connections of a socket; further ones are closed.
const mostPeers = 64

// sendTime is the time that a peer may take nothing of what is sent.
const sendTime = 30 * time.Second

// redial is the time until a connection is tried again.
const redial = time.Second

// peers are the connections of a socket, each with a goroutine.
type peers struct {
	serve func(c net.Conn, r *bufio.Reader) // until the peer has gone

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// start makes serve ready for connections.
func (p *peers) start(serve func(c net.Conn, r *bufio.Reader)) {
	p.serve, p.conns = serve, map[net.Conn]struct{}{}
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
			p.wg.Go(func() { p.run(c) })
		}
	})
}

// dial connects to addr, and again whenever the connection has ended, until stop.
func (p *peers) dial(addr string) {
	p.wg.Go(func() {
		var d net.Dialer
		for p.ctx.Err() == nil {
			if c, err := d.DialContext(p.ctx, "tcp", addr); err == nil {
				p.run(c)
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

// run serves a connection and closes it.
func (p *peers) run(c net.Conn) {
	defer c.Close()
	p.mu.Lock()
	room := len(p.conns) < mostPeers && p.ctx.Err() == nil
	if room {
		p.conns[c] = struct{}{}
	}
	p.mu.Unlock()
	if !room {
		return
	}
	p.serve(c, bufio.NewReaderSize(c, 2*mostFrame))
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

// stop ends all connections and waits for what serves them.
func (p *peers) stop() {
	p.cancel()
	p.mu.Lock()
	for c := range p.conns {
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

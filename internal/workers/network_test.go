package workers

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// network has the pipes on which the servers of a test with a fake clock listen, by address. On that clock computing takes no
// time, so only a silent server is slow.
type network map[string]*pipes

// pipes is a listener.
type pipes struct {
	addr   *net.TCPAddr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return p.addr }

// serves is the function of that name, of a server on n.
func (n network) serves(t *testing.T, wrap func(http.Handler) http.Handler) *httptest.Server {
	t.Helper()
	p := &pipes{addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2 + len(n)}, conns: make(chan net.Conn), closed: make(chan struct{})}
	n[p.addr.String()] = p
	live := httptest.NewUnstartedServer(handler(t, wrap))
	live.Listener.Close()
	live.Listener = p
	live.Start()
	t.Cleanup(live.Close)
	return live
}

// dial connects a worker.
func (n network) dial(ctx context.Context, address string) (net.Conn, error) {
	p := n[address]
	if p == nil {
		return nil, fmt.Errorf("nobody listens at %s", address)
	}
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// asks is the function of that name, of a model whose workers are on n.
func (n network) asks(t *testing.T, opt Options, servers ...*httptest.Server) rig {
	t.Helper()
	r := asks(t, opt, servers...)
	for _, m := range r.pool.places {
		made := m.make
		m.make = func(host string) *worker {
			w := made(host)
			w.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, address string) (net.Conn, error) {
				return n.dial(ctx, address)
			}
			return w
		}
	}
	return r
}

package zmtp

import (
	"bufio"
	"fmt"
	"net"
)

// Answerer answers the request of a peer by any number of messages. It returns the first
// error of send.
type Answerer func(request []byte, send func(frames ...[]byte) error) error

// Router is a ROUTER socket that answers the requests of REQ and DEALER sockets: a frame
// after an empty one. The answers to it begin with an empty frame too.
type Router struct {
	peers    peers
	listener net.Listener
	answer   Answerer
}

// NewRouter listens on e, whether it is one to bind or not. answer is called by many
// goroutines. failed is told of panics, each of which has ended one connection.
func NewRouter(e Endpoint, answer Answerer, failed func(error)) (*Router, error) {
	l, err := net.Listen("tcp", e.Addr)
	if err != nil {
		return nil, fmt.Errorf("zmtp: %w", err)
	}
	r := &Router{listener: l, answer: answer}
	r.peers.start(r.serve, failed)
	r.peers.listen(l)
	return r, nil
}

// Addr returns the address where the socket listens.
func (r *Router) Addr() net.Addr { return r.listener.Addr() }

// serve answers one peer.
func (r *Router) serve(c *peer, in *bufio.Reader) {
	if greet(c, in, "ROUTER", "REQ", "DEALER", "ROUTER") != nil {
		return
	}
	reply := func(frames ...[]byte) error {
		return send(c, message(append([][]byte{nil}, frames...)...))
	}
	for {
		got, err := readParcel(in)
		if err != nil {
			return
		}
		switch {
		case got.command == "PING" && len(got.data) >= 2:
			err = send(c, command("PONG", got.data[2:]))
		case len(got.frames) == 2 && len(got.frames[0]) == 0:
			r.peers.hear(c)
			err = r.answer(got.frames[1], reply)
		}
		if err != nil {
			return
		}
	}
}

// Close ends all connections.
func (r *Router) Close() { r.peers.stop() }

package zmtp

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Endpoint is an address of ZeroMQ's form tcp://HOST:PORT.
type Endpoint struct {
	Addr  string // HOST:PORT as package net wants it
	Binds bool   // it is one to listen on: the host is *, or of IPv6 with ::
}

// ParseEndpoint reads tcp://HOST:PORT. As in vLLM, tcp://*:5557 is bound and
// tcp://picker:5557 connected to.
func ParseEndpoint(s string) (Endpoint, error) {
	rest, ok := strings.CutPrefix(s, "tcp://")
	host, port, err := net.SplitHostPort(rest)
	if n, bad := strconv.ParseUint(port, 10, 16); !ok || err != nil || host == "" || bad != nil || n == 0 && host != "*" {
		return Endpoint{}, fmt.Errorf("%q is not of the form tcp://HOST:PORT", s)
	}
	e := Endpoint{Addr: rest, Binds: host == "*" || strings.Contains(host, "::")}
	if host == "*" {
		e.Addr = ":" + port
	}
	return e, nil
}

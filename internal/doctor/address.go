package doctor

import (
	"errors"
	"net"
)

// Address is one that a server is to listen on.
type Address struct {
	Addr   string
	Serves bool  // one does already
	Err    error // it cannot be listened on
}

// Try listens on an address for a moment. Where that fails, serves says whether a server is why.
func Try(addr string, serves func() bool) Address {
	a := Address{Addr: addr}
	l, err := net.Listen("tcp", addr)
	if err == nil {
		a.Err = l.Close()
	} else if a.Serves = serves(); !a.Serves {
		a.Err = err
	}
	return a
}

func (a Address) finding() Finding {
	f := Finding{What: "address", Says: a.Addr}
	switch {
	case a.Serves:
		f.Says += ", where a server is ready"
	case a.Err != nil:
		var at *net.OpError
		if errors.As(a.Err, &at) { // without the address again
			a.Err = at.Err
		}
		f.Says += ": " + a.Err.Error()
		f.Level, f.Do, f.Run = Stops, "end the program that listens there, or choose another port", "lutra serve --addr 127.0.0.1:8081"
	}
	return f
}

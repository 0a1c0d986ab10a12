package zmtp

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// handshakeTime is the time that a peer may take to say what it is.
const handshakeTime = 10 * time.Second

// greeting begins either side of a connection: the signature, version 3.0 and the mechanism NULL.
var greeting = func() (g [64]byte) {
	g[0], g[9], g[10] = 0xff, 0x7f, 3
	copy(g[12:], "NULL")
	return g
}()

// greet exchanges greetings and READY commands over c as a socket of type own. r reads
// what c receives; the peer must be a socket of one of the types peers.
func greet(c net.Conn, r *bufio.Reader, own string, peers ...string) error {
	if err := c.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return err
	}
	if _, err := c.Write(greeting[:]); err != nil {
		return err
	}
	var g [64]byte
	if _, err := io.ReadFull(r, g[:]); err != nil {
		return err
	}
	if g[0] != greeting[0] || g[9]&1 == 0 || g[10] < greeting[10] || string(g[12:32]) != string(greeting[12:32]) {
		return fmt.Errorf("%w: it does not greet as ZMTP 3 without encryption", errPeer)
	}
	if _, err := c.Write(command("READY", property(nil, "Socket-Type", own))); err != nil {
		return err
	}
	ready, err := readParcel(r)
	if err != nil {
		return err
	}
	if kind := propertyOf(ready.data, "Socket-Type"); ready.command != "READY" || !slices.Contains(peers, kind) {
		return fmt.Errorf("%w: %q of a socket of type %q, want one of %v", errPeer, ready.command, kind, peers)
	}
	return c.SetDeadline(time.Time{})
}

// property appends a name and its value.
func property(dst []byte, name, value string) []byte {
	dst = append(append(dst, byte(len(name))), name...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(value)))
	return append(dst, value...)
}

// propertyOf returns the value of a name in a list of properties; empty: it is not there.
func propertyOf(list []byte, name string) string {
	for len(list) > 0 {
		n := 1 + int(list[0])
		if len(list) < n+4 {
			return ""
		}
		size := uint64(binary.BigEndian.Uint32(list[n:]))
		if uint64(len(list)-n-4) < size {
			return ""
		}
		if string(list[1:n]) == name {
			return string(list[n+4 : n+4+int(size)])
		}
		list = list[n+4+int(size):]
	}
	return ""
}

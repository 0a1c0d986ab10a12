package zmtp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The flags of a frame.
const (
	flagMore    = 1 // the message goes on
	flagLong    = 2 // the length has eight bytes
	flagCommand = 4
)

// What a peer may send at most. Subscriptions and requests are far smaller.
const (
	mostFrame  = 512 // bytes
	mostFrames = 8   // of a message
)

// errPeer says that a peer does not keep to the protocol.
var errPeer = errors.New("zmtp: the peer does not keep to the protocol")

// appendFrame appends a frame to dst.
func appendFrame(dst []byte, flags byte, body []byte) []byte {
	if len(body) > 255 {
		dst = append(dst, flags|flagLong)
		dst = binary.BigEndian.AppendUint64(dst, uint64(len(body)))
	} else {
		dst = append(dst, flags, byte(len(body)))
	}
	return append(dst, body...)
}

// message encodes one message of these frames.
func message(frames ...[]byte) []byte {
	size := 0
	for _, f := range frames {
		size += 9 + len(f)
	}
	dst := make([]byte, 0, size)
	for i, f := range frames {
		flags := byte(flagMore)
		if i == len(frames)-1 {
			flags = 0
		}
		dst = appendFrame(dst, flags, f)
	}
	return dst
}

// command encodes a command with its data.
func command(name string, data []byte) []byte {
	body := append([]byte{byte(len(name))}, name...)
	return appendFrame(nil, flagCommand, append(body, data...))
}

// readFrame reads a frame of at most mostFrame bytes.
func readFrame(r *bufio.Reader) (flags byte, body []byte, err error) {
	var head [9]byte
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		return 0, nil, err
	}
	flags = head[0]
	size := uint64(head[1])
	if flags&flagLong != 0 {
		if _, err := io.ReadFull(r, head[2:]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(head[1:])
	}
	if flags&^(flagMore|flagLong|flagCommand) != 0 || size > mostFrame {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes with flags %#x", errPeer, size, flags)
	}
	body = make([]byte, size)
	_, err = io.ReadFull(r, body)
	return flags, body, err
}

// parcel is a peer's unit of sending: a command, or the frames of a message.
type parcel struct {
	command string
	data    []byte // of the command
	frames  [][]byte
}

// readParcel reads a command or a whole message.
func readParcel(r *bufio.Reader) (p parcel, err error) {
	for {
		flags, body, err := readFrame(r)
		if err != nil {
			return parcel{}, err
		}
		if flags&flagCommand != 0 {
			if p.frames != nil || flags&flagMore != 0 || len(body) == 0 || int(body[0]) >= len(body) {
				return parcel{}, fmt.Errorf("%w: a command of %d bytes", errPeer, len(body))
			}
			n := 1 + int(body[0])
			return parcel{command: string(body[1:n]), data: body[n:]}, nil
		}
		if p.frames = append(p.frames, body); len(p.frames) > mostFrames {
			return parcel{}, fmt.Errorf("%w: a message of more than %d frames", errPeer, mostFrames)
		}
		if flags&flagMore == 0 {
			return p, nil
		}
	}
}

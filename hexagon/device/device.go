package device

import (
	"context"
	"fmt"
)

// Device computes packets over the memory it shares with the host. One goroutine
// uses a device at a time.
type Device interface {
	// Name is "go", "qemu" or "fastrpc".
	Name() string
	// Memory returns the memory to which offsets of packets refer. Its length is fixed.
	Memory() []byte
	// Run computes packets in order, stops at the first that fails, and returns what
	// was counted. After an error that is no *PacketError the device is lost. It
	// returns when ctx ends, and the device is lost then, too.
	Run(ctx context.Context, packets []Packet) (Counts, error)
	Close() error
}

// PacketError says that a device refused a packet.
type PacketError struct {
	Index  int // among the packets of the run
	Op     Op
	Status Status
}

func (e *PacketError) Error() string {
	return fmt.Sprintf("hexagon: packet %d, operation %d, was refused with status %d", e.Index, e.Op, e.Status)
}

package hexagon

import (
	"context"
	"unsafe"

	"github.com/lutra-lm/lutra/hexagon/device"
)

// refDevice computes with the definitions of the operations, one packet after the
// other. It is slow and obviously right.
type refDevice struct {
	mem []byte
}

func newRefDevice(bytes int) (device.Device, error) {
	return &refDevice{mem: alignedBytes(bytes)}, nil
}

func newGoDevice(bytes int) (device.Device, error) { return device.NewGo(nil, bytes) }

func alignedBytes(n int) []byte {
	b := make([]byte, n+device.Align)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (device.Align - 1)
	return b[skip : skip+n]
}

func (d *refDevice) Name() string   { return "ref" }
func (d *refDevice) Memory() []byte { return d.mem }
func (d *refDevice) Close() error   { return nil }

func (d *refDevice) Run(ctx context.Context, packets []device.Packet) (device.Counts, error) {
	for i := range packets {
		p := &packets[i]
		if s := p.Check(d.mem); s != device.StatusOK {
			return device.Counts{}, &device.PacketError{Index: i, Op: p.Op, Status: s}
		}
		device.Define(d.mem, *p)
	}
	return device.Counts{}, ctx.Err()
}

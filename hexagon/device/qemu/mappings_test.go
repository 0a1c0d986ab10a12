package qemu

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	drawn "github.com/lutra-lm/lutra/hexagon/device/exercise"
)

// Behind the first mapping an operand is as good as in it; across the end of one, or where none is, it is refused.
func TestEachOperandLiesInOneMapping(t *testing.T) {
	if err := mappingsDiffer(t, open(t, Options{Memory: MaxMemory, KeepTCM: true})); err != nil {
		t.Error(err)
	}
}

// mappingsDiffer moves operands of all operations, one by one, and says what goes wrong.
func mappingsDiffer(t *testing.T, d *Device) error {
	last := uint32((MaxMemory - 1) / device.MappingBytes * device.MappingBytes)
	g, want := drawn.New(16, make([]byte, drawn.Memory)), make([]byte, drawn.Memory)
	copy(d.Memory(), g.Memory()[:device.ExpTableBytes])
	copy(want, g.Memory()[:device.ExpTableBytes])
	// run says whether a packet ends with a status, which is Check's too.
	run := func(p device.Packet, want device.Status) error {
		var refused *device.PacketError
		_, err := d.Run(t.Context(), []device.Packet{p})
		if got := p.Check(d.Memory()); got != want || (want == device.StatusOK) != (err == nil) || err != nil && !(errors.As(err, &refused) && refused.Status == want) {
			return fmt.Errorf("it ends with %v, Check says %d, want %d", err, got, want)
		}
		return nil
	}
	moved := 0
	for _, op := range slices.Repeat(device.Ops(), 3) {
		p := g.Of(op)
		g.Operands(want)
		device.Define(want, p)
		operands, _ := p.Operands(drawn.Memory)
		for _, o := range operands {
			arg := slices.Index(p.Args[:], o.Offset)
			if o.Offset < device.TCMBytes || arg < 0 && o.Name != "" {
				continue
			}
			moved++
			to := last
			place := func(to uint32) (q device.Packet) {
				g.Operands(d.Memory())
				if q = p; o.Name != "" {
					copy(d.Memory()[to:], d.Memory()[o.Offset:][:o.Size()])
					q.Args[arg] = to
					return q
				}
				// Pieces: all of them, or with a place that is no mapping's beginning the last one alone.
				table := device.View[uint32](d.Memory(), p.Args[1], int(p.Args[2]))
				for i, from := range table {
					at := from + p.Args[4]
					copy(d.Memory()[to+at:], d.Memory()[at:][:p.Args[3]])
					if to%device.MappingBytes == 0 || i+1 == len(table) {
						table[i] += to / device.MappingBytes * device.MappingBytes
					}
				}
				return q
			}
			if err := run(place(to), device.StatusOK); err != nil {
				return fmt.Errorf("%v with %q in another mapping: %w", op, o.Name, err)
			}
			for _, w := range operands {
				if w.Rule&device.Writes == 0 || w.Rule&device.Scratch != 0 {
					continue
				}
				at := w.Offset
				if at == o.Offset {
					at = to
				}
				for i := range uint32(w.Rows) {
					if by := i * uint32(w.Stride); !bytes.Equal(d.Memory()[at+by:][:w.Bytes], want[w.Offset+by:][:w.Bytes]) {
						return fmt.Errorf("%v with %q in another mapping writes another %q", op, o.Name, w.Name)
					}
				}
			}
			if across := last - device.Align; o.Name != "" && o.Size() > device.Align || o.Name == "" && p.Args[2] > 1 {
				if o.Name == "" {
					across = last + device.Align
				}
				if err := run(place(across), device.StatusRange); err != nil {
					return fmt.Errorf("%v with %q in two mappings: %w", op, o.Name, err)
				}
			}
			if q := p; o.Name != "" {
				for _, q.Args[arg] = range []uint32{MaxMemory, 1<<32 - 1<<20} {
					if err := run(q, device.StatusRange); err != nil {
						return fmt.Errorf("%v with %q where no mapping is: %w", op, o.Name, err)
					}
				}
			}
		}
	}
	if moved < 100 {
		return fmt.Errorf("%d operands have been moved", moved)
	}
	return nil
}

// A page of the emulator's is 64 KiB.
func TestAMemoryNeedBeNoWholePagesOfTheEmulator(t *testing.T) {
	for _, size := range []int{device.TCMBytes + 4096, device.MappingBytes - 4096, device.MappingBytes + 4096} {
		d := open(t, Options{Memory: size, KeepTCM: true})
		last := d.Memory()[size-device.Align:]
		copy(last, "the end")
		if _, err := d.Run(t.Context(), []device.Packet{{Op: device.OpCopy, Args: [15]uint32{0, uint32(size - device.Align), device.Align}}}); err != nil || !bytes.Equal(d.Memory()[:device.Align], last) {
			t.Errorf("%d bytes: %v", size, err)
		}
		if _, err := d.Run(t.Context(), []device.Packet{{Op: device.OpCopy, Args: [15]uint32{0, uint32(size), device.Align}}}); err == nil {
			t.Errorf("%d bytes: a copy from behind them is %v", size, err)
		}
	}
}

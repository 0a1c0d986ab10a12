package device_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/device/exercise"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// newGo returns a device in Go, with the memory of an exercise.
func newGo(t testing.TB, p *pool.Pool) *device.Go {
	d, err := device.NewGo(p, exercise.Memory)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTheGoDeviceComputesTheDefinitionsBits(t *testing.T) {
	threads := pool.New(2)
	defer threads.Close()
	for _, isa := range cpu.Supported() {
		for _, p := range []*pool.Pool{nil, threads} {
			d := newGo(t, p)
			want := newGo(t, nil)
			g := exercise.New(uint64(isa), d.Memory())
			copy(want.Memory(), d.Memory())
			restore := cpu.Override(isa)
			for range sweep.Cases(70, 100) {
				p := g.Packet()
				g.Operands(want.Memory()) // the rest is the same since the last packet
				if _, err := d.Run(t.Context(), []device.Packet{p}); err != nil {
					t.Fatalf("%v: %v", p, err)
				}
				device.Define(want.Memory(), p)
				if !bytes.Equal(d.Memory(), want.Memory()) {
					t.Fatalf("%v: %v: the memory differs", isa, p)
				}
			}
			restore()
		}
	}
}

func TestADeviceBesideAnotherComputesItsBitsInATCMOfItsOwn(t *testing.T) {
	d := newGo(t, nil)
	other := newGo(t, nil)
	want := other.Memory()
	beside := device.NewBeside(d, nil)
	g := exercise.New(3, d.Memory())
	for range 100 {
		p := g.Packet()
		copy(want, d.Memory())
		copy(beside.TCM(), d.Memory())
		for _, run := range []*device.Go{other, beside} {
			if _, err := run.Run(t.Context(), []device.Packet{p}); err != nil {
				t.Fatalf("%v: %v", p, err)
			}
		}
		if !bytes.Equal(beside.TCM(), want[:device.TCMBytes]) || !bytes.Equal(d.Memory()[device.TCMBytes:], want[device.TCMBytes:]) {
			t.Fatalf("%v: the memory differs", p)
		}
		copy(want, d.Memory())
		if beside.TCM()[exercise.Table] ^= 1; !bytes.Equal(d.Memory(), want) {
			t.Fatalf("%v: the TCM is shared", p)
		}
	}
}

// Whatever a packet says, the device refuses it or computes something within its memory.
func FuzzPackets(f *testing.F) {
	d := newGo(f, nil)
	memory := d.Memory()
	g := exercise.New(1, memory)
	for range 50 {
		p := g.Packet()
		b := binary.LittleEndian.AppendUint32(nil, uint32(p.Op))
		for _, a := range p.Args {
			b = binary.LittleEndian.AppendUint32(b, a)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) >= 64 {
			p := device.Packet{Op: device.Op(binary.LittleEndian.Uint32(b))}
			for i := range p.Args {
				p.Args[i] = binary.LittleEndian.Uint32(b[4+4*i:])
			}
			b = b[64:]
			if p.Op == device.OpTileMul && p.Args[7] < device.MaxTiles && p.Args[8] < device.MaxTiles && p.Args[3] < device.MaxTiles && p.Args[6] < device.MaxTiles &&
				uint64(p.Args[7])*uint64(p.Args[8])*uint64(p.Args[3]+p.Args[6]) > 1000 {
				continue // correct, but slow
			}
			if _, err := d.Run(t.Context(), []device.Packet{p}); err != nil && p.Check(memory) == device.StatusOK {
				t.Fatalf("%v: %v", p, err)
			}
		}
	})
}

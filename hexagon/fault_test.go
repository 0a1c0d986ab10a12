package hexagon

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
)

// hangingDevice never comes back from the run after so many.
type hangingDevice struct {
	device.Device
	runs int
}

func (d *hangingDevice) Run(ctx context.Context, packets []device.Packet) (device.Counts, error) {
	if d.runs--; d.runs < 0 {
		<-ctx.Done()
		return device.Counts{}, ctx.Err()
	}
	return d.Device.Run(ctx, packets)
}

// hookedDevice gives each packet to before and after.
type hookedDevice struct {
	device.Device
	before func(p *device.Packet) error // nil: nothing
	after  func(p *device.Packet, mem []byte)
}

func (d *hookedDevice) Run(ctx context.Context, packets []device.Packet) (device.Counts, error) {
	for i := range packets {
		p := &packets[i]
		if d.before != nil {
			if err := d.before(p); err != nil {
				return device.Counts{}, err
			}
		}
		if counts, err := d.Device.Run(ctx, packets[i:i+1]); err != nil {
			return counts, err
		}
		if d.after != nil {
			d.after(p, d.Memory())
		}
	}
	return device.Counts{}, nil
}

// hooked is a good device with hooks.
func hooked(bytes int, before func(p *device.Packet) error, after func(p *device.Packet, mem []byte)) (device.Device, error) {
	d, err := device.NewGo(nil, bytes)
	return &hookedDevice{d, before, after}, err
}

var errDied = errors.New("the child has died")

// faultyDevices are devices that start well and fail in their own ways.
var faultyDevices = map[string]Opener{
	"hangs": func(bytes int) (device.Device, error) {
		d, err := device.NewGo(nil, bytes)
		return &hangingDevice{d, 1}, err
	},
	"dies": func(bytes int) (device.Device, error) {
		runs := 0
		return hooked(bytes, func(p *device.Packet) error {
			if p.Op == device.OpGEMV {
				if runs++; runs > 5 {
					return errDied
				}
			}
			return nil
		}, nil)
	},
	"answers nonsense": func(bytes int) (device.Device, error) {
		return hooked(bytes, nil, func(p *device.Packet, mem []byte) {
			if p.Op == device.OpGEMV {
				for i := range 4 * p.Args[3] * p.Args[6] {
					mem[p.Args[0]+i] ^= 0x55
				}
			}
		})
	},
	"mixes up planes": func(bytes int) (device.Device, error) {
		return hooked(bytes, nil, func(p *device.Packet, mem []byte) {
			if p.Op == device.OpTileMulBytes {
				slices.Reverse(mem[p.Args[0]:][:p.Args[4]*p.Args[5]*device.BytePlanes*2048])
			}
		})
	},
	"mixes up tiles": func(bytes int) (device.Device, error) {
		return hooked(bytes, nil, func(p *device.Packet, mem []byte) {
			if p.Op == device.OpDequant {
				slices.Reverse(mem[p.Args[0]:][:p.Args[7]*8*2048])
			}
		})
	},
}

func TestADeviceThatFailsEndsTheStepAndTheCPUGoesOnIfItIsToldTo(t *testing.T) {
	p := newPool(t)
	for name, open := range faultyDevices {
		for _, spare := range []bool{false, true} {
			f, err := embedded.Open("lutra-tiny-s")
			if err != nil {
				t.Fatal(err)
			}
			path := map[string]Path{"mixes up tiles": PathTiles, "mixes up planes": PathInt8}[name]
			if path == "" {
				path = PathLookup
			}
			b := New("faulty", open, Options{Path: path, Lookups: -1})
			bundle, err := models.LoadFile(f, models.LoadOptions{Pool: p, Backend: b, Spare: spare})
			if err != nil {
				t.Fatal(err)
			}
			defer bundle.Close()
			if err := b.Start(); err != nil {
				t.Fatal(err)
			}
			if name == "hangs" {
				b.opt.Timeout = 50 * time.Millisecond
			}
			feed := newFeeder(t, bundle.Model)
			if err := feed.seq.Grow(3); err != nil {
				t.Fatal(err)
			}
			forward := func() error {
				feed.batch.Reset()
				feed.batch.Add(feed.seq, 0, 1, 5, 6, 7)
				return bundle.Model.Forward(&feed.batch, feed.cache)
			}
			var fault *models.FaultError
			if err := forward(); !errors.As(err, &fault) || fault.Spare != spare {
				t.Fatalf("a device that %s: Forward = %v, want a FaultError with Spare %t", name, err, spare)
			}
			if name == "dies" && !errors.Is(fault, errDied) {
				t.Errorf("the fault %v does not wrap its cause", fault)
			}
			t.Logf("a device that %s: %v", name, fault)
			err = forward()
			if !spare {
				if !errors.As(err, &fault) {
					t.Errorf("a device that %s: the next Forward = %v, want the fault again", name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("a device that %s: the CPU does not go on: %v", name, err)
			}
			cpu := onDevice(t, "", Options{}, p, embeddedFile("lutra-tiny-s"))
			if want := newFeeder(t, cpu.Model).feed(1, 5, 6, 7); !slices.Equal(feed.batch.Logits, want) {
				t.Errorf("a device that %s: the CPU goes on with other logits than its own", name)
			}
		}
	}
}

func TestADeviceThatCannotComputePowersIsNotStarted(t *testing.T) {
	b := New("faulty", func(bytes int) (device.Device, error) {
		return hooked(bytes, nil, func(p *device.Packet, mem []byte) {
			if p.Op == device.OpExpTable {
				mem[p.Args[0]+1] ^= 1
			}
		})
	}, Options{})
	defer b.Close()
	if err := b.Start(); err == nil {
		t.Error("its table is wrong and nobody looks")
	}
}

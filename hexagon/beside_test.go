package hexagon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/device/qemu"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
)

// besideDevice is a device whose launches of experts end when the CPU has done something meanwhile.
type besideDevice struct {
	device.Device
	mu        sync.Mutex
	events    []string
	submitted chan bool // closed when a layer's launch has been given to the device; nil: no layer has chosen experts
	done      chan bool // closed when the CPU has begun and ended a task since
	gone      bool      // the CPU panics then
	dies      bool      // the device fails then
	late      bool      // nothing has been submitted for too long
}

var errCPU = errors.New("the CPU has panicked")

// never bounds what waits for an event that does not come.
const never = time.Minute

func (d *besideDevice) add(event string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, event)
}

func (d *besideDevice) Run(ctx context.Context, packets []device.Packet) (device.Counts, error) {
	if !slices.ContainsFunc(packets, func(p device.Packet) bool { return p.Op == device.OpGLU }) {
		return d.Device.Run(ctx, packets)
	}
	d.add("submitted")
	close(d.submitted)
	select {
	case <-d.done:
	case <-ctx.Done():
	}
	defer d.add("waited")
	if d.dies {
		return device.Counts{}, errDied
	}
	return d.Device.Run(ctx, packets)
}

// observe sees the tasks of the CPU, each when it has ended. The next one begins when observe has returned.
func (d *besideDevice) observe(t pool.Task, _ int, _ time.Duration) {
	select {
	case <-d.submitted: // nil waits
	default:
		if d.submitted == nil || d.late || fmt.Sprintf("%T", t) == "*models.expertPass" {
			return
		}
		select { // begun before, perhaps
		case <-d.submitted:
		case <-time.After(never):
			d.late = true
			d.add("nothing is submitted")
		}
		if d.gone {
			close(d.done)
			panic(errCPU)
		}
		return
	}
	select {
	case <-d.done:
	default:
		d.add("the CPU has begun and ended")
		close(d.done)
	}
}

// coldOn is a mixture whose experts from the fourth on the CPU has, on such a device.
func coldOn(t *testing.T, p *pool.Pool, spare bool, open Opener) (*models.Bundle, *besideDevice) {
	d := &besideDevice{}
	b := New("test", func(bytes int) (dev device.Device, err error) {
		d.Device, err = open(bytes)
		return d, err
	}, Options{Path: PathLookup, Plan: capacityPlan(256, 4, 256, 4), Timeout: never})
	f, err := coldFile()
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := models.LoadFile(f, models.LoadOptions{Pool: p, Backend: b, Spare: spare, Routed: func(int, []int32, []float32) {
		if d.submitted = nil; b.Err() == nil {
			d.submitted, d.done = make(chan bool), make(chan bool)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bundle.Close() })
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	return bundle, d
}

var coldFile = fileOf(tinyExperts, gguf.TQ2_0)

func TestTheCPUMultipliesColdExpertsWhileALaunchIsUnderWay(t *testing.T) {
	sweep.Full(t)
	for name, open := range map[string]Opener{
		"go":   func(bytes int) (device.Device, error) { return device.NewGo(nil, bytes) },
		"qemu": func(bytes int) (device.Device, error) { return qemu.Open(qemu.Options{Memory: bytes}) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "qemu" {
				sweep.Hexagon(t, "qemu-hexagon")
			}
			p := newPool(t)
			alone, b := mixtureOn(t, p, Options{Path: PathLookup, Plan: capacityPlan(256, 4, 256, 4)}, coldFile)
			tokens := someTokens(leastChunk)
			want := slices.Clone(newFeeder(t, alone.Model).feed(len(tokens), tokens...))
			if c := b.Counts(); c.Cold == 0 || c.Computed == 0 || c.Overflow != 0 {
				t.Fatalf("%+v", c)
			}
			bundle, d := coldOn(t, p, false, open)
			p.Observe(d.observe)
			got := newFeeder(t, bundle.Model).feed(len(tokens), tokens...)
			p.Observe(nil)
			if layer := []string{"submitted", "the CPU has begun and ended", "waited"}; !slices.Equal(d.events, slices.Repeat(layer, 2)) {
				t.Errorf("events: %q", d.events)
			}
			if !slices.Equal(got, want) {
				t.Errorf("NMSE %.3g, want the same bits", nmse(got, want))
			}
		})
	}
}

func TestAFaultOfEitherSideEndsTheStepWhenBothHaveEnded(t *testing.T) {
	p := newPool(t)
	tokens := someTokens(leastChunk)
	want := slices.Clone(newFeeder(t, onDevice(t, "", Options{}, p, coldFile).Model).feed(len(tokens), tokens...))
	for _, dies := range []bool{true, false} {
		bundle, d := coldOn(t, p, true, func(bytes int) (device.Device, error) { return device.NewGo(nil, bytes) })
		d.dies, d.gone = dies, !dies
		f := newFeeder(t, bundle.Model)
		if err := f.seq.Grow(len(tokens)); err != nil {
			t.Fatal(err)
		}
		forward := func() error {
			f.batch.Reset()
			f.batch.Add(f.seq, 0, len(tokens), tokens...)
			return parallel.Try(func() error { return bundle.Model.Forward(&f.batch, f.cache) })
		}
		p.Observe(d.observe)
		err := forward()
		p.Observe(nil)
		var panicked *parallel.Panic
		if dies != errors.Is(err, errDied) || dies == errors.As(err, &panicked) {
			t.Errorf("the step ends with %v", err)
		}
		if n := len(d.events); n == 0 || d.events[n-1] != "waited" {
			t.Errorf("the step has ended, and of the device is known: %q", d.events)
		}
		if !dies {
			continue // a model whose step has panicked is closed
		}
		if err := forward(); err != nil || !(nmse(f.batch.Logits, want) < 1e-9) {
			t.Errorf("the CPU goes on with %v, NMSE %.3g", err, nmse(f.batch.Logits, want))
		}
	}
}

// firstLaunch is a device whose first launch of experts ends when the host has ended a task that it began before, or meanwhile.
type firstLaunch struct {
	device.Device
	first           sync.Once
	submitted, done chan bool
	alone           bool // one of both did not come
}

func (d *firstLaunch) wait(event chan bool) {
	select {
	case <-event:
	case <-time.After(never):
		d.alone = true
	}
}

func (d *firstLaunch) Run(ctx context.Context, packets []device.Packet) (device.Counts, error) {
	if slices.ContainsFunc(packets, func(p device.Packet) bool { return p.Op == device.OpGLU }) {
		d.first.Do(func() {
			close(d.submitted)
			d.wait(d.done)
		})
	}
	return d.Device.Run(ctx, packets)
}

func TestTheHostComputesWhatExpertsHaveNoRoomForWhileALaunchIsUnderWay(t *testing.T) {
	sweep.Full(t)
	for name, c := range map[string]struct{ capacity, more int }{"beyond a capacity": {16, 0}, "of no chunk": {256, 1}} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t)
			step := func(open Opener, opt Options) []float32 {
				b := New("test", open, opt)
				f, err := coldFile()
				if err != nil {
					t.Fatal(err)
				}
				bundle, err := models.LoadFile(f, models.LoadOptions{Pool: p, Backend: b})
				if err != nil {
					t.Fatal(err)
				}
				defer bundle.Close()
				if err := b.Start(); err != nil {
					t.Fatal(err)
				}
				feeder, tokens := newFeeder(t, bundle.Model), someTokens(2*leastChunk)
				feeder.batch.Reset()
				for i, n := range []int{len(tokens), c.more} {
					if n == 0 {
						continue
					}
					seq := feeder.seq
					if i > 0 {
						seq = feeder.cache.Open(nil)
						defer seq.Release()
					}
					if err := seq.Grow(n); err != nil {
						t.Fatal(err)
					}
					feeder.batch.Add(seq, 0, n, tokens[:n]...)
				}
				if err := bundle.Model.Forward(&feeder.batch, feeder.cache); err != nil {
					t.Fatal(err)
				}
				if n := b.Counts(); (n.Overflow > 0) != (c.more == 0) || n.Decoded > 0 != (c.more > 0) || n.Launches == 0 {
					t.Fatalf("%+v", n)
				}
				return slices.Clone(feeder.batch.Logits)
			}
			opt := Options{Path: PathLookup, Plan: capacityPlan(256, 4, c.capacity, allHot), Timeout: 2 * never}
			want := step(func(bytes int) (device.Device, error) { return device.NewGo(nil, bytes) }, opt)
			d := &firstLaunch{submitted: make(chan bool), done: make(chan bool)}
			ended := sync.OnceFunc(func() {
				d.wait(d.submitted)
				close(d.done)
			})
			p.Observe(func(t pool.Task, _ int, _ time.Duration) {
				if fmt.Sprintf("%T", t) == "device.task" {
					ended()
				}
			})
			opt.Pool = p
			got := step(func(bytes int) (dev device.Device, err error) {
				d.Device, err = device.NewGo(nil, bytes)
				return d, err
			}, opt)
			p.Observe(nil)
			if d.alone {
				t.Error("launch and host have not been under way together")
			}
			if !slices.Equal(got, want) {
				t.Errorf("NMSE %.3g, want the same bits", nmse(got, want))
			}
		})
	}
}

package hexagon

import (
	"context"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// hiddenTCM is a device whose TCM the host cannot see, as on a chip: between runs it
// lies elsewhere, and its place in the memory is full of what means nothing.
type hiddenTCM struct {
	device.Device
	tcm []byte
}

func (d *hiddenTCM) Run(ctx context.Context, packets []device.Packet) (device.Counts, error) {
	seen := d.Memory()[:device.TCMBytes]
	copy(seen, d.tcm)
	counts, err := d.Device.Run(ctx, packets)
	copy(d.tcm, seen)
	for i := range seen {
		seen[i] = 0x5a
	}
	return counts, err
}

func TestTheHostNeedsNotSeeTCM(t *testing.T) {
	sweep.Full(t)
	before := kinds
	t.Cleanup(func() { kinds = before })
	kinds = append(slices.Clone(kinds), kinds[0])
	hidden := &kinds[len(kinds)-1]
	hidden.name = "hidden"
	hidden.open = func(bytes int, opt *Options, step func(string)) (device.Device, error) {
		d, err := device.NewGo(opt.Pool, bytes)
		return &hiddenTCM{d, make([]byte, device.TCMBytes)}, err
	}
	p, load := newPool(t), embeddedFile("lutra-tiny-s")
	for _, path := range []Path{PathLookup, PathTiles} {
		var logits [2][]float32
		for i, kind := range []string{"hexagon-go", hidden.name} {
			b := onDevice(t, kind, Options{Path: path}, p, load)
			prompt := b.Tokenizer.Encode(nil, question, tokenizer.Options{ParseSpecial: true})
			logits[i] = slices.Clone(newFeeder(t, b.Model).feed(1, prompt...))
		}
		if !slices.Equal(logits[0], logits[1]) {
			t.Errorf("%s: logits differ", path)
		}
	}
}

// seen is a device whose packets are looked at.
type seen struct {
	device.Device
	packets []device.Packet
}

func (d *seen) Run(ctx context.Context, packets []device.Packet) (device.Counts, error) {
	d.packets = append(d.packets, packets...)
	return d.Device.Run(ctx, packets)
}

// Products by lookups that are neighbours have scratch apart, and each its own behind its tables: so the first tiles of one
// come while the other ends.
func TestNeighboursAmongProductsHaveScratchApart(t *testing.T) {
	before, looked := kinds, &seen{}
	t.Cleanup(func() { kinds = before })
	kinds = append(slices.Clone(kinds), kinds[0])
	kind := &kinds[len(kinds)-1]
	kind.name = "looked at"
	kind.open = func(bytes int, opt *Options, step func(string)) (d device.Device, err error) {
		looked.Device, err = device.NewGo(opt.Pool, bytes)
		return looked, err
	}
	b := onDevice(t, kind.name, Options{Path: PathLookup}, newPool(t), embeddedFile("lutra-tiny-s"))
	newFeeder(t, b.Model).feed(1, b.Tokenizer.Encode(nil, question, tokenizer.Options{ParseSpecial: true})...)
	type span struct{ begin, end int }
	var last span
	products := 0
	for _, p := range looked.packets {
		if p.Op != device.OpGEMV {
			continue
		}
		a := func(i int) int { return int(p.Args[i]) }
		strips, workers := p.GEMVTiles()
		now := span{a(12), a(12) + device.GEMVScratch(a(3), a(6), a(7), a(8), a(9), a(5) != 0, strips, a(14), workers)}
		if now.begin < a(2)+a(3)*device.TableStride(a(7), p.InBytes()) || now.end > device.TCMBytes {
			t.Fatalf("product %d has scratch %v, its tables are at %d", products, now, a(2))
		}
		if now.begin < last.end && last.begin < now.end {
			t.Fatalf("product %d has scratch %v, the one before it %v", products, now, last)
		}
		last = now
		products++
	}
	if products < 10 {
		t.Errorf("%d products", products)
	}
}

package hexagon

import (
	"context"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
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
	before := kinds
	t.Cleanup(func() { kinds = before })
	kinds = append(slices.Clone(kinds), kinds[0])
	hidden := &kinds[len(kinds)-1]
	hidden.name = "hidden"
	hidden.open = func(bytes int, opt *Options) (device.Device, error) {
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

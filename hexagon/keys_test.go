package hexagon

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// history is sequences over a cache that grow, fork and shrink, and two devices that attend
// to them: one that keeps keys and values, and one that is given all of them each time.
type history struct {
	*rand.Rand
	t             *testing.T
	shape         kv.Shape
	cache         *kv.Cache
	keeps, staged *Backend
	window        int // of the second layer
}

func newHistory(t *testing.T, blockLen, keys int) *history {
	h := &history{Rand: rand.New(rand.NewPCG(21, uint64(blockLen))), t: t, shape: kv.Shape{Layers: 2, Heads: 2, HeadDim: 48}}
	var err error
	if h.cache, err = kv.New(h.shape, kv.Options{BlockLen: blockLen, Blocks: 4096 / blockLen}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.cache.Close() })
	open := func(bytes int) (device.Device, error) { return device.NewGo(nil, bytes) }
	h.keeps, _ = started(t, open, Options{Keys: keys})
	h.staged, _ = started(t, open, Options{Keys: 1})
	return h
}

// step adds n positions to each sequence and attends to them in both layers. It returns what
// the host wrote for it.
func (h *history) step(n int, seqs ...*kv.Sequence) int64 {
	h.t.Helper()
	width := h.shape.Heads * h.shape.HeadDim
	a := models.Attention{Heads: 2 * h.shape.Heads, Width: 4 * width, Cache: h.cache, Scale: 0.2}
	for _, s := range seqs {
		from := s.Len()
		if err := s.Grow(n); err != nil {
			h.t.Fatal(err)
		}
		for pos := from; pos < from+n; pos++ {
			a.Rows = append(a.Rows, models.RowPos{Seq: s, Pos: pos})
			for layer := range h.shape.Layers {
				h.cache.Store(layer, s, pos, gaussians(h.Rand, width), gaussians(h.Rand, width))
			}
		}
	}
	a.QKV = gaussians(h.Rand, len(a.Rows)*a.Width)
	before := h.keeps.Work().Written
	for a.Layer = range h.shape.Layers {
		a.Window = a.Layer * h.window
		var outs [2][]float32
		for i, b := range []*Backend{h.keeps, h.staged} {
			a.Out = make([]float32, len(a.Rows)*2*width)
			if !b.Attend(&a) || b.Err() != nil {
				h.t.Fatal("the device does not do it: ", b.Err())
			}
			outs[i] = a.Out
		}
		if !slices.Equal(outs[0], outs[1]) {
			h.t.Fatalf("layer %d: the keys that the device keeps give other bits", a.Layer)
		}
	}
	return h.keeps.Work().Written - before
}

func TestATokenMovesTheSameBytesWhateverItsContext(t *testing.T) {
	sweep.Full(t)
	h := newHistory(t, 16, 0)
	short, long := h.cache.Open(nil), h.cache.Open(nil)
	h.step(40, short)
	h.step(40+480, long)
	for i := range 40 { // more than a slot
		few, many := h.step(1, short), h.step(1, long)
		if few != many || few <= 0 {
			t.Fatalf("token %d: %d bytes at a context of %d, %d at one of %d", i, few, short.Len(), many, long.Len())
		}
	}
	if s := h.staged.Work().Written; s < 10*h.keeps.Work().Written {
		t.Errorf("%d bytes are written where nothing is kept, %d where keys are", s, h.keeps.Work().Written)
	}
}

// Forks share blocks, copy them, shrink, grow again over what they held, and end, and blocks
// are another's then: attention sees what the cache holds. Few slots go round.
func TestKeptKeysAreThoseOfTheCacheInEveryHistory(t *testing.T) {
	const slot = 2 * 2 * 2 * 2 * 2048 // heads, keys and values, tiles of a head
	for _, c := range []struct{ blockLen, keys int }{{16, 0}, {8, 12 * slot}, {32, 5 * slot}, {64, 40 * slot}} {
		h := newHistory(t, c.blockLen, c.keys)
		h.keeps.attention.tcm.longest, h.staged.attention.tcm.longest, h.window = 128, 128, 45
		seqs := []*kv.Sequence{h.cache.Open(nil)}
		h.step(50, seqs...)
		for range 40 {
			s := h.IntN(len(seqs))
			switch h.IntN(5) {
			case 0:
				if len(seqs) < 4 {
					seqs = append(seqs, seqs[s].Fork())
				}
			case 1:
				seqs[s].Truncate(h.IntN(seqs[s].Len() + 1))
			case 2:
				if len(seqs) > 1 {
					seqs[s].Release()
					seqs = slices.Delete(seqs, s, s+1)
				}
			case 3:
				h.step(1+h.IntN(40), seqs[s])
			default:
				h.step(1, seqs...)
			}
		}
	}
}

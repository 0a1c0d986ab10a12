package hexagon

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// convShape has short convolutions in layers 0, 1 and 3, and attention between them.
var convShape = synthetic.Shape{Name: "conv", Hidden: 256, FFN: 288, Layers: 4, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 300, Context: 512, RopeBase: 10000, Arch: synthetic.LFM2}

func someText(n int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(3 + i*31%290)
	}
	return tokens
}

// A token of a model with short convolutions is a request, as is a chunk of a prompt; what they look back to
// stays on the device, and its last row comes back.
func TestAStepOfShortConvolutionsIsOneRequest(t *testing.T) {
	runs, written, _ := wholeLayers(t, convShape)
	if runs[0] != 1 || runs[1] < 15 {
		t.Errorf("%d requests a token; with the host between products %d", runs[0], runs[1])
	}
	const tail = 4 * 2 * 256
	if n := written[0] - 4*256; n >= 3*tail {
		t.Errorf("%d bytes are written beside the token: what the device has is written again", n)
	}
}

// wholeLayers has a model compute a prompt, which is one request, and a token by whole layers, with the host between
// products, and by the CPU. It checks that logits agree, and returns what a token takes of the first two:
// requests, and bytes written and read.
func wholeLayers(t *testing.T, shape synthetic.Shape) (runs, written, read [2]int64) {
	t.Helper()
	p, load := newPool(t), synthesized(t, shape, gguf.Q4_0)
	var logits [3][]float32
	for i, kind := range []string{"hexagon-go", "hexagon-go", ""} {
		b := onDevice(t, kind, Options{}, p, load)
		f := newFeeder(t, b.Model)
		if i == 1 {
			backendOf(t, b).plan.layers = nil
		}
		if kind == "" {
			logits[i] = append(slices.Clone(f.feed(1, someText(40)...)), f.feed(1, 9)...)
			continue
		}
		d := backendOf(t, b)
		before := d.Work()
		logits[i] = slices.Clone(f.feed(1, someText(40)...))
		if n := d.Work().Runs - before.Runs; i == 0 && n != 1 {
			t.Errorf("a prompt is %d requests", n)
		}
		before = d.Work()
		logits[i] = append(logits[i], f.feed(1, 9)...)
		after := d.Work()
		runs[i], written[i], read[i] = after.Runs-before.Runs, after.Written-before.Written, after.Read-before.Read
		t.Logf("a token: %d requests, %d packets, %d bytes written, %d read", runs[i], after.Packets-before.Packets, written[i], read[i])
	}
	t.Logf("NMSE %.3g between whole layers and single products, %.3g against the CPU", nmse(logits[0], logits[1]), nmse(logits[0], logits[2]))
	if e := nmse(logits[0], logits[1]); !(e <= deviceNoise) {
		t.Errorf("NMSE between whole layers and single products is %.3g", e)
	}
	if e := nmse(logits[0], logits[2]); !(e <= 20*cpuNoise) {
		t.Errorf("NMSE against the CPU is %.3g", e)
	}
	return runs, written, read
}

// conversing is sequences of a model on a device, and their tokens.
type conversing struct {
	t     *testing.T
	b     *Backend
	m     models.Model
	cache *kv.Cache
	seqs  []*kv.Sequence
	texts [][]int32
}

// step computes tokens behind those of sequences, and returns the logits of each one's last.
func (c *conversing) step(of []int, tokens [][]int32) []float32 {
	c.t.Helper()
	var b models.Batch
	for i, s := range of {
		at := c.seqs[s].Len()
		if err := c.seqs[s].Grow(len(tokens[i])); err != nil {
			c.t.Fatal(err)
		}
		c.texts[s] = append(slices.Clone(c.texts[s][:at]), tokens[i]...)
		b.Add(c.seqs[s], at, 1, tokens[i]...)
	}
	if err := c.m.Forward(&b, c.cache); err != nil {
		c.t.Fatal(err)
	}
	for _, s := range of {
		c.seqs[s].Seal(c.texts[s])
	}
	return b.Logits
}

// Sequences fork, go back to checkpoints, end, begin with others' prefixes and are more than there are slots for: the
// device's tails give the bits of those that are written anew each step, and of a text that is computed at once.
func TestKeptTailsAreThoseOfTheStatesInEveryHistory(t *testing.T) {
	sweep.Full(t)
	p := newPool(t)
	for _, c := range []struct {
		shape *synthetic.Shape
		path  Path
		apart int // the layer with attention, if the host computes it
	}{{&convShape, PathLookup, 0}, {&convShape, PathTiles, 0}, {&convShape, PathLookup, 2}, {&deltaShape, PathLookup, 0}, {&deltaShape, PathTiles, 3}} {
		path, load := c.path, synthesized(t, *c.shape, gguf.Q4_0)
		r := rand.New(rand.NewPCG(23, 1))
		var both []*conversing
		for range 2 {
			bundle := onDevice(t, "hexagon-go", Options{Path: path}, p, load)
			d := backendOf(t, bundle).plan.layers
			if c.apart > 0 {
				d.layers[c.apart], d.m.Layers[c.apart] = nil, nil
			}
			c := &conversing{t: t, b: backendOf(t, bundle), m: bundle.Model}
			var err error
			if c.cache, err = kv.New(c.m.Config().KV(), kv.Options{BlockLen: 16, Blocks: 256, States: 24}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.cache.Close() })
			d.tails.slots = 2
			both = append(both, c)
		}
		var last []float32
		step := func(of []int, n int) {
			tokens := make([][]int32, len(of))
			for i := range tokens {
				for range n {
					tokens[i] = append(tokens[i], int32(3+r.IntN(290)))
				}
			}
			both[1].b.layers.step.rec.tails.forget()
			last = slices.Clone(both[0].step(of, tokens))
			if anew := both[1].step(of, tokens); !slices.Equal(last, anew) {
				t.Fatalf("%s, %s: tails that the device keeps give other bits, NMSE %.3g", c.shape.Name, path, nmse(last, anew))
			}
		}
		open := func(text []int32) {
			for _, c := range both {
				s := c.cache.Open(text)
				c.seqs, c.texts = append(c.seqs, s), append(c.texts, slices.Clone(text[:s.Len()]))
			}
		}
		fork := func(s int) {
			for _, c := range both {
				c.seqs, c.texts = append(c.seqs, c.seqs[s].Fork()), append(c.texts, slices.Clone(c.texts[s]))
			}
		}
		all := func() (of []int) {
			for i := range both[0].seqs {
				of = append(of, i)
			}
			return of
		}
		open(nil)
		step([]int{0}, 60) // of which its second request leaves a checkpoint
		fork(0)
		open(both[0].texts[0])
		if n := both[0].seqs[2].Len(); n != 48 {
			t.Fatalf("a prefix of %d tokens is reused", n)
		}
		step(all(), 1) // of two from one state
		for range 24 {
			n := len(both[0].seqs)
			s := r.IntN(n)
			switch r.IntN(6) {
			case 0:
				if n < 4 {
					fork(s)
				}
			case 1:
				to := r.IntN(both[0].seqs[s].Len() + 1)
				for _, c := range both {
					c.seqs[s].Truncate(to)
				}
			case 2:
				if n < 5 {
					open(both[0].texts[s])
				}
			case 3:
				if n > 2 {
					for _, c := range both {
						c.seqs[s].Release()
						c.seqs, c.texts = slices.Delete(c.seqs, s, s+1), slices.Delete(c.texts, s, s+1)
					}
				}
			case 4:
				step([]int{s}, 1+r.IntN(40))
			default:
				step(all(), 1)
			}
		}
		step(all(), 1)
		for i, text := range both[0].texts {
			once := newFeeder(t, both[0].m).feed(1, text...)
			if row := last[i*len(once):][:len(once)]; !slices.Equal(row, once) {
				t.Errorf("%s, %s: sequence %d at once has other bits, NMSE %.3g", c.shape.Name, path, i, nmse(row, once))
			}
		}
	}
}

// A step of several requests of which the last is not to be used, as sums are too large or the device dies, leaves the
// states as they were: the host computes it again.
func TestTheHostGoesOnFromStatesThatAFailedStepHasNotChanged(t *testing.T) {
	p, text := newPool(t), someText(60)
	for _, c := range []struct {
		shape *synthetic.Shape
		each  int // convolutions of a request
		dies  bool
	}{{&convShape, 3, false}, {&convShape, 3, true}, {&deltaShape, 4, false}, {&deltaShape, 4, true}} {
		load, dies, armed, convs := synthesized(t, *c.shape, gguf.Q4_0), c.dies, false, 0
		want := newFeeder(t, onDevice(t, "", Options{}, p, load).Model).feed(1, text...)
		open := func(bytes int) (device.Device, error) {
			return hooked(bytes, func(p *device.Packet) error {
				if p.Op == device.OpConv {
					if convs++; armed && dies && convs > c.each+1 {
						return errDied
					}
				}
				return nil
			}, func(p *device.Packet, mem []byte) {
				if p.Op == device.OpFromTiles && armed && convs > c.each {
					mem[p.Args[7]] = 1
				}
			})
		}
		b := New("faulty", open, Options{Path: PathLookup})
		bundle := loaded(t, p, b, load, true)
		f := newFeeder(t, bundle.Model)
		f.feed(1, text[:10]...)
		armed, convs = true, 0
		if err := f.seq.Grow(49); err != nil {
			t.Fatal(err)
		}
		f.batch.Reset()
		f.batch.Add(f.seq, 10, 1, text[10:59]...)
		err := f.m.Forward(&f.batch, f.cache)
		if fault := (*models.FaultError)(nil); errors.As(err, &fault) != dies || !dies && err != nil {
			t.Fatalf("dies %t: Forward = %v", dies, err)
		}
		if convs <= c.each {
			t.Fatalf("%d convolutions: the step was one request", convs)
		}
		armed = false
		if dies { // what it has computed before is not to be trusted
			f.seq.Truncate(0)
			f.feed(1, text[:59]...)
		}
		if got := f.feed(1, text[59]); nmse(got, want) > 20*cpuNoise {
			t.Errorf("%s, dies %t: NMSE against the CPU is %.3g", c.shape.Name, dies, nmse(got, want))
		}
	}
}

func TestRecurrentLayersHaveTheSameBitsOnTheEmulator(t *testing.T) {
	p := newPool(t)
	for _, s := range []synthetic.Shape{convShape, deltaShape} {
		load := synthesized(t, s, gguf.Q4_0)
		var first []float32
		for _, kind := range []string{"hexagon-go", "hexagon-qemu"} {
			f := newFeeder(t, onDevice(t, kind, Options{}, p, load).Model)
			logits := slices.Concat(slices.Clone(f.feed(1, someText(3)...)), f.feed(1, 9))
			if first == nil {
				first = logits
			}
			if !slices.Equal(logits, first) {
				t.Errorf("%s: NMSE between the devices is %.3g", s.Name, nmse(logits, first))
			}
		}
	}
}

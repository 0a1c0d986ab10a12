package models

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/kv"
)

// attCase is rows of several sequences over a cache whose layers are filled at
// random, all alike.
type attCase struct {
	cfg  Config
	kind kv.Type
	kv   *kv.Cache
	lens lens
	rows []rowPos
	qkv  []float32 // [rows][(Heads+2·KVHeads)*HeadDim]
	// What the cache was given, by sequence and then as in the cache's heads: [pos][KVHeads][HeadDim].
	keys, values map[*kv.Sequence][]float32
}

// newAttCase makes sequences of the given lengths, and of each the last rows
// wait for their attention.
func newAttCase(t testing.TB, r *rand.Rand, cfg Config, opt kv.Options, l lens, lengths []int, rows int) *attCase {
	t.Helper()
	for _, n := range lengths {
		opt.Blocks += pool.Parts(n, opt.BlockLen)
	}
	cache, err := kv.New(cfg.KV(), opt)
	if err != nil {
		t.Fatal(err)
	}
	c := &attCase{cfg: cfg, kind: opt.Type, kv: cache, lens: l, keys: map[*kv.Sequence][]float32{}, values: map[*kv.Sequence][]float32{}}
	width := cfg.KVHeads * cfg.HeadDim
	for _, n := range lengths {
		s := cache.Open(nil)
		if err := s.Grow(n); err != nil {
			t.Fatal(err)
		}
		k, v := gaussianVector(r, n*width), gaussianVector(r, n*width)
		c.keys[s], c.values[s] = k, v
		for pos := range n {
			for layer := range cfg.Layers {
				cache.Store(layer, s, pos, span(k, pos, width), span(v, pos, width))
			}
		}
		for pos := max(0, n-rows); pos < n; pos++ {
			c.rows = append(c.rows, rowPos{seq: s, pos: pos})
		}
	}
	c.qkv = gaussianVector(r, len(c.rows)*(cfg.Heads+2*cfg.KVHeads)*cfg.HeadDim)
	return c
}

func gaussianVector(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// attend is the attention of rows [lo, hi) alone, by executor.
func (c *attCase) attend(by executor, lo, hi int) []float32 {
	var p attPlan
	a := newAttention(by, c.cfg)
	out := make([]float32, (hi-lo)*c.cfg.Heads*c.cfg.HeadDim)
	a.makePlan(&p, c.rows[lo:hi], c.kv)
	qkv := c.qkv[lo*(c.cfg.Heads+2*c.cfg.KVHeads)*c.cfg.HeadDim:]
	a.run(out, qkv, &p, c.rows[lo:hi], c.kv, 0, &c.lens)
	return out
}

// exact is the attention of a row in float64.
func (c *attCase) exact(row int) []float64 {
	d, group, width := c.cfg.HeadDim, c.cfg.Heads/c.cfg.KVHeads, c.cfg.KVHeads*c.cfg.HeadDim
	r := &c.rows[row]
	k, v := c.keys[r.seq], c.values[r.seq]
	out := make([]float64, c.cfg.Heads*d)
	for h := range c.cfg.Heads {
		q := c.qkv[row*(c.cfg.Heads*d+2*width)+h*d:][:d]
		first, sum, top := 0, 0.0, math.Inf(-1)
		if c.lens.window > 0 {
			first = max(0, r.pos+1-c.lens.window)
		}
		scores := make([]float64, r.pos+1)
		for pos := first; pos <= r.pos; pos++ {
			for i, x := range q {
				scores[pos] += float64(x) * float64(c.lens.scale) * float64(k[pos*width+h/group*d+i])
			}
			if c.lens.limit > 0 {
				scores[pos] = float64(c.lens.limit) * math.Tanh(scores[pos]/float64(c.lens.limit))
			}
			top = max(top, scores[pos])
		}
		for pos := first; pos <= r.pos; pos++ {
			w := math.Exp(scores[pos] - top)
			sum += w
			for i := range d {
				out[h*d+i] += w * float64(v[pos*width+h/group*d+i])
			}
		}
		for i := range d {
			out[h*d+i] /= sum
		}
	}
	return out
}

// attExecutors are pools of several sizes and a worker alone.
func attExecutors(t testing.TB, sizes ...int) map[string]executor {
	executors := map[string]executor{}
	for _, n := range sizes {
		p := pool.New(n)
		t.Cleanup(p.Close)
		executors[fmt.Sprintf("%d workers", n)] = executor{pool: p}
		executors["one alone"] = executor{pool: p, alone: true}
	}
	return executors
}

// kvError is how far cached values are from what was given, values being of about unit size.
var kvError = map[kv.Type]float64{kv.F16: 2e-3, kv.Int8: 5e-2, kv.F32: 2e-5}

// check compares the attention of rows with float64, and with what every executor
// makes of them together and, for about twenty, by themselves.
func (c *attCase) check(t *testing.T, executors map[string]executor) {
	t.Helper()
	width := c.cfg.Heads * c.cfg.HeadDim
	want := c.attend(executors["one alone"], 0, len(c.rows))
	step := 1 + len(c.rows)/20
	for i := 0; i < len(c.rows); i += step {
		for j, v := range c.exact(i) {
			if got := want[i*width+j]; !(math.Abs(float64(got)-v) <= kvError[c.kind]) {
				t.Fatalf("row %d at position %d: output %d is %v, exactly %v", i, c.rows[i].pos, j, got, v)
			}
		}
	}
	for name, by := range executors {
		compareBits(t, name+", all rows", c.attend(by, 0, len(c.rows)), want)
		for i := 0; i < len(c.rows); i += step {
			compareBits(t, fmt.Sprintf("%s, row %d by itself", name, i), c.attend(by, i, i+1), span(want, i, width))
		}
	}
}

func TestAttentionHasTheSameBitsHoweverManyWorkersTakeItsSpans(t *testing.T) {
	lengths := []int{1, 63, 511, 512, 513, 1100, 5000}
	workers := []int{1, 2, 3, 8, 64}
	if testing.Short() {
		lengths, workers = []int{1, 512, 513, 1100}, []int{2, 8}
	}
	executors := attExecutors(t, workers...)
	for _, kind := range []kv.Type{kv.F16, kv.Int8, kv.F32} {
		for name, l := range map[string]lens{
			"plain":  {scale: 0.2},
			"capped": {scale: 0.2, limit: 3},
			"window": {scale: 0.2, window: 700},
		} {
			t.Run(fmt.Sprintf("%v/%s", kind, name), func(t *testing.T) {
				cfg := Config{Layers: 1, Heads: 6, KVHeads: 2, HeadDim: 16}
				r := rand.New(rand.NewPCG(1, uint64(kind)))
				newAttCase(t, r, cfg, kv.Options{Type: kind, BlockLen: 16}, l, lengths, 3).check(t, executors)
			})
		}
	}
}

func TestALongPromptsAttentionIsFoldedInWaves(t *testing.T) {
	executors := attExecutors(t, 1, 3)
	cfg := Config{Layers: 1, Heads: 8, KVHeads: 2, HeadDim: 64}
	r := rand.New(rand.NewPCG(2, 3))
	c := newAttCase(t, r, cfg, kv.Options{BlockLen: 16}, lens{scale: 0.1}, []int{1500}, 70)
	a, p := newAttention(executors["one alone"], cfg), attPlan{}
	a.makePlan(&p, c.rows, c.kv)
	a.plan, a.kv, a.rowPos = &p, c.kv, c.rows
	if a.begin(0); a.wave.hi == len(p.spans) {
		t.Fatalf("one wave takes all %d spans", len(p.spans))
	}
	c.check(t, executors)
}

// FuzzAttention holds shapes and lengths of all kinds against float64 and against more workers.
func FuzzAttention(f *testing.F) {
	f.Add(uint64(1), uint16(1500), uint16(20), uint8(2), uint8(3), uint8(16), uint8(15), uint8(0), uint16(0))
	f.Add(uint64(7), uint16(700), uint16(33), uint8(0), uint8(1), uint8(31), uint8(31), uint8(1), uint16(0))
	f.Add(uint64(5), uint16(900), uint16(33), uint8(0), uint8(2), uint8(7), uint8(20), uint8(0), uint16(0))
	f.Add(uint64(2), uint16(513), uint16(1025), uint8(1), uint8(1), uint8(5), uint8(3), uint8(1), uint16(515))
	f.Add(uint64(3), uint16(2047), uint16(511), uint8(3), uint8(5), uint8(40), uint8(200), uint8(2), uint16(1))
	executors := attExecutors(f, 1, 5)
	f.Fuzz(func(t *testing.T, seed uint64, long, short uint16, kvHeads, group, dim, blockLen, kind uint8, window uint16) {
		cfg := Config{Layers: 1, KVHeads: 1 + int(kvHeads)%3, HeadDim: 1 + int(dim)%48}
		cfg.Heads = cfg.KVHeads * (1 + int(group)%5)
		r := rand.New(rand.NewPCG(seed, 5))
		opt := kv.Options{Type: kv.Type(kind % 3), BlockLen: 1 + int(blockLen)}
		l := lens{scale: 1 / float32(math.Sqrt(float64(cfg.HeadDim))), window: int(window) % 3000}
		lengths := []int{1 + int(short)%2100, 1 + int(long)%2100}
		newAttCase(t, r, cfg, opt, l, lengths, 1+int(seed%4)).check(t, executors)
	})
}

// keysOfParts is how many keys meet how many queries in each part of the
// attention of rows, in the order of work.
func keysOfParts(cfg Config, cache *kv.Cache, rows []rowPos, workers int) []int {
	p := pool.New(workers)
	defer p.Close()
	a, plan := newAttention(executor{pool: p}, cfg), attPlan{}
	a.makePlan(&plan, rows, cache)
	var parts []int
	for range cfg.KVHeads {
		for _, number := range plan.order {
			n := 0
			first, end := plan.chunksOf(int(number))
			for chunk := first; chunk < end; chunk++ {
				at := plan.chunks[chunk].seen
				tile := int(plan.passes[number].tile)
				for _, seen := range plan.seen[at:][:a.group*min(plan.tile, len(rows)-tile*plan.tile)] {
					n += int(seen)
				}
			}
			parts = append(parts, n)
		}
	}
	return parts
}

// evenness is the share of workers' time that is work, where each takes the
// next part when it is done with one and a part takes as long as it has keys.
func evenness(parts []int, workers int) float64 {
	busy, sum := make([]int, workers), 0
	for _, n := range parts {
		least := 0
		for w := range busy {
			if busy[w] < busy[least] {
				least = w
			}
		}
		busy[least] += n
		sum += n
	}
	return float64(sum) / float64(workers*slices.Max(busy))
}

func TestOneLongSequenceKeepsManyWorkersBusy(t *testing.T) {
	cfg := Config{Layers: 1, Heads: 32, KVHeads: 4, HeadDim: 8}
	for _, test := range []struct {
		length, rows, workers int
		least                 float64
	}{
		{8192, 1, 16, 0.95}, {8192, 1, 64, 0.95}, {32768, 1, 64, 0.95}, {32768, 1, 48, 0.85},
		{9000, 64, 64, 0.9}, {9000, 256, 16, 0.9}, {2048, 1, 2, 0.95}, {500, 1, 4, 0.95},
	} {
		cache, err := kv.New(cfg.KV(), kv.Options{BlockLen: 16, Blocks: pool.Parts(test.length, 16)})
		if err != nil {
			t.Fatal(err)
		}
		seq := cache.Open(nil)
		if err := seq.Grow(test.length); err != nil {
			t.Fatal(err)
		}
		var rows []rowPos
		for pos := test.length - test.rows; pos < test.length; pos++ {
			rows = append(rows, rowPos{seq: seq, pos: pos})
		}
		parts := keysOfParts(cfg, cache, rows, test.workers)
		keys := 0
		for _, n := range parts {
			keys += n
		}
		want := 0
		for i := range rows {
			want += (rows[i].pos + 1) * cfg.Heads
		}
		if keys != want {
			t.Errorf("%d rows of %d: parts have %d keys, want %d", test.rows, test.length, keys, want)
		}
		if got := evenness(parts, test.workers); got < test.least {
			t.Errorf("%d rows of %d: %d parts keep %d workers busy to %.2f, want %.2f", test.rows, test.length, len(parts), test.workers, got, test.least)
		}
	}
}

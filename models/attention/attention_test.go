package attention

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/kv"
)

// config is a model's query heads, and its cache.
type config struct {
	heads int
	kv.Shape
}

// testCase is rows of several sequences over a cache whose layers are filled at
// random, all alike.
type testCase struct {
	cfg   config
	kind  kv.Type
	cache *kv.Cache
	mask  Mask
	rows  []RowPos
	qkv   []float32 // [rows][(Heads+2·KVHeads)*HeadDim]
	// What the cache was given, by sequence and then as in the cache's heads: [pos][KVHeads][HeadDim].
	keys, values map[*kv.Sequence][]float32
}

// newTestCase makes sequences of the given lengths, and of each the last rows
// wait for their attention.
func newTestCase(t testing.TB, r *rand.Rand, cfg config, opt kv.Options, m Mask, lengths []int, rows int) *testCase {
	t.Helper()
	for _, n := range lengths {
		opt.Blocks += pool.Parts(n, opt.BlockLen)
	}
	cache, err := kv.New(cfg.Shape, opt)
	if err != nil {
		t.Fatal(err)
	}
	c := &testCase{cfg: cfg, kind: opt.Type, cache: cache, mask: m, keys: map[*kv.Sequence][]float32{}, values: map[*kv.Sequence][]float32{}}
	width := cfg.Heads * cfg.HeadDim
	for _, n := range lengths {
		s := cache.Open(nil)
		if err := s.Grow(n); err != nil {
			t.Fatal(err)
		}
		k, v := gaussianVector(r, n*width), gaussianVector(r, n*width)
		c.keys[s], c.values[s] = k, v
		for pos := range n {
			for layer := range cfg.Layers {
				cache.Store(layer, s, pos, k[pos*width:(pos+1)*width], v[pos*width:(pos+1)*width])
			}
		}
		for pos := max(0, n-rows); pos < n; pos++ {
			c.rows = append(c.rows, RowPos{Seq: s, Pos: pos})
		}
	}
	c.qkv = gaussianVector(r, len(c.rows)*(cfg.heads+2*cfg.Heads)*cfg.HeadDim)
	return c
}

func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if !kerneltest.SameBits(got, want) {
		t.Fatalf("%s: other bits", what)
	}
}

func gaussianVector(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// attend is the attention of rows [lo, hi) alone.
func (c *testCase) attend(by pool.Workers, lo, hi int) []float32 {
	var p Plan
	a := New(by, c.cfg.heads, c.cfg.Shape)
	out := make([]float32, (hi-lo)*c.cfg.heads*c.cfg.HeadDim)
	a.MakePlan(&p, c.rows[lo:hi], c.cache)
	qkv := c.qkv[lo*(c.cfg.heads+2*c.cfg.Heads)*c.cfg.HeadDim:]
	a.Run(out, qkv, &p, c.rows[lo:hi], c.cache, 0, &c.mask)
	return out
}

// exact is the attention of a row in float64.
func (c *testCase) exact(row int) []float64 {
	d, group, width := c.cfg.HeadDim, c.cfg.heads/c.cfg.Heads, c.cfg.Heads*c.cfg.HeadDim
	r := &c.rows[row]
	k, v := c.keys[r.Seq], c.values[r.Seq]
	out := make([]float64, c.cfg.heads*d)
	for h := range c.cfg.heads {
		q := c.qkv[row*(c.cfg.heads*d+2*width)+h*d:][:d]
		first, end, sum, top := 0, r.keys(), 0.0, math.Inf(-1)
		if c.mask.Window > 0 {
			first = max(0, r.Pos+1-c.mask.Window)
		}
		if c.mask.Both {
			end = min(end, r.Pos+c.mask.Window)
		}
		scores := make([]float64, end)
		for pos := first; pos < end; pos++ {
			for i, x := range q {
				scores[pos] += float64(x) * float64(c.mask.Scale) * float64(k[pos*width+h/group*d+i])
			}
			if c.mask.Cap > 0 {
				scores[pos] = float64(c.mask.Cap) * math.Tanh(scores[pos]/float64(c.mask.Cap))
			}
			top = max(top, scores[pos])
		}
		for pos := first; pos < end; pos++ {
			w := math.Exp(scores[pos] - top)
			sum += w
			for i := range d {
				out[h*d+i] += w * float64(v[pos*width+h/group*d+i])
			}
		}
		if c.mask.Sinks != nil {
			sum += math.Exp(float64(c.mask.Sinks[h]) - top)
		}
		for i := range d {
			out[h*d+i] /= sum
		}
	}
	return out
}

// allWorkers are pools of several sizes and a worker alone.
func allWorkers(t testing.TB, sizes ...int) map[string]pool.Workers {
	workers := map[string]pool.Workers{}
	for _, n := range sizes {
		p := pool.New(n)
		t.Cleanup(p.Close)
		workers[fmt.Sprintf("%d workers", n)] = pool.Workers{Pool: p}
		workers["one alone"] = pool.Workers{Pool: p, Alone: true}
	}
	return workers
}

// kvError bounds the difference of cached values from the given ones, which are of about unit size.
var kvError = map[kv.Type]float64{kv.F16: 2e-3, kv.Int8: 5e-2, kv.F32: 2e-5, kv.Int4: 0.5, int8AndInt4: 0.5, int4AndF16: 0.5}

// int8AndInt4 is of keys in 8 bits and values in 4.
var int8AndInt4 = kv.TypeOf(kv.Int8, kv.Int4)

// int4AndF16 is of keys in 4 bits alone.
var int4AndF16 = kv.TypeOf(kv.Int4, kv.F16)

// check compares the attention of rows with float64, and with what all workers
// make of them together and, for about twenty, by themselves.
func (c *testCase) check(t *testing.T, workers map[string]pool.Workers) {
	t.Helper()
	width := c.cfg.heads * c.cfg.HeadDim
	want := c.attend(workers["one alone"], 0, len(c.rows))
	apart := 1 + len(c.rows)/20
	for i := 0; i < len(c.rows); i += apart {
		for j, v := range c.exact(i) {
			if got := want[i*width+j]; !(math.Abs(float64(got)-v) <= kvError[c.kind]) {
				t.Fatalf("row %d at position %d: output %d is %v, exactly %v", i, c.rows[i].Pos, j, got, v)
			}
		}
	}
	for name, by := range workers {
		sameBits(t, name+", all rows", c.attend(by, 0, len(c.rows)), want)
		for i := 0; i < len(c.rows); i += apart {
			sameBits(t, fmt.Sprintf("%s, row %d by itself", name, i), c.attend(by, i, i+1), want[i*width:(i+1)*width])
		}
	}
}

func TestAttentionHasTheSameBitsHoweverManyWorkersTakeItsSplits(t *testing.T) {
	lengths := []int{1, 63, 511, 512, 513, 1100, sweep.Of(t, 2100, 5000)}
	threads := []int{3, 64, 1, 2, 8}[:sweep.Cases(2, 5)]
	if testing.Short() {
		lengths, threads = []int{1, 512, 513, 1100}, []int{2, 8}
	}
	workers := allWorkers(t, threads...)
	for _, kind := range []kv.Type{kv.F16, kv.Int8, kv.F32, kv.Int4, int8AndInt4} {
		for name, m := range map[string]Mask{
			"plain":  {Scale: 0.2},
			"capped": {Scale: 0.2, Cap: 3},
			"window": {Scale: 0.2, Window: 700},
			"sinks":  {Scale: 0.2, Window: 700, Sinks: []float32{-2, 0, 1, 5, 40, 1000}}, // some take nearly all
		} {
			if (testing.Short() || sweep.Quick()) && kind != kv.F16 && name != "plain" {
				continue // masks weigh what any kind of keys has scored
			}
			t.Run(fmt.Sprintf("%v/%s", kind, name), func(t *testing.T) {
				cfg := config{6, kv.Shape{Layers: 1, Heads: 2, HeadDim: 16}}
				if kind.Values() == kv.Int4 {
					cfg.HeadDim = 32
				}
				r := rand.New(rand.NewPCG(1, uint64(kind)))
				newTestCase(t, r, cfg, kv.Options{Type: kind, BlockLen: 16}, m, lengths, 3).check(t, workers)
			})
		}
	}
}

func TestAWindowLiesOnBothSidesOfARowThatAttendsToAll(t *testing.T) {
	sweep.Full(t)
	workers := allWorkers(t, 1, 3)
	cfg := config{4, kv.Shape{Layers: 1, Heads: 2, HeadDim: 16}}
	windows, lengths := []int{1, 5, 65, 700}, []int{1, 3, 64, 130, 1100}
	if testing.Short() || sweep.Quick() { // the work grows with the square of lengths
		windows, lengths = []int{1, 5, 65, 200}, []int{1, 3, 64, 130, 560}
	}
	for _, window := range windows {
		r := rand.New(rand.NewPCG(5, uint64(window)))
		c := newTestCase(t, r, cfg, kv.Options{Type: kv.F32, BlockLen: 16}, Mask{Scale: 0.2, Window: window, Both: true}, lengths, slices.Max(lengths))
		at := 0
		for _, n := range lengths {
			for range n {
				c.rows[at].All = n
				at++
			}
		}
		c.check(t, workers)
	}
}

func TestKeysOutsideAWindowWeighNothingWhateverTheirValues(t *testing.T) {
	cfg := config{2, kv.Shape{Layers: 1, Heads: 1, HeadDim: 16}}
	const length, window = 128, 5
	p := pool.New(1)
	defer p.Close()
	for name, c := range map[string]struct {
		both             bool
		large            func(pos int) bool // which values are large, so that the smallest weight would show; the rest are zero
		rowFirst, rowEnd int                // the rows that see zeros alone
	}{
		"before": {false, func(pos int) bool { return pos < chunkKeys/2 }, chunkKeys/2 + window - 1, length},
		"behind": {true, func(pos int) bool { return pos >= chunkKeys }, 0, chunkKeys - window + 1},
	} {
		r := rand.New(rand.NewPCG(6, 1))
		test := newTestCase(t, r, cfg, kv.Options{Type: kv.F32, BlockLen: 16}, Mask{Scale: 0.2, Window: window, Both: c.both}, []int{length}, length)
		for pos := range test.rows {
			row := &test.rows[pos]
			if c.both {
				row.All = length
			}
			values := make([]float32, cfg.HeadDim)
			for i := range values {
				if c.large(pos) {
					values[i] = 1e30
				}
			}
			test.cache.Store(0, row.Seq, pos, test.keys[row.Seq][pos*cfg.HeadDim:(pos+1)*cfg.HeadDim], values)
		}
		width := cfg.heads * cfg.HeadDim
		together := test.attend(pool.Workers{Pool: p, Alone: true}, 0, length)
		for pos := c.rowFirst; pos < c.rowEnd; pos++ {
			for _, x := range together[pos*width : (pos+1)*width] {
				if x != 0 {
					t.Fatalf("%s the window: row %d, which sees zeros alone, gives %v", name, pos, x)
				}
			}
		}
	}
}

func TestALongPromptsAttentionIsFoldedInWaves(t *testing.T) {
	workers := allWorkers(t, 1, 3)
	cfg := config{8, kv.Shape{Layers: 1, Heads: 2, HeadDim: 64}}
	r := rand.New(rand.NewPCG(2, 3))
	c := newTestCase(t, r, cfg, kv.Options{BlockLen: 16}, Mask{Scale: 0.1}, []int{1500}, 70)
	a, p := New(workers["one alone"], cfg.heads, cfg.Shape), Plan{}
	a.MakePlan(&p, c.rows, c.cache)
	a.plan, a.cache, a.rowPos = &p, c.cache, c.rows
	if a.begin(0); a.wave.hi == len(p.splits) {
		t.Fatalf("one wave takes all %d splits", len(p.splits))
	}
	c.check(t, workers)
}

// FuzzAttention holds shapes and lengths of all kinds against float64 and against more workers.
func FuzzAttention(f *testing.F) {
	f.Add(uint64(1), uint16(1500), uint16(20), uint8(2), uint8(3), uint8(16), uint8(15), uint8(0), uint16(0))
	f.Add(uint64(7), uint16(700), uint16(33), uint8(0), uint8(1), uint8(31), uint8(31), uint8(1), uint16(0))
	f.Add(uint64(5), uint16(900), uint16(33), uint8(0), uint8(2), uint8(7), uint8(20), uint8(0), uint16(0))
	f.Add(uint64(2), uint16(513), uint16(1025), uint8(1), uint8(1), uint8(5), uint8(3), uint8(1), uint16(515))
	f.Add(uint64(4), uint16(1500), uint16(20), uint8(2), uint8(3), uint8(16), uint8(15), uint8(3), uint16(0))
	f.Add(uint64(6), uint16(700), uint16(33), uint8(0), uint8(1), uint8(33), uint8(30), uint8(4), uint16(300))
	f.Add(uint64(3), uint16(2047), uint16(511), uint8(3), uint8(5), uint8(40), uint8(200), uint8(2), uint16(1))
	workers := allWorkers(f, 1, 5)
	f.Fuzz(func(t *testing.T, seed uint64, long, short uint16, kvHeads, group, dim, blockLen, kind uint8, window uint16) {
		cfg := config{Shape: kv.Shape{Layers: 1, Heads: 1 + int(kvHeads)%3, HeadDim: 1 + int(dim)%48}}
		format := []kv.Type{kv.F16, kv.Int8, kv.F32, kv.Int4, int8AndInt4}[kind%5]
		if format.Check(cfg.Shape) != nil {
			cfg.HeadDim = 32 + int(dim)%2*64
		}
		cfg.heads = cfg.Heads * (1 + int(group)%5)
		r := rand.New(rand.NewPCG(seed, 5))
		opt := kv.Options{Type: format, BlockLen: 1 + int(blockLen)}
		m := Mask{Scale: 1 / float32(math.Sqrt(float64(cfg.HeadDim))), Window: int(window) % 3000}
		lengths := []int{1 + int(short)%2100, 1 + int(long)%2100}
		newTestCase(t, r, cfg, opt, m, lengths, 1+int(seed%4)).check(t, workers)
	})
}

// keysOfParts counts the pairs of a key and a query in each part of the
// attention of rows, in the order of work.
func keysOfParts(cfg config, cache *kv.Cache, rows []RowPos, workers int) []int {
	p := pool.New(workers)
	defer p.Close()
	a, plan := New(pool.Workers{Pool: p}, cfg.heads, cfg.Shape), Plan{}
	a.MakePlan(&plan, rows, cache)
	var parts []int
	for range cfg.Heads {
		for _, number := range plan.order {
			n := 0
			first, end := plan.chunksOf(int(number))
			for chunk := first; chunk < end; chunk++ {
				at := plan.chunks[chunk].seen
				tile := int(plan.items[number].tile)
				for _, seen := range plan.seen[at:][:a.group*min(plan.tile, len(rows)-tile*plan.tile)] {
					n += int(seen)
				}
			}
			parts = append(parts, n)
		}
	}
	return parts
}

// evenness is the share of workers' time that is work, if each takes the next part when it is done with one. A part takes as long
// as it has keys.
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
	cfg := config{32, kv.Shape{Layers: 1, Heads: 4, HeadDim: 8}}
	for _, test := range []struct {
		length, rows, workers int
		least                 float64
	}{
		{8192, 1, 16, 0.95}, {8192, 1, 64, 0.95}, {32768, 1, 64, 0.95}, {32768, 1, 48, 0.85},
		{9000, 64, 64, 0.9}, {9000, 256, 16, 0.9}, {2048, 1, 2, 0.95}, {500, 1, 4, 0.95},
	} {
		cache, err := kv.New(cfg.Shape, kv.Options{BlockLen: 16, Blocks: pool.Parts(test.length, 16)})
		if err != nil {
			t.Fatal(err)
		}
		seq := cache.Open(nil)
		if err := seq.Grow(test.length); err != nil {
			t.Fatal(err)
		}
		var rows []RowPos
		for pos := test.length - test.rows; pos < test.length; pos++ {
			rows = append(rows, RowPos{Seq: seq, Pos: pos})
		}
		parts := keysOfParts(cfg, cache, rows, test.workers)
		keys := 0
		for _, n := range parts {
			keys += n
		}
		want := 0
		for i := range rows {
			want += (rows[i].Pos + 1) * cfg.heads
		}
		if keys != want {
			t.Errorf("%d rows of %d: parts have %d keys, want %d", test.rows, test.length, keys, want)
		}
		if got := evenness(parts, test.workers); got < test.least {
			t.Errorf("%d rows of %d: %d parts keep %d workers busy to %.2f, want %.2f", test.rows, test.length, len(parts), test.workers, got, test.least)
		}
	}
}

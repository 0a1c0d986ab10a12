package hexagon

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/models"
	oncpu "github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/kv"
)

// attending is rows of several sequences over a cache of one layer, filled at random.
type attending struct {
	models.Attention
	keys, values map[*kv.Sequence][]float32 // [pos][heads][dim]
}

func newAttending(t *testing.T, r *rand.Rand, kind kv.Type, heads int, shape kv.Shape, lengths []int, rows int) *attending {
	t.Helper()
	blocks := 0
	for _, n := range lengths {
		blocks += n/16 + 1
	}
	cache, err := kv.New(shape, kv.Options{Type: kind, BlockLen: 16, Blocks: blocks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cache.Close() })
	a := &attending{keys: map[*kv.Sequence][]float32{}, values: map[*kv.Sequence][]float32{}}
	width := shape.Heads * shape.HeadDim
	for _, n := range lengths {
		s := cache.Open(nil)
		if err := s.Grow(n); err != nil {
			t.Fatal(err)
		}
		k, v := gaussians(r, n*width), gaussians(r, n*width)
		a.keys[s], a.values[s] = k, v
		for pos := range n {
			cache.Store(0, s, pos, k[pos*width:(pos+1)*width], v[pos*width:(pos+1)*width])
		}
		for pos := max(0, n-rows); pos < n; pos++ {
			a.Rows = append(a.Rows, models.RowPos{Seq: s, Pos: pos})
		}
	}
	a.Heads, a.Cache, a.Width = heads, cache, (heads+2*shape.Heads)*shape.HeadDim
	a.Scale = 1 / float32(math.Sqrt(float64(shape.HeadDim)))
	a.QKV = gaussians(r, len(a.Rows)*a.Width)
	a.Out = make([]float32, len(a.Rows)*heads*shape.HeadDim)
	return a
}

// worst is the largest difference from attention in float64.
func (a *attending) worst() (worst float64) {
	shape := a.Cache.Shape()
	d, group, width := shape.HeadDim, a.Heads/shape.Heads, shape.Heads*shape.HeadDim
	for i := range a.Rows {
		r := &a.Rows[i]
		first := 0
		if a.Window > 0 {
			first = max(0, r.Pos+1-a.Window)
		}
		k, v := a.keys[r.Seq], a.values[r.Seq]
		for h := range a.Heads {
			q := a.QKV[i*a.Width+h*d:][:d]
			out, sum := make([]float64, d), 0.0
			if a.Sinks != nil {
				sum = math.Exp(float64(a.Sinks[h]))
			}
			for pos := first; pos <= r.Pos; pos++ {
				score := 0.0
				for j, x := range q {
					score += float64(x) * float64(a.Scale) * float64(k[pos*width+h/group*d+j])
				}
				if c := float64(a.Cap); c > 0 {
					score = c * math.Tanh(score/c)
				}
				w := math.Exp(score)
				sum += w
				for j := range out {
					out[j] += w * float64(v[pos*width+h/group*d+j])
				}
			}
			for j := range out {
				worst = max(worst, math.Abs(out[j]/sum-float64(a.Out[(i*a.Heads+h)*d+j])))
			}
		}
	}
	return worst
}

func TestAttentionOnTilesIsNearTheExactOne(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	b, _ := started(t, newRefDevice, Options{})
	for _, c := range []struct {
		kind   kv.Type
		heads  int
		shape  kv.Shape
		window int
		within float64
	}{
		{kv.F16, 6, kv.Shape{Layers: 1, Heads: 2, HeadDim: 16}, 0, 5e-3},
		{kv.F16, 2, kv.Shape{Layers: 1, Heads: 2, HeadDim: 80}, 0, 5e-3},
		{kv.Int8, 4, kv.Shape{Layers: 1, Heads: 1, HeadDim: 32}, 0, 3e-2},
		{kv.F32, 4, kv.Shape{Layers: 1, Heads: 1, HeadDim: 32}, 20, 5e-3},
	} {
		t.Run(fmt.Sprintf("%v/%v/%d", c.kind, c.shape, c.window), func(t *testing.T) {
			a := newAttending(t, r, c.kind, c.heads, c.shape, []int{1, 40, 100}, 13)
			a.Window = c.window
			if !b.Attend(&a.Attention) {
				t.Fatal("the device leaves it to the CPU")
			}
			if err := b.Err(); err != nil {
				t.Fatal(err)
			}
			if worst := a.worst(); !(worst <= c.within) {
				t.Errorf("outputs differ by up to %v", worst)
			}
			all := slices.Clone(a.Out)
			width := a.Heads * c.shape.HeadDim
			for _, i := range []int{0, 1, 13, len(a.Rows) - 1} { // alone
				one := a.Attention
				one.Rows, one.QKV, one.Out = a.Rows[i:i+1], a.QKV[i*a.Width:], make([]float32, width)
				if !b.Attend(&one) || !slices.Equal(one.Out, all[i*width:(i+1)*width]) {
					t.Errorf("row %d has other bits alone", i)
				}
			}
		})
	}
}

// A key without its drift is far from the key itself, which the device attends to.
func TestKeysOfACacheGetTheirDriftBack(t *testing.T) {
	const dim, longest = 32, 150
	freq := make([]float64, dim/2)
	for i := range freq {
		freq[i] = math.Pow(1e4, -float64(i)/float64(len(freq)))
	}
	turns := oncpu.NewTurns(len(freq), longest, func(cos, sin []float32, position int32) {
		for i, f := range freq {
			s, c := math.Sincos(float64(position) * f)
			cos[i], sin[i] = float32(c), float32(s)
		}
	})
	for i, within := range []float64{5e-2, 5e-2, 0.6, 0.6} {
		kind, kept := []kv.Type{kv.Int8, kv.Int4}[i/2], i%2 // whether the device keeps keys of its own
		b, _ := started(t, newRefDevice, Options{Keys: 1 - kept})
		b.attention.tcm.longest = 64
		r := rand.New(rand.NewPCG(11, 12))
		a := newAttending(t, r, kind, 4, kv.Shape{Layers: 1, Heads: 2, HeadDim: dim}, []int{40, longest}, 13)
		a.Drift = oncpu.NewDrift(slices.Repeat([]float32{2, -3}, dim), dim, true, freq, turns)
		for s, keys := range a.keys {
			for pos := range s.Len() {
				key := slices.Clone(keys[pos*2*dim:][:2*dim])
				a.Drift.Settle(key, pos)
				a.Cache.Store(0, s, pos, key, a.values[s][pos*2*dim:][:2*dim])
			}
		}
		if !b.Attend(&a.Attention) || b.Err() != nil {
			t.Fatalf("the device does not do it: %v", b.Err())
		}
		if worst := a.worst(); !(worst <= within) {
			t.Errorf("%v, kept %d: outputs differ by up to %v", kind, kept, worst)
		}
	}
}

func TestLongContextsAreAttendedToInChunks(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	b, _ := started(t, newRefDevice, Options{})
	b.attention.tcm.longest = 64
	a := newAttending(t, r, kv.F16, 4, kv.Shape{Layers: 1, Heads: 2, HeadDim: 32}, []int{30, 200}, 150)
	if !b.Attend(&a.Attention) || b.Err() != nil {
		t.Fatalf("the device does not do it: %v", b.Err())
	}
	if worst := a.worst(); !(worst <= 5e-3) {
		t.Errorf("outputs differ by up to %v", worst)
	}
}

package kv

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
)

// resident counts the bytes of this process in memory, without garbage, and the
// heap's among them.
func resident(t *testing.T) (all, heap int64) {
	t.Helper()
	debug.FreeOSMemory()
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("this system does not tell what is in memory: ", err)
	}
	var reserved, pages int64
	if _, err := fmt.Fscan(bytes.NewReader(raw), &reserved, &pages); err != nil || pages == 0 {
		t.Skipf("this system does not tell what is in memory: %q, %v", raw, err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return pages * int64(os.Getpagesize()), int64(m.HeapAlloc)
}

// What is configured as kv.memory is what the process grows by. None of it is
// the heap's, where it would let as much garbage stand as it is large.
func TestAFullCacheTakesItsMemoryAndNoMore(t *testing.T) {
	sweep.NoEmulator(t)
	const budget = 96 << 20
	shape := Shape{Layers: 4, Heads: 2, HeadDim: 64}
	for _, kind := range []Type{F16, Int8} {
		opt := Options{Type: kind, BlockLen: 32}
		opt.Blocks = int(budget / BytesPerBlock(shape, opt))
		tokens, vector := make([]int32, opt.Blocks*opt.BlockLen), make([]float32, 2*64)
		before, heapBefore := resident(t)
		c, err := New(shape, opt)
		if err != nil {
			t.Fatal(err)
		}
		s := c.Open(nil)
		if err := s.Grow(len(tokens)); err != nil {
			t.Fatal(err)
		}
		for pos := range tokens {
			tokens[pos] = int32(pos)
			for layer := range shape.Layers {
				c.Store(layer, s, pos, vector, vector)
			}
		}
		s.Seal(tokens)
		full, heap := resident(t)
		grown, inHeap := float64(full-before)/budget, float64(heap-heapBefore)/budget
		if grown < 0.95 || grown > 1.05 || inHeap > 0.05 {
			t.Errorf("%v: the process grew by %.3f of the budget of the cache, its heap by %.3f", kind, grown, inHeap)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if after, _ := resident(t); float64(after-before)/budget > 0.05 {
			t.Errorf("%v: %.2f of the budget are still there after Close", kind, float64(after-before)/budget)
		}
	}
}

package models

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
	"github.com/lutra-lm/lutra/models/weights"
)

// What the heap holds decides how much garbage the collector lets stand.
func TestWeightsLieOutsideTheHeap(t *testing.T) {
	sweep.NoEmulator(t)
	shape := synthetic.Shape{Name: "small", Hidden: 512, FFN: 2048, Layers: 3, Heads: 8, KVHeads: 4, HeadDim: 64,
		Vocab: 1024, Context: 64, RopeBase: 10000, TiedEmbedding: true, Arch: synthetic.Llama}
	path := filepath.Join(t.TempDir(), "small.gguf")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := synthetic.Write(f, shape, synthetic.Options{Blocks: gguf.F16, Head: gguf.F16, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	pool := pool.New(1)
	defer pool.Close()
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // pools let go of what they hold at the second
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	b, err := Load(path, LoadOptions{Pool: pool, Packing: weights.PackingStored})
	if err != nil {
		t.Fatal(err)
	}
	grown, size := heap()-before, b.Model.Config().Bytes
	if size < 20<<20 || grown > size/8 {
		t.Errorf("the heap holds %d bytes more for %d bytes of weights", grown, size)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

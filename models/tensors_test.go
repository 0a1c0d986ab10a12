package models

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// What the heap holds decides how much garbage the collector lets stand.
func TestWeightsLieOutsideTheHeap(t *testing.T) {
	shape := synthetic.Shape{Name: "small", Hidden: 512, FFN: 2048, Layers: 8, Heads: 8, KVHeads: 4, HeadDim: 64,
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
	b, err := Load(path, LoadOptions{Pool: pool, Packing: PackingStored})
	if err != nil {
		t.Fatal(err)
	}
	grown, size := heap()-before, b.Model.Config().Bytes
	if size < 32<<20 || grown > size/8 {
		t.Errorf("the heap holds %d bytes more for %d bytes of weights", grown, size)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// pieces is a loader that packs in pieces, for a matrix of more than one.
func pieces(t *testing.T) *loader {
	l := &loader{memory: new(cpu.Arena), zero: map[string]bool{}}
	t.Cleanup(func() { l.memory.Free() })
	return l
}

func TestALargeMatrixPackedInPiecesIsTheWhole(t *testing.T) {
	const rows, cols = 36000, 256 // 18 MB of F16: two pieces
	x := &gguf.Tensor{Name: "w", Type: gguf.F16, Dims: []int{cols, rows}, Data: make([]byte, 2*rows*cols)}
	for i := range rows * cols {
		binary.LittleEndian.PutUint16(x.Data[2*i:], uint16(0x3000+i*2654435761%4096))
	}
	got, err := pieces(t).build(x, 1, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := packMatrix(x, 1, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Packing != matrix.F16 || got.Rows != rows || !bytes.Equal(got.Data, want.Data) || !slices.Equal(got.Scale, want.Scale) {
		t.Errorf("packed in pieces: %v of %dx%d that differs from the whole", got.Packing, got.Rows, got.Cols)
	}
}

// A matrix is ternary as a whole or not at all, wherever its other rows stand.
func TestAMatrixOfWhichOnlyTheFirstPieceIsTernaryIsNotPackedAsSuch(t *testing.T) {
	const rows, cols = 36000, 256
	md := gguf.Metadata{"general.architecture": "llama"}
	x := gguf.Tensor{Name: "w", Type: gguf.F16, Dims: []int{cols, rows}, Data: make([]byte, 2*rows*cols)}
	for i := range rows * cols {
		binary.LittleEndian.PutUint16(x.Data[2*i:], 0x3c00) // one
	}
	x.Data[2*cols*(rows-1)] = 0x01 // and a little more
	var raw bytes.Buffer
	if err := gguf.Write(&raw, md, []gguf.Tensor{x}); err != nil {
		t.Fatal(err)
	}
	file, err := gguf.Parse(raw.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	pool := pool.New(1)
	defer pool.Close()
	l := pieces(t)
	l.file, l.packs, l.used, l.cpu = file, map[string]bool{}, map[string]bool{}, kernels.NewCPU(pool)
	l.opt.Backend = l.cpu
	if l.matrix("w", rows, cols); l.err != nil || l.cfg.Bytes != 2*rows*cols {
		t.Errorf("the matrix takes %d bytes, %v; want %d for F16", l.cfg.Bytes, l.err, 2*rows*cols)
	}
}

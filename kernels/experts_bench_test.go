package kernels_test

import (
	"fmt"
	"testing"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// experts are matrices that workers multiply one by one, each by itself.
type experts struct {
	list []kernels.Linear
	acts []kernels.Acts // [workers], as y
	y    [][]float32
}

func (e *experts) Do(worker, i int) { e.list[i].Mul(e.y[worker], &e.acts[worker]) }

// BenchmarkExperts multiplies as many matrices as a layer of Qwen3-30B-A3B has with a few
// rows each, from memory and, all of them one matrix a worker, from the caches.
func BenchmarkExperts(b *testing.B) {
	const count = 128
	for _, packing := range []matrix.Packing{matrix.Q4M, matrix.FP4} {
		for _, rows := range []int{1, 2, 3, 4} {
			for _, from := range []string{"memory", "caches"} {
				b.Run(fmt.Sprintf("%v/rows=%d/%s", packing, rows, from), func(b *testing.B) {
					multiplyExperts(b, packing, rows, map[string]int{"memory": count, "caches": 2}[from], count)
				})
			}
		}
	}
}

func multiplyExperts(b *testing.B, packing matrix.Packing, rows, distinct, count int) {
	const m, k = 1536, 2048
	p := pool.New(0)
	defer p.Close()
	backend, size := kernels.NewCPU(p), kernels.DataSize(m, k, packing)
	var memory cpu.Arena
	defer memory.Free() //nolint:errcheck // of a benchmark
	e := experts{acts: make([]kernels.Acts, p.Threads())}
	for i := range count {
		if i >= distinct {
			e.list = append(e.list, e.list[i%distinct])
			continue
		}
		data, err := memory.Bytes(size)
		if err != nil {
			b.Fatal(err)
		}
		for at := range data {
			data[at] = 1 // small codes and scales
		}
		l, err := backend.Load(&matrix.Matrix{Rows: m, Cols: k, Packing: packing, Data: data})
		if err != nil {
			b.Fatal(err)
		}
		e.list = append(e.list, l)
	}
	x := make([]float32, rows*k)
	for i := range x {
		x[i] = float32(i%7) - 3
	}
	for w := range e.acts {
		e.acts[w].Pin(w)
		e.acts[w].Set(x, rows, k)
		e.y = append(e.y, make([]float32, rows*m))
	}
	b.SetBytes(int64(count * size))
	for b.Loop() {
		p.Run(&e, count)
	}
}

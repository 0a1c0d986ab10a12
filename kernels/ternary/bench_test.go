package ternary

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/stream"
)

// BenchmarkMulTernary counts quantising and every arrangement of the activations.
func BenchmarkMulTernary(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range kernels {
		if k.isa != cpu.Generic && !cpu.Has(k.isa) {
			continue
		}
		for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
			for _, s := range [][2]int{{4096, 4096}, {2560, 6912}} {
				rows, cols := s[0], s[1]
				w, err := Pack(rows, cols, kerneltest.RandomTrits(rng, rows*cols), []float32{1}, p)
				if err != nil {
					b.Fatal(err)
				}
				for _, n := range []int{1, 4, 8, 16, 32, 128} {
					b.Run(fmt.Sprintf("%s/%v/%dx%d/N=%d", k.name, p, rows, cols, n), func(b *testing.B) {
						benchmarkMul(b, k, w, n)
					})
				}
			}
		}
	}
}

func benchmarkMul(b *testing.B, k *kernel, w *matrix.Matrix, n int) {
	pool := pool.New(1)
	defer pool.Close()
	run := NewRunner(pool, new(stream.Order))
	run.only = k
	l, err := run.Load(w)
	if err != nil {
		b.Fatal(err)
	}
	x, y := kerneltest.RandomVector(rand.New(rand.NewPCG(3, 4)), n*w.Cols), make([]float32, n*w.Rows)
	var in input
	for b.Loop() {
		in.Set(x, n, w.Cols)
		l.Mul(y, &in.Rows, &in.task)
	}
	macs := float64(n) * float64(w.Rows) * float64(w.Cols) * float64(b.N)
	b.ReportMetric(macs/b.Elapsed().Seconds()/1e9, "GMAC/s")
}

// BenchmarkFromMemory multiplies the matrices of a 1b model's layers one after
// another, more of them than a cache holds, or a single layer's (15.7 MB)
// again and again, on one thread and on all.
func BenchmarkFromMemory(b *testing.B) {
	const layers, most = 12, 256
	var matrices []*matrix.Matrix
	for range layers {
		for _, s := range [][2]int{{4096, 2048}, {2048, 2048}, {16384, 2048}, {2048, 8192}} {
			matrices = append(matrices, Arbitrary(s[0], s[1], matrix.I2, rand.New(rand.NewPCG(1, 2))))
		}
	}
	x, y := kerneltest.RandomVector(rand.New(rand.NewPCG(3, 4)), most*8192), make([]float32, most*16384)
	for _, threads := range []int{1, cpu.Cores()} {
		pool := pool.New(threads)
		defer pool.Close()
		run := NewRunner(pool, new(stream.Order))
		for _, from := range []string{"memory", "cache"} {
			stack := matrices
			if from == "cache" {
				stack = stack[:len(matrices)/layers]
			}
			var products []*Linear
			macs := 0.0
			for _, w := range stack {
				l, err := run.Load(w)
				if err != nil {
					b.Fatal(err)
				}
				products = append(products, l)
				macs += float64(w.Rows) * float64(w.Cols)
			}
			for _, n := range []int{1, 2, 4, 8, 16, 32, 64, most} {
				b.Run(fmt.Sprintf("threads=%d/%s/N=%d", threads, from, n), func(b *testing.B) {
					var in input
					for b.Loop() {
						for _, l := range products {
							in.Set(x, n, l.w.Cols)
							l.Mul(y, &in.Rows, &in.task)
						}
					}
					b.ReportMetric(float64(n)*macs*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
				})
			}
		}
	}
}

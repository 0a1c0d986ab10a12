//go:build amd64 && !purego

package ternary

import (
	"cmp"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/stream"
)

// Rows, columns and tokens end anywhere in tiles, and in chunks of 64 columns of I2 and 320 of I1.
func TestAMXMultipliesWhatFillsNoTiles(t *testing.T) {
	if !cpu.HasAMX {
		t.Skip("no tiles of AMX here: ", cmp.Or(cpu.NoAMX, "the processor has none"))
	}
	pool := pool.New(2)
	defer pool.Close()
	run := NewRunner(pool, new(stream.Order))
	run.only = amxKernel
	rng := rand.New(rand.NewPCG(41, 42))
	const most = 67
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		for i, cols := range []int{1, 15, 16, 17, 63, 64, 65, 300, 319, 320, 321, 640, 700} {
			rows := []int{1, 16, 17, 47, 64, 81}[i%6]
			c := newCase(t, p, rows, cols, most, kerneltest.RandomTrits(rng, rows*cols), kerneltest.RandomVector(rng, most*cols), kerneltest.RandomVector(rng, rows))
			for n := range most {
				c.first(n+1).run(t, run, new(input))
			}
		}
	}
}

func TestActivationsBeyondL2AreMultipliedPartByPart(t *testing.T) {
	if !cpu.HasAMX {
		t.Skip("no tiles of AMX here: ", cmp.Or(cpu.NoAMX, "the processor has none"))
	}
	pool := pool.New(2)
	defer pool.Close()
	run := NewRunner(pool, new(stream.Order))
	run.only = amxKernel
	rng := rand.New(rand.NewPCG(43, 44))
	const rows, cols, n = 20, 20000, 70
	c := newCase(t, matrix.I2, rows, cols, n, kerneltest.RandomTrits(rng, rows*cols), kerneltest.RandomVector(rng, n*cols), []float32{1})
	c.run(t, run, new(input))
}

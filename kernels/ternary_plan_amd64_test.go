//go:build amd64 && !purego

package kernels

import (
	"math/rand/v2"
	"testing"
)

func TestTilesOfTokensLeaveTheRestToAnotherKernel(t *testing.T) {
	before := active
	active = AVX512
	defer func() { active = before }()
	const much, little = 1 << 20, 100
	for _, c := range []struct {
		only    *ternaryKernel
		n, work int
		want    [maxSegments]segment
	}{
		{nil, 63, much, [maxSegments]segment{{vnniTernary, 0, 63}}},
		{nil, 64, much, [maxSegments]segment{{hybridTernary, 0, 64}}},
		{nil, 64, little, [maxSegments]segment{{vnniTernary, 0, 64}}},
		{nil, 130, much, [maxSegments]segment{{hybridTernary, 0, 128}, {vnniTernary, 128, 130}}},
		{hybridTernary, 130, little, [maxSegments]segment{{hybridTernary, 0, 128}, {vnniTernary, 128, 130}}},
		{hybridTernary, 1, little, [maxSegments]segment{{vnniTernary, 0, 1}}},
		{vnniTernary, 130, much, [maxSegments]segment{{vnniTernary, 0, 130}}},
		{lutTernary, 17, much, [maxSegments]segment{{lutTernary, 0, 17}}},
	} {
		for _, p := range []Packing{I1, I2} {
			if got := planTernary(ternaryRules, c.only, p, c.n, c.work); got != c.want {
				t.Errorf("planTernary(%v, %d tokens, work %d) = %v, want %v", p, c.n, c.work, got, c.want)
			}
		}
	}
}

func TestHybridPassesOfOneAndOfTwoBlocksAgree(t *testing.T) {
	eachTernary(t, func(t *testing.T, cpu *CPU) {
		if cpu.ternaryOnly != hybridTernary {
			t.Skip("no such passes")
		}
		before := hybridBlocks
		defer func() { hybridBlocks = before }()
		rng := rand.New(rand.NewPCG(19, 20))
		const rows, n = 150, hybridTokens
		for _, cols := range []int{16, 33, 256, 301} {
			c := newTernaryCase(t, I2, rows, cols, n, randomTrits(rng, rows*cols), randomFloats(rng, n*cols), []float32{1})
			for hybridBlocks = 1; hybridBlocks <= 2; hybridBlocks++ {
				c.run(t, cpu, new(Acts))
			}
		}
	})
}

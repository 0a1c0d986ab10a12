//go:build amd64 && !purego

package ternary

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

func TestTilesOfTokensLeaveTheRestToAnotherKernel(t *testing.T) {
	defer cpu.Override(cpu.AVX512)()
	const much, little = 1 << 20, 100
	for _, c := range []struct {
		only    *kernel
		n, work int
		want    [maxSegments]segment
	}{
		{nil, 63, much, [maxSegments]segment{{vnniKernel, 0, 63}}},
		{nil, 64, much, [maxSegments]segment{{hybridKernel, 0, 64}}},
		{nil, 64, little, [maxSegments]segment{{vnniKernel, 0, 64}}},
		{nil, 130, much, [maxSegments]segment{{hybridKernel, 0, 128}, {vnniKernel, 128, 130}}},
		{hybridKernel, 130, little, [maxSegments]segment{{hybridKernel, 0, 128}, {vnniKernel, 128, 130}}},
		{hybridKernel, 1, little, [maxSegments]segment{{vnniKernel, 0, 1}}},
		{vnniKernel, 130, much, [maxSegments]segment{{vnniKernel, 0, 130}}},
		{lutKernel, 17, much, [maxSegments]segment{{lutKernel, 0, 17}}},
	} {
		for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
			if got := makePlan(rulesOf(false, false), c.only, p, c.n, c.work); got != c.want {
				t.Errorf("makePlan(%v, %d tokens, work %d) = %v, want %v", p, c.n, c.work, got, c.want)
			}
		}
	}
}

func TestTwoPortsMultiplyDigitsThatGFNIUnpacks(t *testing.T) {
	defer cpu.Override(cpu.AVX512)()
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		for _, n := range []int{1, 4, 64, 130} {
			want := [maxSegments]segment{{gfniKernel, 0, n}}
			if p == matrix.I1 && n == 1 {
				want[0].kernel = vnniKernel
			}
			if got := makePlan(rulesOf(true, false), nil, p, n, n<<10); got != want {
				t.Errorf("makePlan(%v, %d tokens) = %v, want %v", p, n, got, want)
			}
		}
	}
}

func TestTilesMultiplyManyTokensWhereThereIsAMX(t *testing.T) {
	defer cpu.Override(cpu.AVX512)()
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		for n, want := range map[int]*kernel{4: gfniKernel, 7: gfniKernel, 12: amxKernel, 64: amxKernel, 130: amxKernel} {
			if got := makePlan(rulesOf(true, true), nil, p, n, n<<10); got != [maxSegments]segment{{want, 0, n}} {
				t.Errorf("makePlan(%v, %d tokens) = %v, want %s", p, n, got, want.name)
			}
		}
	}
}

func TestAKernelThatNeedsGFNIOrAMXIsLeftOutWithoutIt(t *testing.T) {
	if slices.Contains(kernelsOf(false, false), gfniKernel) || !slices.Contains(kernelsOf(true, false), gfniKernel) {
		t.Error("gfniKernel is not among the kernels of a processor with GFNI alone")
	}
	if slices.Contains(kernelsOf(true, false), amxKernel) || !slices.Contains(kernelsOf(true, true), amxKernel) {
		t.Error("amxKernel is not among the kernels of a processor with AMX alone")
	}
	for _, r := range rulesOf(false, false) {
		if r.kernel == gfniKernel {
			t.Errorf("%v from %d tokens goes to gfniKernel", r.packing, r.from)
		}
	}
}

func TestRowsAndTokensShareTheCostOfTables(t *testing.T) {
	defer cpu.Override(cpu.AVX2)()
	for _, c := range []struct {
		p         matrix.Packing
		n, strips int
		want      *kernel
	}{
		{matrix.I2, 11, 16, madKernel}, {matrix.I2, 12, 16, lutKernel},
		{matrix.I2, 13, 8, madKernel}, {matrix.I2, 14, 8, lutKernel},
		{matrix.I2, 15, 4, madKernel}, {matrix.I2, 16, 4, lutKernel},
		{matrix.I2, 16, 3, madKernel},
		{matrix.I2, 11, 256, lutKernel},
		{matrix.I1, 8, 16, madKernel}, {matrix.I1, 9, 16, lutKernel},
		{matrix.I1, 13, 4, madKernel}, {matrix.I1, 14, 4, lutKernel},
	} {
		if got := makePlan(rules, nil, c.p, c.n, c.n*c.strips)[0].kernel; got != c.want {
			t.Errorf("%v, %d tokens, %d strips: %s, want %s", c.p, c.n, c.strips, got.name, c.want.name)
		}
	}
	got := makePlan(rules, nil, matrix.I2, 28, 28*4)
	if want := [maxSegments]segment{{lutKernel, 0, 16}, {madKernel, 16, 28}}; got != want {
		t.Errorf("28 tokens, 4 strips: %v, want %v", got, want)
	}
}

func TestAVXVNNIMultipliesUntilLookupsOvertakeIt(t *testing.T) {
	defer cpu.Override(cpu.AVXVNNI)()
	const strips = 16
	for _, c := range []struct {
		p    matrix.Packing
		n    int
		want [maxSegments]segment
	}{
		{matrix.I2, 1, [maxSegments]segment{{dotKernel, 0, 1}}},
		{matrix.I2, 12, [maxSegments]segment{{dotKernel, 0, 12}}},
		{matrix.I2, 16, [maxSegments]segment{{lutKernel, 0, 16}}},
		{matrix.I2, 20, [maxSegments]segment{{lutKernel, 0, 16}, {dotKernel, 16, 20}}},
		{matrix.I1, 8, [maxSegments]segment{{dotKernel, 0, 8}}},
		{matrix.I1, 12, [maxSegments]segment{{lutKernel, 0, 12}}},
	} {
		if got := makePlan(rules, nil, c.p, c.n, c.n*strips); got != c.want {
			t.Errorf("makePlan(%v, %d tokens) = %v, want %v", c.p, c.n, got, c.want)
		}
	}
}

func TestHybridPassesOfOneAndOfTwoBlocksAgree(t *testing.T) {
	eachKernel(t, func(t *testing.T, run *Runner) {
		if run.only != hybridKernel {
			t.Skip("no such passes")
		}
		before := hybridBlocks
		defer func() { hybridBlocks = before }()
		rng := rand.New(rand.NewPCG(19, 20))
		const rows, n = 150, acts.PairedTokens
		for _, cols := range []int{16, 33, 256, 301} {
			c := newCase(t, matrix.I2, rows, cols, n, kerneltest.RandomTrits(rng, rows*cols), kerneltest.RandomVector(rng, n*cols), []float32{1})
			for hybridBlocks = 1; hybridBlocks <= 2; hybridBlocks++ {
				c.run(t, run, new(input))
			}
		}
	})
}

func TestRowsAreTheSameWithAndWithoutAPanel(t *testing.T) {
	eachKernel(t, func(t *testing.T, run *Runner) {
		if run.only != gfniKernel {
			t.Skip("has no panel")
		}
		defer func(before int) { gfniPanelBytes = before }(gfniPanelBytes)
		rng := rand.New(rand.NewPCG(21, 22))
		const rows, cols, most = 70, 101, 160 // tokens from which each tile is what is left of wider ones
		for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
			c := newCase(t, p, rows, cols, most, kerneltest.RandomTrits(rng, rows*cols), kerneltest.RandomVector(rng, most*cols), []float32{1})
			for _, gfniPanelBytes = range []int{0, 1 << 20} {
				for n := range most {
					c.first(n+1).run(t, run, new(input))
				}
			}
		}
	})
}

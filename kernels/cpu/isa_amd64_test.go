//go:build amd64 && !purego

package cpu

import "testing"

func TestProcessorsHaveTheInstructionSetsOfTheirFeatures(t *testing.T) {
	for _, c := range []struct {
		name string
		features
		best ISA
		gfni bool
	}{
		{"Core 2", features{}, Generic, false},
		{"Haswell", features{avx2: true}, AVX2, false},
		{"Alder Lake, GFNI in VEX alone", features{avx2: true, avxvnni: true}, AVXVNNI, false},
		{"Skylake", features{avx2: true, avx512: true}, AVX2, false},
		{"Cascade Lake", features{avx2: true, avx512: true, vnni: true}, AVX2, false},
		{"Cannon Lake", features{avx2: true, avx512: true, vbmi: true}, AVX2, false},
		{"Ice Lake, GFNI masked", features{avx2: true, avx512: true, vnni: true, vbmi: true}, AVX512, false},
		{"Ice Lake, Zen 4", features{avx2: true, avx512: true, vnni: true, vbmi: true, gfni: true}, AVX512, true},
		{"Sapphire Rapids, Zen 5", features{avx2: true, avxvnni: true, avx512: true, vnni: true, vbmi: true, gfni: true}, AVX512, true},
		{"Tremont, GFNI in SSE alone", features{gfni: true}, Generic, false},
	} {
		best := Generic
		for i := AVX2; i <= NEON; i++ {
			if c.has(i) {
				best = i
			}
		}
		if best != c.best || c.hasGFNI() != c.gfni {
			t.Errorf("%s: %v, GFNI %v, want %v, %v", c.name, best, c.hasGFNI(), c.best, c.gfni)
		}
	}
}

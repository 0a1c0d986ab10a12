//go:build amd64 && !purego

package cpu

import (
	"errors"
	"testing"
)

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

func TestTilesAreUsedWhereTheProcessorAndTheSystemLet(t *testing.T) {
	all := features{avx2: true, avxvnni: true, avx512: true, vnni: true, vbmi: true, gfni: true, amx: true}
	masked, without := all, all
	masked.avx512, without.amx = false, false
	for _, c := range []struct {
		name string
		features
		err   error
		asked int
		has   bool
		why   string
	}{
		{"Sapphire Rapids", all, nil, 1, true, ""},
		{"Sapphire Rapids, Linux 5.15", all, errors.New("no such request"), 1, false, "no such request"},
		{"Sapphire Rapids, AVX-512 masked", masked, nil, 0, false, ""},
		{"Ice Lake", without, errors.New("no tiles"), 0, false, ""},
	} {
		asked := 0
		has, why := c.hasAMX(func() error { asked++; return c.err })
		if has != c.has || why != c.why || asked != c.asked {
			t.Errorf("%s: %t, %q, asked %d times, want %t, %q, %d", c.name, has, why, asked, c.has, c.why, c.asked)
		}
	}
}

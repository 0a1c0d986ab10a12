//go:build amd64 && !purego

package grouped

import (
	"slices"
	"testing"

	"github.com/klauspost/cpuid/v2"

	"github.com/lutra-lm/lutra/kernels/choice"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
)

func TestEveryPackingHasAChoiceAmongItsMethods(t *testing.T) {
	for _, p := range matrix.Packings() {
		rules, why := Choice(p)
		for _, n := range []int{1, 2, 8, 100} {
			if !slices.Contains(Methods(p), rules.For(n)) || why == "" {
				t.Errorf("%v, %d tokens: %q, because %q, of %v", p, n, rules.For(n), why, Methods(p))
			}
		}
	}
	defer cpu.Override(cpu.AVX2)()
	for _, p := range matrix.Packings() {
		if rules, _ := Choice(p); !slices.Equal(rules, choice.Always(MAD)) {
			t.Errorf("%v: AVX2 has %v", p, rules)
		}
	}
}

func TestWithoutGFNIThereIsNothingToChoose(t *testing.T) {
	defer cpu.Override(cpu.AVX512)()
	defer func(before bool) { cpu.HasGFNI = before }(cpu.HasGFNI)
	cpu.HasGFNI = false
	if got := Methods(matrix.Q4); !slices.Equal(got, []string{MAD}) {
		t.Errorf("methods %v, want %q alone", got, MAD)
	}
	tiles := kernelFor(cpu.AVX512, &matrix.Matrix{Packing: matrix.Q4}).(*kernel).tiles
	for _, w := range widths {
		if tiles.forPorts(w.From) != nil || tiles.pair.None() {
			t.Errorf("tiles of GFNI for %d tokens without it", w.From)
		}
	}
}

// The rules say which tiles multiply so many tokens; 4 are of the width that begins with 2.
func TestTilesAreThoseOfTheWidth(t *testing.T) {
	tiles := tilesBy(choice.Rules{{From: 1, Method: MAD}, {From: 2, Method: GFNI}, {From: 5, Method: MAD}, {From: 9, Method: GFNI}}, matrix.Q4)
	for n, want := range map[int]bool{1: false, 2: true, 4: true, 5: false, 8: false, 9: true, 64: true} {
		if (tiles.forPorts(n) != nil) != want {
			t.Errorf("%d tokens: tiles for two ports %t, want %t", n, !want, want)
		}
	}
}

func TestProcessorsBeginWithTheMethodsOfTheirPorts(t *testing.T) {
	for _, c := range []struct {
		name   string
		vendor cpuid.Vendor
		family int
		want   string
	}{
		{"Emerald Rapids", cpuid.Intel, 6, "1:gfni"},
		{"Genoa", cpuid.AMD, 25, "1:gfni;9:mad"},
		{"Turin", cpuid.AMD, 26, "1:mad"},
		{"unknown", cpuid.VendorUnknown, 0, "1:mad"},
	} {
		if got := usualOf(c.vendor, c.family).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestWhatIsMeasuredMultipliesByEveryMethod(t *testing.T) {
	if !cpu.Has(cpu.AVX512) {
		t.Skip("what is measured are tiles of AVX-512")
	}
	p := pool.New(1)
	defer p.Close()
	for _, packing := range []matrix.Packing{matrix.Q4, matrix.Q4M, matrix.Q6, matrix.Q1G128} {
		weights, multiply, err := prepare(p, packing)
		if err != nil || len(weights) == 0 || len(weights) > choiceBytes {
			t.Fatalf("%v: %d bytes, %v", packing, len(weights), err)
		}
		for _, method := range Methods(packing) {
			for _, w := range widths {
				for _, n := range w.Tokens {
					multiply(method, n)
				}
			}
		}
	}
}

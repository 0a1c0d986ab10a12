package cpu

import (
	"runtime"
	"testing"
)

func TestAFamilyHasAllInstructionSetsOfOneArithmetic(t *testing.T) {
	arch := runtime.GOARCH
	for _, c := range []struct {
		isa        ISA
		delta      bool
		fused, fma bool
		want       string // behind the architecture
	}{
		{Generic, false, false, true, "-portable"},
		{AVX2, false, false, true, "-avx2"},
		{AVXVNNI, false, false, true, "-avx2"},
		{AVX512, false, false, true, "-avx2"},
		{AVXVNNI, true, false, true, "-avx2"},
		{AVX512, true, false, true, "-avx512"},
		{NEON, false, true, true, "-neon"},
		{NEON, true, true, true, "-neon"},
	} {
		if arch == "amd64" && c.fused {
			continue
		}
		if got := family(c.isa, c.delta, c.fused, c.fma); got != arch+c.want {
			t.Errorf("family(%v, %v, %v, %v) = %q, want %q", c.isa, c.delta, c.fused, c.fma, got, arch+c.want)
		}
	}
	if arch == "amd64" {
		for got, want := range map[string]string{
			family(AVX512, false, true, true): "amd64v3-avx2", family(Generic, false, true, true): "amd64v3-portable", family(Generic, false, false, false): "amd64-portable-nofma",
		} {
			if got != want {
				t.Errorf("a family is %q, want %q", got, want)
			}
		}
	}
}

func TestGoIsSeenToFuseWhereItDoes(t *testing.T) {
	if arch := runtime.GOARCH; arch == "arm64" && !fuses() {
		t.Error("fuses() = false on arm64, where Go fuses")
	}
	if x, y := mulAdd(3, 4, 5), mulAdd(nearOne, nearOne, 0); x != 17 || y != nearOne*nearOne {
		t.Errorf("mulAdd(3, 4, 5) = %v, of (1+2^-12)^2 %v", x, y)
	}
}

package cpu

import (
	"runtime"
	"testing"
)

func TestAFamilyHasAllInstructionSetsOfOneArithmetic(t *testing.T) {
	arch := runtime.GOARCH
	for _, c := range []struct {
		isa        ISA
		fused, fma bool
		want       string // after the architecture
	}{
		{Generic, false, true, "-portable"},
		{AVX2, false, true, "-avx2"},
		{AVXVNNI, false, true, "-avx2"},
		{AVX512, false, true, "-avx2"},
		{NEON, true, true, "-neon"},
	} {
		if arch == "amd64" && c.fused {
			continue
		}
		if got := family(c.isa, c.fused, c.fma); got != arch+c.want {
			t.Errorf("family(%v, %v, %v) = %q, want %q", c.isa, c.fused, c.fma, got, arch+c.want)
		}
	}
	if arch == "amd64" {
		for got, want := range map[string]string{
			family(AVX512, true, true): "amd64v3-avx2", family(Generic, true, true): "amd64v3-portable", family(Generic, false, false): "amd64-portable-nofma",
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

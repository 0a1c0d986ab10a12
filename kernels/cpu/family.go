package cpu

import "runtime"

// Family names the kernels that give the same bits for the same input: kernels of one
// family agree in every number, kernels of two families only within rounding. AVX2,
// AVX-VNNI and AVX-512 are one family, with all ternary methods, and so are NEON's with
// SDOT and SMMLA or without. Portable code is one for each architecture, since Go rounds
// x·y+z once on some of them and twice on others, and for amd64 by GOAMD64.
func Family() string { return family(active, fuses(), hasFMA()) }

// family does as Family, given an instruction set, whether Go fuses x·y+z, and whether the
// processor can, of which Go's math.Exp makes use on amd64.
func family(isa ISA, fused, fma bool) string {
	arch := runtime.GOARCH
	if arch == "amd64" && fused {
		arch = "amd64v3"
	}
	switch {
	case isa == NEON:
		return arch + "-neon"
	case isa != Generic:
		return arch + "-avx2"
	case arch == "amd64" && !fma:
		return arch + "-portable-nofma"
	}
	return arch + "-portable"
}

// fuses reports whether Go's compiler rounds x·y+z once in this program.
func fuses() bool { return mulAdd(nearOne, nearOne, -nearOne*nearOne) != 0 }

// nearOne has a square that a float32 does not hold; the constant product rounds once.
const nearOne float32 = 1 + 1.0/(1<<12)

//go:noinline
func mulAdd(x, y, z float32) float32 { return x*y + z }

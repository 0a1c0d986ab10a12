package cpu

import (
	"fmt"
	"os"
	"strings"
)

// ISA is an instruction set that kernels are written for, weakest first.
type ISA uint8

// The instruction sets with kernels of their own.
const (
	Generic ISA = iota // portable Go
	AVX2               // AVX2 + FMA + F16C
	AVXVNNI            // AVX2 with VPDPBUSD of 256 bits, as processors without AVX-512 have it
	AVX512             // AVX-512 F/BW/VL/DQ + VNNI + VBMI
	NEON               // arm64 ASIMD; SDOT and SMMLA are detected apart
)

var isaNames = [...]string{"generic", "avx2", "avxvnni", "avx512", "neon"}

// String gives the name LUTRA_KERNEL uses.
func (i ISA) String() string { return isaNames[i] }

// active is the instruction set kernels dispatch on, fixed at start-up.
var active = choose(os.Getenv("LUTRA_KERNEL"))

// NoAMX says why kernels do without the tiles of a processor that has AMX; "" where there is nothing to say.
var NoAMX string

// Active returns the instruction set in use: the best one this machine has,
// unless LUTRA_KERNEL names a lesser one.
func Active() ISA { return active }

// Override makes isa the instruction set in use until restore is called, for
// tests and benchmarks: no kernel may run while it changes.
func Override(isa ISA) (restore func()) {
	before := active
	active = isa
	return func() { active = before }
}

// Supported lists the instruction sets this machine can run, weakest first.
func Supported() []ISA {
	s := []ISA{Generic}
	for i := AVX2; i <= NEON; i++ {
		if Has(i) {
			s = append(s, i)
		}
	}
	return s
}

// choose reads the ISA part of LUTRA_KERNEL ("avx2", "avx2:lut", ...). A name
// that this machine lacks must not crash later with an illegal instruction.
func choose(override string) ISA {
	name, _, _ := strings.Cut(override, ":")
	s := Supported()
	if name == "" {
		return s[len(s)-1]
	}
	for _, i := range s {
		if i.String() == name {
			return i
		}
	}
	fmt.Fprintf(os.Stderr, "lutra: LUTRA_KERNEL=%s: not available here (have %v); using %s\n", override, s, s[len(s)-1])
	return s[len(s)-1]
}

// UseAVX2 reports whether AVX2 kernels run: under wider instruction sets too, for
// work that gains nothing from more width.
func UseAVX2() bool { return active >= AVX2 && active <= AVX512 }

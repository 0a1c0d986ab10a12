//go:build amd64 && !purego

package cpu

import "golang.org/x/sys/cpu"

// features lists the processor's features that the instruction sets need.
type features struct {
	avx2    bool // with FMA and F16C
	avxvnni bool
	avx512  bool // F, BW, VL and DQ
	vnni    bool // of AVX-512
	vbmi    bool
	gfni    bool // with the system's leave for registers of 512 bits
	amx     bool // AMX-TILE and AMX-INT8, with or without the system's leave
}

var here = features{
	avx2:    cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C,
	avxvnni: cpu.X86.HasAVXVNNI,
	avx512:  cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ,
	vnni:    cpu.X86.HasAVX512VNNI,
	vbmi:    cpu.X86.HasAVX512VBMI,
	gfni:    cpu.X86.HasAVX512GFNI,
	amx:     cpu.X86.HasAMXTile && cpu.X86.HasAMXInt8,
}

// Has reports whether this machine has i.
func Has(i ISA) bool { return here.has(i) }

// HasGFNI reports whether AVX512 kernels may use VGF2P8AFFINEQB.
var HasGFNI = here.hasGFNI()

// HasAMX reports whether AVX512 kernels may use tiles: processors with tiles have GFNI too.
var HasAMX bool

func init() { HasAMX, NoAMX = here.hasAMX(askForTiles) }

// hasAMX asks the system for tiles if the processor has them.
func (f features) hasAMX(ask func() error) (has bool, why string) {
	if !f.amx || !f.hasGFNI() {
		return false, ""
	}
	if err := ask(); err != nil {
		return false, err.Error()
	}
	return true, ""
}

func (f features) has(i ISA) bool {
	switch i {
	case AVX2:
		return f.avx2
	case AVXVNNI:
		return f.avx2 && f.avxvnni
	case AVX512:
		return f.avx2 && f.avx512 && f.vnni && f.vbmi
	}
	return false
}

func (f features) hasGFNI() bool { return f.has(AVX512) && f.gfni }

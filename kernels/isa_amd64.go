//go:build amd64 && !purego

package kernels

import "golang.org/x/sys/cpu"

func hasISA(i ISA) bool {
	x := &cpu.X86
	switch i {
	case AVX2:
		return x.HasAVX2 && x.HasFMA && x.HasF16C
	case AVX512:
		return x.HasAVX2 && x.HasFMA && x.HasF16C && x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512VNNI && x.HasAVX512VBMI
	}
	return false
}

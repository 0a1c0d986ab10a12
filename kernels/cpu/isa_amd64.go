//go:build amd64 && !purego

package cpu

import "golang.org/x/sys/cpu"

func Has(i ISA) bool {
	x := &cpu.X86
	avx2 := x.HasAVX2 && x.HasFMA && x.HasF16C
	switch i {
	case AVX2:
		return avx2
	case AVXVNNI:
		return avx2 && x.HasAVXVNNI
	case AVX512:
		return avx2 && x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512VNNI && x.HasAVX512VBMI
	}
	return false
}

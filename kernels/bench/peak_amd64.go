//go:build amd64 && !purego

package bench

import (
	"time"

	"github.com/lutra-lm/lutra/kernels/cpu"
)

// multiplyPeak measures the int8 multiply-accumulates of one core.
func multiplyPeak(budget time.Duration) (gmacs float64, of string) {
	const rounds = 10000
	run, macs, of := peakMaddAVX2, 14*32, "VPMADDUBSW+VPADDW"
	switch {
	case cpu.Active() == cpu.Generic:
		return 0, ""
	case cpu.Active() == cpu.AVXVNNI:
		run, macs, of = peakDotAVXVNNI, 14*32, "VPDPBUSD"
	case cpu.Active() == cpu.AVX512:
		run, macs, of = peakVNNIAVX512, 16*64, "VPDPBUSD"
	}
	best := bestOfEach(budget, 1, func(int) { run(rounds) })
	return rounds * float64(macs) / best.Seconds() / 1e9, of
}

// fmaPeak measures the float32 multiply-accumulates of one core.
func fmaPeak(budget time.Duration) float64 {
	const rounds = 10000
	run, macs := peakFMAAVX2, 14*8
	switch cpu.Active() {
	case cpu.Generic:
		return 0
	case cpu.AVX512:
		run, macs = peakFMAAVX512, 16*16
	}
	best := bestOfEach(budget, 1, func(int) { run(rounds) })
	return rounds * float64(macs) / best.Seconds() / 1e9
}

// readers are the ways to read memory; the fastest one counts.
func readers() []func(b []byte) {
	if cpu.Active() == cpu.Generic {
		return []func([]byte){readBytesGeneric}
	}
	return []func([]byte){
		func(b []byte) { peakReadAVX2(&b[0], len(b)) },
		func(b []byte) { peakReadAheadAVX2(&b[0], len(b)) },
	}
}

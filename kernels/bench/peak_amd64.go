//go:build amd64 && !purego

package bench

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/meter"
)

// peakOf returns a loop of the most that one core's units can do of a kind of product:
// float32 multiply-accumulates, or int8 ones.
func peakOf(k meter.Kind) loop {
	floats, active := k == meter.Dense, cpu.Active()
	switch {
	case active == cpu.Generic:
		return loop{}
	case floats && active == cpu.AVX512:
		return loop{peakFMAAVX512, 16 * 16, "FMA"}
	case floats:
		return loop{peakFMAAVX2, 14 * 8, "FMA"}
	case active == cpu.AVX512 && cpu.HasAMX:
		return loop{func(rounds int) { peakAMXAVX512(rounds, &wholeTiles[0]) }, 4 * 16 * 16 * 64, "TDPBUSD"}
	case active == cpu.AVX512:
		return loop{peakVNNIAVX512, 16 * 64, "VPDPBUSD"}
	case active == cpu.AVXVNNI:
		return loop{peakDotAVXVNNI, 14 * 32, "VPDPBUSD"}
	}
	return loop{peakMaddAVX2, 14 * 32, "VPMADDUBSW+VPADDW"}
}

// wholeTiles are the sizes of eight whole tiles.
var wholeTiles = func() (s cpu.TileSizes) {
	for t := range 8 {
		s.Set(t, 16, 64)
	}
	return s
}()

// readers returns the ways to read memory; the fastest one counts.
func readers() []func(b []byte) {
	if cpu.Active() == cpu.Generic {
		return []func([]byte){readBytesGeneric}
	}
	return []func([]byte){
		func(b []byte) { peakReadAVX2(&b[0], len(b)) },
		func(b []byte) { peakReadAheadAVX2(&b[0], len(b)) },
	}
}

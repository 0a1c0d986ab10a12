//go:build amd64 && !purego

package kernels

import "time"

// multiplyPeak measures the int8 multiply-accumulates of one core.
func multiplyPeak(budget time.Duration) (gmacs float64, of string) {
	const rounds = 10000
	run, macs, of := peakMaddAVX2, 14*32, "VPMADDUBSW+VPADDW"
	switch {
	case active == Generic:
		return 0, ""
	case active == AVX512:
		run, macs, of = peakVNNIAVX512, 16*64, "VPDPBUSD"
	}
	best := bestOf(budget, func() { run(rounds) })
	return rounds * float64(macs) / best.Seconds() / 1e9, of
}

func readBytes(b []byte) {
	if active == Generic {
		readBytesGeneric(b)
		return
	}
	peakReadAVX2(&b[0], len(b))
}

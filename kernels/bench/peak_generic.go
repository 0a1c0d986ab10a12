//go:build purego || !amd64

package bench

import "time"

// multiplyPeak is not known: no instruction here is the one to measure.
func multiplyPeak(time.Duration) (gmacs float64, of string) { return 0, "" }

// fmaPeak is not known either.
func fmaPeak(time.Duration) float64 { return 0 }

func readers() []func(b []byte) { return []func([]byte){readBytesGeneric} }

// Package kerneltest holds the helpers that tests of kernels share.
package kerneltest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/kernels/cpu"
)

// Canary stands around memory that a kernel may write.
const Canary = 12345.5

// OnEachISA runs f once for every instruction set this machine has.
func OnEachISA(t *testing.T, f func(t *testing.T)) {
	for _, isa := range cpu.Supported() {
		t.Run(isa.String(), func(t *testing.T) {
			defer cpu.Override(isa)()
			f(t)
		})
	}
}

// RandomVector returns n normally distributed values.
func RandomVector(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// Guarded gives n values between canaries, and a check of those.
func Guarded(t *testing.T, n int) (v []float32, check func()) {
	buf := make([]float32, n+32)
	for i := range buf {
		buf[i] = Canary
	}
	return buf[16 : 16+n : 16+n], func() {
		t.Helper()
		for i := range 16 {
			if buf[i] != Canary || buf[16+n+i] != Canary {
				t.Fatalf("n=%d: wrote outside dst", n)
			}
		}
	}
}

// Near reports whether got is within bound of want.
func Near(got float32, want, bound float64) bool {
	return math.Abs(float64(got)-want) <= bound
}

// SameBits reports whether a and b are the same, bit for bit.
func SameBits(a, b []float32) bool {
	for i, v := range a {
		if math.Float32bits(v) != math.Float32bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

// RandomTrits returns n values of {-1, 0, +1}.
func RandomTrits(rng *rand.Rand, n int) []int8 {
	t := make([]int8, n)
	for i := range t {
		t[i] = int8(rng.IntN(3) - 1)
	}
	return t
}

// Fastest measures f, a call of which does much units. On a shared machine the mean
// says more of the neighbours than of f: it reports the fastest tenth.
func Fastest(b *testing.B, f func(), much float64, unit string) {
	f()
	b.ReportAllocs()
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		f()
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	fast := times[len(times)/10]
	b.ReportMetric(fast.Seconds()*1e6, "µs(p10)")
	b.ReportMetric(much/fast.Seconds(), unit)
}

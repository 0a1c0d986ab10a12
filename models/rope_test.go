package models

import (
	"math"
	"testing"
)

func plainRope() ropeParams {
	return ropeParams{dims: 64, base: 10000, scaling: scalingNone, factor: 1, attn: 1, original: 2048, betaFast: 32, betaSlow: 1, ext: 1}
}

func TestRopeFrequenciesFollowThePapers(t *testing.T) {
	linear := plainRope()
	linear.scaling, linear.factor = scalingLinear, 4
	yarn := plainRope()
	yarn.scaling, yarn.factor = scalingYarn, 4
	factors := plainRope()
	factors.factors = make([]float32, 32)
	for i := range factors.factors {
		factors.factors[i] = float32(i + 1)
	}
	plain := func(i int) float64 { return math.Pow(10000, -float64(i)/32) }
	for _, c := range []struct {
		name string
		p    ropeParams
		gain float64
		want map[int]float64
	}{
		{"none", plainRope(), 1, map[int]float64{0: 1, 16: plain(16), 31: plain(31)}},
		{"linear", linear, 1, map[int]float64{0: 0.25, 16: plain(16) / 4, 31: plain(31) / 4}},
		{"factors", factors, 1, map[int]float64{0: 1, 16: plain(16) / 17, 31: plain(31) / 32}},
		// Worked out by a separate script from YaRN §3.2 and §3.4.
		{"yarn", yarn, 1.138629436111989, map[int]float64{
			0: 1, 6: 0.1778279410038923, 12: 0.024325212770525993, 16: 0.005384615384615384,
			20: 0.0009730085108210397, 25: 0.00018747355233311396, 31: 3.33380358040831e-05,
		}},
	} {
		r := newRope(c.p)
		if len(r.freq) != 32 || math.Abs(r.gain-c.gain) > 1e-12 {
			t.Errorf("%s: %d frequencies with gain %v, want 32 with %v", c.name, len(r.freq), r.gain, c.gain)
		}
		for i, want := range c.want {
			if math.Abs(r.freq[i]/want-1) > 1e-9 {
				t.Errorf("%s: frequency %d is %v, want %v", c.name, i, r.freq[i], want)
			}
		}
	}
}

func TestCachedAnglesAreThoseThatAreComputed(t *testing.T) {
	p := plainRope()
	p.attn = 1.25
	r := newRope(p)
	pos := []int32{0, 1, ropePage - 1, ropePage, 1000, 1000, ropeCached - 1, ropeCached, 100000, 3}
	n := len(r.freq)
	cos, sin := make([]float32, len(pos)*n), make([]float32, len(pos)*n)
	for range 2 { // made, then remembered
		clear(cos)
		clear(sin)
		r.angles(cos, sin, pos)
		for i, p := range pos {
			for j, f := range r.freq {
				s, c := math.Sincos(float64(p) * f)
				if got, want := [2]float32{cos[i*n+j], sin[i*n+j]}, [2]float32{float32(c * 1.25), float32(s * 1.25)}; got != want {
					t.Fatalf("position %d, pair %d: %v, want %v", p, j, got, want)
				}
			}
		}
	}
}

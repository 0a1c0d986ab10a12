package acts

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/pool"
)

func TestQuantisedRowsKeepTheirBounds(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		x     []float32
		q     []int8
		scale float32
	}{
		{[]float32{0, 0, 0}, []int8{0, 0, 0}, 0},
		{[]float32{1, -1, 0.5}, []int8{127, -127, 64}, 1 / float32(127)}, // 63.5 goes to even
		{[]float32{254, 5, 3}, []int8{127, 2, 2}, 2},                     // 2.5 and 1.5
		{[]float32{1, nan, 3}, []int8{0, 0, 0}, nan},
		{[]float32{1, -inf, 3}, []int8{0, 0, 0}, nan},
		{[]float32{1e-40, -1e-38, 0}, []int8{0, 0, 0}, 0},
		{[]float32{math.MaxFloat32, -math.MaxFloat32, 1}, []int8{127, -127, 0}, math.MaxFloat32 / 127},
	} {
		for _, pad := range []int{0, 13, 64} { // the value sits in a vector's body and in its tail
			x := append(make([]float32, pad), c.x...)
			q := make([]int8, len(x))
			for name, f := range map[string]func([]int8, []float32) (float32, int32){"native": quantizeRow, "generic": QuantizeRow} {
				scale, negSum := f(q, x)
				want := int32(0)
				for i, v := range c.q {
					if q[pad+i] != v {
						t.Errorf("%s: quantised %v = %v, want %v", name, c.x, q[pad:], c.q)
					}
					want -= int32(v)
				}
				if scale != c.scale && (scale == scale || c.scale == c.scale) || negSum != want {
					t.Errorf("%s: quantised %v: scale %v, sum %v; want %v, %v", name, c.x, scale, negSum, c.scale, want)
				}
			}
		}
	}
}

func TestArrangementsHoldTheCodesOfTheirTokens(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, cols := range []int{1, 16, 79, 80, 81, 333} {
		stride := rowStride(cols)
		q := make([]int8, LaneTokens*stride)
		for i := range q {
			q[i] = int8(rng.IntN(255) - 127)
		}
		for _, g := range []int{4, 5} {
			kp := cpu.RoundUp(cols, BlockBytes*g)
			got, want := make([]int8, OctetBytes(cols, g)), make([]int8, OctetBytes(cols, g))
			arrangeOctets(got, q[:2*stride], stride, g)
			arrangeOctetsGeneric(want, q[:2*stride], stride, g)
			if !slices.Equal(got, want) {
				t.Errorf("octets of %d columns, g=%d: native and generic differ", cols, g)
			}
			for n := range 2 {
				for k := range cols { // column k: byte k/g of its blocks, trit k%g
					if v := got[k/(8*g)*16*g+k%g*16+8*n+k%(8*g)/g]; v != q[n*stride+k] {
						t.Fatalf("octets of %d columns, g=%d: column %d of token %d = %d, want %d", cols, g, k, n, v, q[n*stride+k])
					}
				}
			}
			for width := 1; width <= 8; width++ {
				got, want := make([]int8, width*kp), make([]int8, width*kp)
				arrangeQuads(got, q, stride, g, width)
				arrangeQuadsGeneric(want, q, stride, g, width)
				for k := range kp { // and by the definition: [block][g][width][4]
					b, c, j := k/(BlockBytes*g), k%(BlockBytes*g)/g, k%g
					for n := range width {
						i := ((b*g+j)*width+n)*4 + c
						if got[i] != q[n*stride+k] || want[i] != q[n*stride+k] {
							t.Fatalf("%d columns, g %d, width %d: token %d, column %d = %d and %d, want %d", cols, g, width, n, k, got[i], want[i], q[n*stride+k])
						}
					}
				}
			}
		}
		got, want := make([]int8, LaneTokens*stride), make([]int8, LaneTokens*stride)
		arrangeLanes(got, q, stride, LaneTokens, LaneTokens)
		arrangeLanesGeneric(want, q, stride, LaneTokens, LaneTokens)
		for i := range got {
			if v := q[i%LaneTokens*stride+i/LaneTokens]; got[i] != v || want[i] != v {
				t.Fatalf("%d columns: lane %d, column %d = %d and %d, want %d", cols, i%LaneTokens, i/LaneTokens, got[i], want[i], v)
			}
		}
	}
}

func TestPairedTilesHoldTheCodesOfTheirTokens(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	pool := pool.New(2)
	defer pool.Close()
	const n, lo, hi = 3*PairedTokens + 2, PairedTokens, 3 * PairedTokens
	for _, cols := range []int{1, 79, 80, 81, 333} {
		var rows Rows
		rows.Set(kerneltest.RandomVector(rng, n*cols), n, cols)
		a := rows.Codes(pool)
		for _, g := range []int{4, 5} {
			kp := cpu.RoundUp(cols, BlockBytes*g)
			data := a.Paired(pool, g, lo, hi)
			for tile := range (hi - lo) / PairedTokens {
				lanes, quads := PairedTile(data[tile*PairedSize(a.Stride, kp):], a.Stride)
				for i := range PairedTokens {
					codes := a.Q[(lo+tile*PairedTokens+i)*a.Stride:]
					for k := range kp {
						at := (i%WideLanes/QuadTokens*kp+k/(BlockBytes*g)*BlockBytes*g)*QuadTokens + (k%g*QuadTokens+i%QuadTokens)*BlockBytes + k%(BlockBytes*g)/g
						got := quads[min(at, len(quads)-1)]
						if i < WideLanes {
							got = lanes[k*WideLanes+i]
						}
						if got != codes[k] {
							t.Fatalf("%d columns, g %d, tile %d: token %d, column %d = %d, want %d", cols, g, tile, i, k, got, codes[k])
						}
					}
				}
			}
		}
	}
}

func TestQuantisedRowsAgreeBitForBit(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for _, n := range []int{1, 31, 32, 33, 64, 100, 2560} {
		for range 50 {
			x := kerneltest.RandomVector(rng, n)
			q, want := make([]int8, n), make([]int8, n)
			s, sum := quantizeRow(q, x)
			ws, wsum := QuantizeRow(want, x)
			if s != ws || sum != wsum {
				t.Fatalf("%d columns: scale %v, sum %v; want %v, %v", n, s, sum, ws, wsum)
			}
			for i := range q {
				if q[i] != want[i] || q[i] == -128 {
					t.Fatalf("%d columns: code %d = %d, want %d", n, i, q[i], want[i])
				}
			}
		}
	}
}

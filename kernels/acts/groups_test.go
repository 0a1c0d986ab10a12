package acts

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/kerneltest"
)

func TestActivationRecordsAreTheSameFromEveryImplementation(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 7))
		special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.MaxFloat32, -math.MaxFloat32, 0x1p-100, 0x1p-101, 0x1p-149, float32(math.Inf(-1)), float32(math.NaN())}
		for n := range 300 {
			x := kerneltest.RandomVector(r, GroupCols*(1+n%7))
			for i := range x {
				switch n % 5 {
				case 1:
					x[i] *= 1e-38
				case 2:
					x[i] = float32(math.Round(float64(x[i]))) * 0.5 // ties
				case 3:
					x[i] = math.MaxFloat32
				case 4:
					x[i] = float32(math.Copysign(1-0.3*r.Float64()*float64(n%2), float64(x[i]))) // too large a sum
				}
			}
			if n >= 100 {
				x[r.IntN(len(x))] = special[n%len(special)]
			}
			got, limit := make([]byte, len(x)/GroupCols*RecordBytes), Limit(n/5%3)
			quantizeGroups(got, x, limit)
			for g := range len(x) / GroupCols {
				var want [RecordBytes]byte
				QuantizeGroup(&want, x[g*GroupCols:(g+1)*GroupCols], limit)
				if rec := [RecordBytes]byte(got[g*RecordBytes:]); rec != want {
					t.Fatalf("record of %v =\n%v, want\n%v", x[g*GroupCols:(g+1)*GroupCols], rec, want)
				}
				for half := range 2 {
					var sum int
					for _, q := range want[16*half : 16*half+16] {
						sum += max(int(int8(q)), -int(int8(q)))
					}
					if sum > int(limit.most()) {
						t.Fatalf("codes of a half of %v add up to %d, more than %d", x[g*GroupCols:(g+1)*GroupCols], sum, limit.most())
					}
				}
			}
		}
	})
}

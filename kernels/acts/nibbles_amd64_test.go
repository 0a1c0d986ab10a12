//go:build amd64 && !purego

package acts

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/pool"
)

func TestNibbleRecordsAreThePartsOfActivationRecords(t *testing.T) {
	if cpu.Active() == cpu.Generic {
		t.Skip("no AVX2")
	}
	p := pool.New(1)
	defer p.Close()
	var a Rows
	le := binary.LittleEndian
	for _, k := range []int{GroupCols, 384, 2048} { // also fewer after more
		x := kerneltest.RandomVector(rand.New(rand.NewPCG(1, uint64(k))), k)
		x[k-1] = 100 // other codes of its group are small
		a.Set(x, 1, k)
		a.MakeGroups(p, Unlimited)
		a.Groups(Unlimited).MakeNibbles()
		for g := range k / GroupCols {
			rec, n := a.Groups(Unlimited).Records()[g*RecordBytes:], a.Groups(Unlimited).Nibbles()[g*NibbleBytes:]
			var sum int32
			for i := range GroupCols {
				q := int32(int8(rec[i]))
				sum += q
				if low, high := int32(n[i]), int32(n[32+i]); low > 15 || high > 15 || low+16*(high-8) != q {
					t.Fatalf("%d columns: parts %d and %d of %d", k, low, high, q)
				}
			}
			if start := int32(le.Uint32(n[64:])); start != -sum-8192 {
				t.Fatalf("%d columns: sums start at %d where codes add up to %d", k, start, sum)
			}
			d, eight := math.Float32frombits(le.Uint32(rec[32:])), math.Float32frombits(le.Uint32(n[68:]))
			if eight != 8*d {
				t.Fatalf("%d columns: scale %v of %v", k, eight, d)
			}
		}
	}
}

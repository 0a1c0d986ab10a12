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

func TestQuadRecordsHaveTheSumsOfFourColumnsForAllBits(t *testing.T) {
	if cpu.Active() == cpu.Generic {
		t.Skip("no AVX2")
	}
	p := pool.New(1)
	defer p.Close()
	var a Rows
	const n, first = 5, 2
	for _, k := range []int{384, 128} { // fewer after more
		x := kerneltest.RandomVector(rand.New(rand.NewPCG(1, uint64(k))), n*k)
		for i := range 3 * GroupCols { // the largest sums of either sign, and of both
			x[first*k+i] = float32(1 - i/GroupCols%2*2)
		}
		x[first*k+2*GroupCols+5] = -1
		a.Set(x, n, k)
		a.MakeGroups(p, Unlimited)
		a.Groups(Unlimited).MakeQuads(p, first)
		for i := first; i < n; i++ {
			for g := range k / GroupCols {
				rec := a.Groups(Unlimited).Records()[i*a.GroupStride()+g*RecordBytes:][:RecordBytes]
				checkQuads(t, a.Groups(Unlimited).Quads(i)[g*a.Groups(Unlimited).QuadStride():][:QuadBytes], rec)
			}
		}
	}
}

// checkQuads compares a quad record with what its activation record says.
func checkQuads(t *testing.T, quads, rec []byte) {
	t.Helper()
	le := binary.LittleEndian
	var sizes int
	for _, q := range rec[:GroupCols] {
		sizes += max(int(int8(q)), -int(int8(q)))
	}
	if got := math.Float32frombits(le.Uint32(quads[260:])); got != float32(1<<23+sizes) {
		t.Fatalf("sums start at %v where codes' sizes add up to %d", got, sizes)
	}
	d, eight := math.Float32frombits(le.Uint32(rec[32:])), math.Float32frombits(le.Uint32(quads[256:]))
	if eight != 8*d {
		t.Fatalf("scale %v of %v", eight, d)
	}
	for quad := range 8 {
		b, h, table := quad/2, quad%2, quads[32*quad:]
		for n := range 16 {
			var want int
			for i := range 4 {
				q := int(int8(rec[16*h+4*i+b]))
				if q > 0 == (n>>i&1 == 1) {
					want += max(q, -q)
				}
			}
			low, high := int(table[n]), int(table[16+n])
			if low > 31 || high > 15 || low+32*high != want {
				t.Fatalf("quad %d: parts %d and %d of entry %d, want %d", quad, low, high, n, want)
			}
		}
	}
}

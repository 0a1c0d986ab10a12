//go:build amd64 && !purego

package acts

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/pool"
)

func TestWideRecordsHaveTheCodesAndScalesOfActivationRecords(t *testing.T) {
	if cpu.Active() == cpu.Generic {
		t.Skip("no AVX2")
	}
	p := pool.New(1)
	defer p.Close()
	var a Rows
	le := binary.LittleEndian
	const n = 3
	for _, k := range []int{GroupCols, 384, 2048} { // also fewer after more
		a.Set(kerneltest.RandomVector(rand.New(rand.NewPCG(2, uint64(k))), n*k), n, k)
		a.MakeGroups(p, Unlimited)
		a.Groups(Unlimited).MakeWide(p)
		for i := range n {
			for c := range k {
				rec := a.Groups(Unlimited).Records()[i*a.GroupStride()+c/GroupCols*RecordBytes:]
				half := a.Groups(Unlimited).Wide()[i*a.Groups(Unlimited).WideStride()+c/16*WideBytes/2:]
				at := c%16/4*4 + c%2*16 + c%4/2*2
				if q, want := int16(le.Uint16(half[at:])), int16(int8(rec[c%GroupCols])); q != want {
					t.Fatalf("%d columns: code %d of column %d, want %d", k, q, c, want)
				}
				if d, want := le.Uint32(half[32:]), le.Uint32(rec[32:]); d != want {
					t.Fatalf("%d columns: scale %#x of column %d, want %#x", k, d, c, want)
				}
			}
		}
	}
}

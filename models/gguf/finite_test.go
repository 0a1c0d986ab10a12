package gguf

import (
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
)

func TestNumbersAndScalesThatAreNotFiniteAreFound(t *testing.T) {
	sweep.NoEmulator(t)
	const cols, rows = 512, 5
	for typ := range Type(len(types)) {
		if !typ.Supported() {
			continue
		}
		size, err := typ.Size([]int{cols, rows})
		if err != nil {
			t.Fatal(err)
		}
		fresh := func() *Tensor {
			x := &Tensor{Name: "w", Type: typ, Dims: []int{cols, rows}, Data: make([]byte, size)}
			for i := range x.Data {
				x.Data[i] = byte(i*7) & 0x3b // no exponent is full
			}
			if typ == IQ1_M { // whose scale's exponent is in two places
				for i := 53; i < size; i += typ.BlockBytes() {
					x.Data[i] |= 0xc0
				}
			}
			return x
		}
		if row, ok := fresh().Finite(0, rows); !ok {
			t.Errorf("%v: row %d is taken for infinite", typ, row)
		}
		// An infinite number in BF16 and in the upper half of F32; NaN in F16.
		bad := []byte{0x80, 0x7f}
		if typ == MXFP4 {
			bad = []byte{0xff, 0xff}
		}
		values, found := make([]float32, cols*rows), 0
		for at := 0; at+1 < size; at++ {
			x := fresh()
			copy(x.Data[at:], bad)
			if err := x.Dequantize(values, 0); err != nil {
				t.Fatal(err)
			}
			want := slices.IndexFunc(values, func(v float32) bool { return v-v != 0 })
			row, ok := x.Finite(0, rows)
			if ok != (want < 0) || !ok && row != want/cols && typ != I2_S {
				t.Fatalf("%v, bytes %d and %d: Finite() = %d, %t; the first value that is not finite is %d", typ, at, at+1, row, ok, want)
			}
			if !ok {
				found++
			}
		}
		if found == 0 && typ != NVFP4 { // which holds finite numbers alone
			t.Errorf("%v: nothing was found", typ)
		}
	}
}

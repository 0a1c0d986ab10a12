package gguf

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPairsOfARowAreItsValues(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 7))
	for typ, p := range pairsOf {
		tr := typ.traits()
		if p.cols != tr.blockLen || p.size != tr.blockBytes {
			t.Fatalf("%v: pairs of %d columns in %d bytes, blocks of %d in %d", typ, p.cols, p.size, tr.blockLen, tr.blockBytes)
		}
		const rows, blocks = 3, 4
		x := &Tensor{Name: "w", Type: typ, Dims: []int{blocks * p.cols, rows}, Data: make([]byte, rows*blocks*p.size+tr.tail)}
		fill := func(scale uint16) {
			for i := range x.Data {
				x.Data[i] = byte(r.Uint32())
			}
			if p.scale < 0 {
				binary.LittleEndian.PutUint32(x.Data[rows*blocks*p.size:], math.Float32bits(0.375))
			}
			for at := p.scale; p.scale >= 0 && at < len(x.Data); at += p.size {
				binary.LittleEndian.PutUint16(x.Data[at:], scale)
			}
		}
		fill(0xb600) // -0.375
		pairs, want, got := make([]byte, blocks*p.cols/4), make([]float32, blocks*p.cols), make([]float32, blocks*p.cols)
		for row := range rows {
			scale, ok := x.Pairs(pairs, row)
			if !ok || math.Abs(float64(scale)) != 0.375 {
				t.Fatalf("%v: Pairs of row %d = %v, %v", typ, row, scale, ok)
			}
			for i := range got {
				got[i] = float32(int(pairs[i/4]>>(i%4*2)&3)-1) * scale
			}
			if err := x.Dequantize(want, row*len(want)); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%v: row %d is %v, want %v (%v)", typ, row, got, want, err)
			}
		}
		if p.scale < 0 {
			continue
		}
		binary.LittleEndian.PutUint16(x.Data[(2*blocks+1)*p.size+p.scale:], 0x3c00)
		if _, ok := x.Pairs(pairs, 2); ok {
			t.Errorf("%v: a row of two scales has one", typ)
		}
		if _, ok := x.Pairs(pairs, 1); !ok {
			t.Errorf("%v: another row's scale counts", typ)
		}
		for name, scale := range map[string]uint16{"0": 0, "infinity": 0x7c00, "NaN": 0x7e00} {
			fill(scale)
			if _, ok := x.Pairs(pairs, 0); ok {
				t.Errorf("%v: a scale of %s is one", typ, name)
			}
		}
	}
	if _, ok := (&Tensor{Name: "w", Type: Q8_0, Dims: []int{32, 1}, Data: make([]byte, 34)}).Pairs(make([]byte, 8), 0); ok {
		t.Error("Q8_0 has codes of two bits")
	}
}

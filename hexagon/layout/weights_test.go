package layout

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestCodesLieWhereTheDeviceLooksThemUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, bits := range []int{1, 2, 4} {
		w, err := New(256, 512, Format{Bits: bits, A: 1})
		if err != nil {
			t.Fatal(err)
		}
		codes := make([][]uint8, w.Rows)
		for m := range codes {
			codes[m] = make([]uint8, w.Cols)
			for k := range codes[m] {
				codes[m][k] = uint8(r.IntN(1 << bits))
			}
			if err := w.SetRow(m, codes[m], []float32{1}, nil); err != nil {
				t.Fatal(err)
			}
		}
		var want []byte // by the definition of BlockBytes
		for strip := 0; strip < w.M; strip += Strip {
			for k := 0; k < w.K; k += Block {
				for plane := bits - 1; plane >= 0; plane-- {
					for half := range 2 {
						for pair := range 4 {
							for b := range LineBytes {
								row := codes[strip+RowOfByte(b)][k+32*half:]
								var v byte
								for i := range 4 {
									v |= row[QuadColumn(2*pair, i)] >> plane & 1 << i
									v |= row[QuadColumn(2*pair+1, i)] >> plane & 1 << (i + 4)
								}
								want = append(want, v)
							}
						}
					}
				}
			}
		}
		if !slices.Equal(w.Codes, want) {
			t.Errorf("%d bits: the packed codes differ", bits)
		}
		got := make([]uint8, w.Cols)
		for m := range codes {
			if w.RowCodes(got, m); !slices.Equal(got, codes[m]) {
				t.Fatalf("%d bits: row %d unpacks to other codes", bits, m)
			}
		}
	}
}

func TestPackedRowsDequantizeToTheirWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	formats := []Format{Ternary, Binary, Q4_0, IQ4_NL, NF4, FP4,
		{Bits: 2, A: 2, B: 3, Group: 64}, {Bits: 4, A: 1, Group: 128, Offsets: true}, {Bits: 2, A: 1, Group: 32, Offsets: true},
		{Bits: 1, A: 1, Group: 64, Offsets: true}, {Bits: 4, A: 2, B: 15}}
	for _, f := range formats {
		w, err := New(130, 300, f)
		if err != nil {
			t.Fatal(err)
		}
		if w.M != 256 || w.K != 512 {
			t.Fatalf("%d×%d is padded to %d×%d", w.Rows, w.Cols, w.M, w.K)
		}
		groups := (w.Cols + w.Group - 1) / w.Group
		codes, scales, offsets := make([]uint8, w.Cols), make([]float32, groups), make([]float32, groups)
		if !f.Offsets {
			offsets = nil
		}
		got := make([]float32, w.Cols)
		for m := range w.Rows {
			for k := range codes {
				codes[k] = uint8(r.IntN(1 << f.Bits))
			}
			for g := range groups {
				scales[g] = float32(r.NormFloat64()) * 0x1p-8
				if f.Offsets {
					offsets[g] = float32(r.NormFloat64()) * 0x1p-6
				}
			}
			if err := w.SetRow(m, codes, scales, offsets); err != nil {
				t.Fatal(err)
			}
			w.Dequantize(got, m)
			for k, q := range codes {
				want := float64(scales[k/w.Group]) * float64(w.value(int(q)))
				// A unit of S times the largest value, and a unit of O.
				tolerance := float64(w.R[m]) * (0x1p-15*127 + 0x1p-12)
				if f.Group == 0 {
					tolerance = 1e-8
				}
				if f.Offsets {
					want += float64(offsets[k/w.Group])
				}
				if math.Abs(float64(got[k])-want) > tolerance {
					t.Fatalf("%+v: weight (%d, %d) is %v, want %v", f, m, k, got[k], want)
				}
			}
		}
	}
}

func TestRowsThatDoNotFitAreRefused(t *testing.T) {
	for _, f := range []Format{{Bits: 3, A: 1}, {Bits: 2, A: 1, Group: 48}, {Bits: 2, A: 3}, {Bits: 2, A: 1, B: 256},
		{Bits: 2, A: 1, Offsets: true}, {Bits: 2, Values: make([]float32, 3)}} {
		if _, err := New(1, 1, f); err == nil {
			t.Errorf("%+v is taken", f)
		}
	}
	if _, err := New(1, MaxDim+1, Ternary); err == nil {
		t.Error("too many columns are taken")
	}
	w, err := New(2, 3, Format{Bits: 2, A: 1, Group: 32, Offsets: true})
	if err != nil {
		t.Fatal(err)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for name, row := range map[string]struct {
		m               int
		codes           []uint8
		scales, offsets []float32
	}{
		"row":          {2, []uint8{0, 0, 0}, []float32{1}, []float32{1}},
		"code":         {0, []uint8{0, 4, 0}, []float32{1}, []float32{1}},
		"codes":        {0, []uint8{0, 0}, []float32{1}, []float32{1}},
		"scales":       {0, []uint8{0, 0, 0}, []float32{1, 1}, []float32{1}},
		"no offset":    {0, []uint8{0, 0, 0}, []float32{1}, nil},
		"infinity":     {0, []uint8{0, 0, 0}, []float32{inf}, []float32{1}},
		"large offset": {0, []uint8{0, 0, 0}, []float32{1}, []float32{-inf}},
		"NaN":          {0, []uint8{0, 0, 0}, []float32{1}, []float32{nan}},
	} {
		if w.SetRow(row.m, row.codes, row.scales, row.offsets) == nil {
			t.Errorf("a row with a wrong %s is taken", name)
		}
	}
	if err := w.SetRow(0, []uint8{0, 1, 2}, []float32{0}, []float32{0}); err != nil {
		t.Errorf("a row of zeros: %v", err)
	}
}

func TestHalvesRoundAndSaturate(t *testing.T) {
	for f, want := range map[float32]uint16{0: 0, 1: 0x3c00, -2: 0xc000, 65504: 0x7bff, 65520: 0x7bff, 1e9: 0x7bff, -1e9: 0xfbff,
		0x1p-25: 0, 0x1.8p-25: 1, 1 + 0x1p-11: 0x3c00, 1 + 0x3p-11: 0x3c02} {
		if got := F16(f); got != want {
			t.Errorf("F16(%v) = %#x, want %#x", f, got, want)
		}
	}
	if F16(float32(math.Copysign(0, -1))) != 0x8000 || F16(float32(math.Inf(-1))) != 0xfbff || F16(float32(math.NaN())) != 0 {
		t.Error("a zero, an infinity or NaN rounds wrongly")
	}
	src := []float32{1e9, -1e9, 1, float32(math.Inf(1)), float32(math.NaN())}
	dst := make([]uint16, len(src))
	FromF32(dst, src)
	if !slices.Equal(dst, []uint16{0x7bff, 0xfbff, 0x3c00, 0x7bff, 0}) {
		t.Errorf("FromF32 = %#x", dst)
	}
	last := int16(math.MinInt16)
	for i := range 2 * 0x7c00 {
		h := uint16(i - 0x7c00) // after those with a sign, of which -0 is the last
		if i < 0x7c00 {
			h = 0x8000 | uint16(0x7bff-i)
		}
		if Order(h) <= last {
			t.Fatalf("%#x stands before its predecessor", h)
		}
		last = Order(h)
	}
}

func TestSuperGroupsKeepTheirCodesAndScales(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	g := NewSuperGroups(40, 70, Q4Values[:])
	want := make(map[[2]int]float32)
	for row := range g.M / Tile {
		for col := range g.K / Tile {
			var scales [32]uint16
			var codes [1024]uint8
			for i := range scales {
				scales[i] = F16(float32(r.NormFloat64()))
			}
			for i := range codes {
				codes[i] = uint8(r.IntN(16))
			}
			g.SetTile(row, col, &scales, &codes)
			for y := range Tile {
				for x := range Tile {
					i := TileIndex(y, x)
					want[[2]int{row*Tile + y, col*Tile + x}] = F32(F16(float32(int(codes[i])-8) * F32(scales[i/32])))
				}
			}
		}
	}
	got := make([]float32, g.Cols)
	for m := range g.Rows {
		g.Dequantize(got, m)
		for k, f := range got {
			if f != want[[2]int{m, k}] {
				t.Fatalf("weight (%d, %d) is %v, want %v", m, k, f, want[[2]int{m, k}])
			}
		}
	}
}

package tiles

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// random is tiles of fp16, subnormal and large ones among them.
func random(r *rand.Rand, tiles int) []uint16 {
	h := make([]uint16, tiles*Size)
	for i := range h {
		for h[i] = uint16(r.Uint32()); h[i]&0x7c00 == 0x7c00; {
			h[i] = uint16(r.Uint32())
		}
	}
	return h
}

// onEach runs a test with each instruction set that the machine has.
func onEach(t *testing.T, test func(t *testing.T)) {
	for _, isa := range cpu.Supported() {
		t.Run(isa.String(), func(t *testing.T) {
			defer cpu.Override(isa)()
			test(t)
		})
	}
}

func TestEveryInstructionSetMultipliesToTheSameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for tiles := 1; tiles <= 5; tiles++ {
		act, wgt := random(r, tiles), random(r, tiles)
		var want Sums
		for i := range want {
			want[i] = float32(r.NormFloat64())
		}
		before := want
		for y := range Side {
			for x := range Side {
				for k := range tiles * Side {
					at := k / Side * Size
					k := k % Side
					want[y*Side+x] += vector.FromF16(act[at+y/2*64+2*k+y%2]) * vector.FromF16(wgt[at+k/2*64+2*x+k%2])
				}
			}
		}
		onEach(t, func(t *testing.T) {
			a, w, got := make([]float32, len(act)), make([]float32, len(wgt)), before
			Widen(a, act)
			WidenRows(w, wgt)
			got.Multiply(a, w, Side)
			half := before
			half.Multiply(a, w, Side/2)
			for i, f := range half {
				computed := got[i]
				if i%Side >= Side/2 {
					computed = before[i]
				}
				if math.Float32bits(f) != math.Float32bits(computed) {
					t.Fatalf("%d tiles, half the columns: sum %d is %v, want %v", tiles, i, f, computed)
				}
			}
			for i := range want {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("%d tiles: sum %d is %v, want %v", tiles, i, got[i], want[i])
				}
			}
		})
	}
}

func TestATileIsHalfEmptyWhereItsUpperColumnsAreZero(t *testing.T) {
	for i := range Size {
		var tile [Size]uint16
		tile[i] = 0x8000
		if !HalfEmpty(&tile) {
			t.Errorf("number %d, a zero, fills the half", i)
		}
		tile[i] = 1
		if column := i % (2 * Side) / 2; HalfEmpty(&tile) != (column < Side/2) {
			t.Errorf("number %d, in column %d, is taken for one of the other half", i, column)
		}
	}
}

func TestEveryInstructionSetUnpacksToTheSameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 3))
	for _, bits := range []int{1, 2, 4} {
		lines := make([]byte, (bits-1)*planeBytes+3*lineBytes+Side)
		for i := range lines {
			lines[i] = byte(r.Uint32())
		}
		var values [Side][Codes]uint16
		for row := range values {
			for q := range values[row] {
				values[row][q] = uint16(r.Uint32())
			}
		}
		var want [Size]uint16
		for row := range Side {
			for column := range Side {
				code := 0
				for plane := range bits {
					b := lines[(bits-1-plane)*planeBytes+column%16/4*lineBytes+row&^3+row&1*2+row>>1&1]
					code |= int(b>>(column%4*2+column/16)&1) << plane
				}
				want[row>>1<<6|column<<1|row&1] = values[row][code]
			}
		}
		onEach(t, func(t *testing.T) {
			var got [Size]uint16
			Unpack(&got, lines, &values, bits)
			if got != want {
				t.Errorf("%d bits: the tile differs", bits)
			}
		})
	}
}

func TestEveryInstructionSetScalesToTheSameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 3))
	var s Sums
	for i := range s {
		s[i] = float32(r.NormFloat64() * math.Exp2(float64(r.IntN(50)-30)))
	}
	var v [Codes]float32
	scales, offsets := make([]float32, 100), make([]float32, 100)
	for i := range v {
		v[i] = vector.FromF16(uint16(r.IntN(0x7c00)))
	}
	for i := range scales {
		scales[i], offsets[i] = vector.FromF16(uint16(r.IntN(0x4000)|r.IntN(2)<<15)), vector.FromF16(uint16(r.IntN(0x7c00)|r.IntN(2)<<15))
	}
	groups := make([]byte, 3*superGroupBytes)
	for i := range groups {
		groups[i] = byte(r.Uint32()) &^ 0x40 // scales are no infinities
	}
	results := func() (tile [Size]uint16, plain, moved [100][Codes]uint16, super [3 * superGroup]uint16) {
		SuperGroups(super[:], groups, &v)
		s.Narrow(&tile, -1.7)
		ScaleValues(plain[:], &v, scales, nil)
		ScaleValues(moved[:], &v, scales, offsets)
		return
	}
	restore := cpu.Override(cpu.Generic)
	tile, plain, moved, super := results()
	restore()
	if tile[3] != narrow(s[Side+1]*-1.7) || plain[7][3] != narrow(v[3]*scales[7]) || moved[7][3] != narrow(vector.FromF16(plain[7][3])+offsets[7]) {
		t.Error("portable Go differs from the definition")
	}
	onEach(t, func(t *testing.T) {
		a, b, c, d := results()
		if a != tile || b != plain || c != moved || d != super {
			t.Errorf("sums %v, values %v, with offsets %v, super-groups %v", a == tile, b == plain, c == moved, d == super)
		}
	})
}

func TestEveryInstructionSetLooksUpTheSameSums(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 3))
	for _, bits := range []int{1, 2, 4} {
		for _, extreme := range []bool{false, true} {
			lines, tables := make([]byte, (bits-1)*planeBytes+4*lineBytes), make([]int16, 3*64+32)
			for i := range lines {
				lines[i] = byte(r.Uint32())
			}
			for i := range tables {
				tables[i] = int16(r.Uint32())
				if extreme {
					tables[i] = []int16{math.MinInt16, math.MaxInt16, -1, 255}[r.IntN(4)]
				}
			}
			var want, start [Rows]int32
			for i := range start {
				start[i] = int32(r.Uint32())
			}
			want = start
			for row := range Rows {
				for plane := range bits {
					for pair := range 4 {
						b := lines[(bits-1-plane)*planeBytes+pair*lineBytes+row]
						sum := int32(tables[64*pair+int(b&15)*2]) + int32(tables[64*pair+int(b>>4)*2+1])
						want[row/2+row%2*64] += sum << plane
					}
				}
			}
			var scales [Rows]int16
			for i := range scales {
				scales[i] = int16(r.Uint32())
			}
			a, b := int32(r.Uint32()), int32(r.Uint32())
			scaled := start
			for i := range scaled {
				scaled[i] += int32((int64(a*want[i]-b)*int64(scales[i]) + 1<<14) >> 15)
			}
			onEach(t, func(t *testing.T) {
				got, y := start, start
				LookUp(&got, lines, tables, bits)
				AddScaled(&y, &want, &scales, a, b)
				if got != want || y != scaled {
					t.Errorf("%d bits: sums %v, scaled %v", bits, got == want, y == scaled)
				}
			})
		}
	}
}

func BenchmarkMultiply(b *testing.B) {
	const tiles = 16
	r := rand.New(rand.NewPCG(2, 3))
	for _, isa := range cpu.Supported() {
		b.Run(isa.String(), func(b *testing.B) {
			defer cpu.Override(isa)()
			a, w := make([]float32, tiles*Size), make([]float32, tiles*Size)
			Widen(a, random(r, tiles))
			WidenRows(w, random(r, tiles))
			var s Sums
			for b.Loop() {
				s.Multiply(a, w, Side)
			}
			b.ReportMetric(float64(tiles*Side*Size)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
		})
	}
}

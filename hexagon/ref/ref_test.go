package ref

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/kernels/vector"
)

func TestLookupsAndBytesSumToTheProductsOfCodes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range []layout.Format{layout.Ternary, layout.Binary, layout.Q4_0, layout.IQ4_NL, layout.MXFP4, layout.Q8_0,
		{Bits: 8, A: 1, B: layout.ByteZero, Group: 64, Offsets: true}, {Bits: 2, A: 1, Group: 64, Offsets: true}, {Bits: 4, A: 2, B: 15, Group: 128, Offsets: true}} {
		w, err := layout.New(256, 512, f)
		if err != nil {
			t.Fatal(err)
		}
		x := make([]int16, w.K)
		for k := range x {
			x[k] = int16(r.IntN(2*8191+1) - 8191)
		}
		tables, sums := make([]int16, 4*w.K), make([]int32, w.K/32)
		if w.InBytes() {
			tables = tables[:w.K]
			PrecomputeBytes(tables, sums, x)
		} else {
			Precompute(tables, sums, x)
		}
		codes, scales := make([]uint8, w.K), make([]float32, w.K/w.Group)
		var offsets []float32
		if f.Offsets {
			offsets = make([]float32, len(scales))
		}
		want := make([]float64, w.M)
		for m := range w.M {
			for k := range codes {
				codes[k] = uint8(r.IntN(1 << f.Bits))
			}
			for g := range scales {
				scales[g] = r.Float32() - 0.5
				if f.Offsets {
					offsets[g] = r.Float32() - 0.5
				}
			}
			if err := w.SetRow(m, codes, scales, offsets); err != nil {
				t.Fatal(err)
			}
			row := make([]float32, w.K)
			w.Dequantize(row, m)
			for k := range x {
				want[m] += float64(row[k]) * float64(x[k])
			}
		}
		y := make([]int32, w.M)
		GEMV(y, matrixOf(w), tables, sums, int32(w.A), int32(w.B))
		for m := range y {
			got := float64(y[m]) * float64(w.R[m])
			// Half a unit a rounding, two a group; Dequantize rounds to float32.
			if tolerance := math.Abs(float64(w.R[m]))*float64(len(scales)) + 1e-2; math.Abs(got-want[m]) > tolerance {
				t.Fatalf("%+v: row %d is %v, want %v", f, m, got, want[m])
			}
		}
	}
}

func matrixOf(w *layout.Weights) *Matrix {
	m := &Matrix{Codes: w.Codes, Scales: w.Scales, Offsets: w.Offsets, K: w.K, Bits: w.Bits, Group: w.Group, InBytes: w.InBytes()}
	if w.Values != nil {
		m.Values = w.ByteValues()
	}
	return m
}

func TestDequantizedTilesHoldTheWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, f := range []layout.Format{layout.Ternary, layout.Binary, layout.Q4_0, layout.IQ4_NL, layout.NF4, layout.MXFP4, layout.Q8_0,
		{Bits: 8, A: 1, B: layout.ByteZero, Group: 128, Offsets: true}, {Bits: 2, A: 1, Group: 64, Offsets: true}, {Bits: 4, A: 2, B: 15, Group: 128, Offsets: true}} {
		w, err := layout.New(256, 512, f)
		if err != nil {
			t.Fatal(err)
		}
		codes, scales := make([]uint8, w.K), make([]float32, w.K/w.Group)
		var offsets []float32
		if f.Offsets {
			offsets = make([]float32, len(scales))
		}
		for m := range w.M {
			for k := range codes {
				codes[k] = uint8(r.IntN(1 << f.Bits))
			}
			for g := range scales {
				scales[g] = r.Float32() + 0.5
				if f.Offsets {
					offsets[g] = r.Float32() - 0.5
				}
			}
			if err := w.SetRow(m, codes, scales, offsets); err != nil {
				t.Fatal(err)
			}
		}
		const strip, first, n = 1, 2, 3
		tiles := make([]uint16, 4*2*n*tile)
		Dequant(tiles, matrixOf(w), w.Table(), strip, first, n)
		row := make([]float32, w.K)
		for m := range layout.Strip {
			w.Dequantize(row, strip*layout.Strip+m)
			for c := range n * layout.Block {
				got := layout.F32(tiles[(m/32*2*n+c/32)*tile+layout.TileIndex(m%32, c%32)])
				want := row[first*layout.Block+c] / w.R[strip*layout.Strip+m]
				if math.Abs(float64(got-want)) > 0x1p-9*math.Max(1, math.Abs(float64(want))) {
					t.Fatalf("%+v: weight (%d, %d) is %v, want %v", f, m, c, got, want)
				}
			}
		}
	}
}

func TestHalvesAddAndMultiplyAsIfExactly(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	exact := func(f *big.Float) uint16 { // to nearest even of fp16's digits
		g, _ := f.Float64()
		if g == 0 {
			return 0
		}
		prec := 11
		if e := f.MantExp(nil); e < -13 {
			prec = 11 - (-13 - e)
		}
		if prec < 1 {
			return layout.F16(float32(g)) // below half of the least, or at it
		}
		g, _ = new(big.Float).SetMode(big.ToNearestEven).SetPrec(uint(prec)).Set(f).Float64()
		return layout.F16(float32(g))
	}
	for range 500000 {
		a, b := uint16(r.Uint32()), uint16(r.Uint32())
		if a&0x7c00 == 0x7c00 || b&0x7c00 == 0x7c00 {
			continue
		}
		x, y := big.NewFloat(float64(layout.F32(a))).SetPrec(100), big.NewFloat(float64(layout.F32(b))).SetPrec(100)
		if got, want := Add(a, b), exact(new(big.Float).SetPrec(100).Add(x, y)); got != want && got&0x7fff|want&0x7fff != 0 {
			t.Fatalf("%#x + %#x = %#x, want %#x", a, b, got, want)
		}
		if got, want := Mul(a, b), exact(new(big.Float).SetPrec(100).Mul(x, y)); got != want && got&0x7fff|want&0x7fff != 0 {
			t.Fatalf("%#x · %#x = %#x, want %#x", a, b, got, want)
		}
	}
}

func TestNoPowerInTheTableIsNearATie(t *testing.T) {
	table := make([]uint16, 1<<15)
	ExpTable(table)
	if table[0] != 0x3c00 || table[0x3c00] != 0x3800 || table[0x7bff] != 0 || table[0x7c00] != 0 || table[0x4e00] != 1 || table[0x4e40] != 0 {
		t.Fatalf("2⁰, 2⁻¹, 2⁻⁶⁵⁵⁰⁴, none, 2⁻²⁴, 2⁻²⁵ = %#x %#x %#x %#x %#x %#x",
			table[0], table[0x3c00], table[0x7bff], table[0x7c00], table[0x4e00], table[0x4e40])
	}
	for b := range uint16(0x7c00) {
		x := float64(layout.F32(b))
		if x == math.Trunc(x) || x > 26 {
			continue
		}
		d, got := math.Exp2(-x), table[b]
		// Exponentials of other machines may differ in the last place of float64.
		for _, e := range []float64{d * (1 - 1e-14), d * (1 + 1e-14)} {
			if fromF64(e) != got {
				t.Fatalf("2^-%v is too near to a tie", x)
			}
		}
		below, above := float64(layout.F32(max(got, 1)-1)), float64(layout.F32(got+1))
		if f := float64(layout.F32(got)); d < (below+f)/2 || d > (f+above)/2 {
			t.Fatalf("2^-%v = %v, not %v", x, d, f)
		}
	}
}

func TestSoftmaxInStepsIsSoftmax(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	table := make([]uint16, 1<<15)
	ExpTable(table)
	const rows, keys, steps = 2, 2, 3
	states, diag := make([]uint32, rows*32*StateWords), make([]uint16, rows*tile)
	scores := make([][]float64, rows*32)
	total, kept := make([]float64, rows*32), make([][]float64, rows*32)
	for row := range scores {
		states[row*StateWords] = 0xfbff
	}
	for range steps {
		s := make([]uint16, rows*keys*tile)
		at := func(row, c int) int { return (row/32*keys+c/32)*tile + layout.TileIndex(row%32, c%32) }
		for i := range s {
			s[i] = layout.F16(float32(r.NormFloat64() * 4))
		}
		for row := range scores {
			states[row*StateWords+StateValid] = uint32(r.IntN(keys*32 + 8))
			for c := range min(int(states[row*StateWords+StateValid]), keys*32) {
				scores[row] = append(scores[row], float64(layout.F32(s[at(row, c)])))
			}
		}
		Softmax(s, table, states, diag, rows, keys)
		for row := range scores {
			state := states[row*StateWords:][:StateWords]
			e := float64(layout.F32(uint16(state[StateFactor])))
			if diag[row/32*tile+layout.TileIndex(row%32, row%32)] != uint16(state[StateFactor]) {
				t.Fatalf("row %d: the diagonal differs from the factor", row)
			}
			total[row] = total[row]*e + float64(uint64(state[StateSumHigh])<<32|uint64(state[StateSumLow]))*0x1p-24
			for i := range kept[row] {
				kept[row][i] *= e
			}
			for c := range keys * 32 {
				p := float64(layout.F32(s[at(row, c)]))
				if c < int(state[StateValid]) {
					kept[row] = append(kept[row], p)
				} else if p != 0 {
					t.Fatalf("row %d: a key beyond the valid ones has weight %v", row, p)
				}
			}
		}
	}
	for row := range scores {
		var sum float64
		for _, s := range scores[row] {
			sum += math.Exp2(s)
		}
		for i, s := range scores[row] {
			if got, want := kept[row][i]/total[row], math.Exp2(s)/sum; math.Abs(got-want) > 2e-3 {
				t.Fatalf("row %d, key %d: %v, want %v", row, i, got, want)
			}
		}
	}
}

func TestTilesMultiplyAsMatrices(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	const rows, cols, k0, k1 = 2, 3, 2, 1
	random := func(n int) []uint16 {
		s := make([]uint16, n*tile)
		for i := range s {
			s[i] = layout.F16(float32(r.NormFloat64()))
		}
		return s
	}
	runs := []Run{{Act: random(rows * k0), Wgt: random(cols * k0), K: k0}, {Act: random(rows * k1), Wgt: random(cols * k1), K: k1}}
	out := make([]uint16, rows*cols*tile)
	TileMul(out, runs, rows, cols, 0.125)
	for y := range rows * 32 {
		for x := range cols * 32 {
			var want float64
			for _, run := range runs {
				for k := range run.K * 32 {
					want += float64(layout.F32(run.Act[(y/32*run.K+k/32)*tile+layout.TileIndex(y%32, k%32)])) *
						float64(layout.F32(run.Wgt[(x/32*run.K+k/32)*tile+layout.TileIndex(k%32, x%32)]))
				}
			}
			if got := float64(layout.F32(out[(y/32*cols+x/32)*tile+layout.TileIndex(y%32, x%32)])); math.Abs(got-want/8) > 4e-3 {
				t.Fatalf("(%d, %d) is %v, want %v", y, x, got, want/8)
			}
		}
	}
}

func TestGatesAreTheirFunctions(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	const n, width = 64, 32
	x, y, w := make([]float32, n*width), make([]float32, n*width), make([]float32, 3*width)
	for i := range x {
		x[i] = float32(r.NormFloat64() * 8)
	}
	for k := range width {
		w[k], w[width+k], w[2*width+k] = 1, float32(r.NormFloat64()), -4*r.Float32()
		if k%2 == 0 {
			w[k], w[width+k], w[2*width+k] = -1, 0, -1
		}
	}
	Gates(Rows{y, width}, Rows{x, width}, w, n, width)
	for i, v := range x {
		k := i % width
		want := 1 / (1 + math.Exp(-float64(v)))
		if k%2 == 1 {
			want = math.Exp(float64(w[2*width+k]) * math.Log1p(math.Exp(float64(v)+float64(w[width+k]))))
		}
		if got := float64(y[i]); math.Abs(got-want) > 1e-5*want {
			t.Fatalf("gate of %v by %v, %v, %v is %v, want %v", v, w[k], w[width+k], w[2*width+k], got, want)
		}
	}
}

func TestExactGELUIsTheCPUs(t *testing.T) {
	const n = 4096
	gate, up, want := make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range gate {
		gate[i], up[i] = float32(i-n/2)/128, 1
	}
	vector.ErfGLU(want, gate, up)
	for _, unit := range []int{GLUErfGELU, GLUErfAlone} {
		got := make([]float32, n)
		GLU(Rows{got, n}, Rows{gate, n}, Rows{up, n}, 1, n, unit, Clamp{})
		for i, x := range gate {
			if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= 3e-7*math.Abs(float64(x))) {
				t.Errorf("unit %d of %v is %v, want %v", unit, x, got[i], want[i])
			}
		}
	}
}

package recurrent

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels/delta"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// reference is one recurrent layer over the tokens of one sequence, in float64, by
// its definition: rows of q, k and v, and the products for the gates, give outputs.
func reference(s Shape, w *Weights, rows, gates [][]float64, eps float64) (out [][]float64) {
	width, kh, vh := s.Width, s.KeyHeads, s.ValueHeads
	state := make([][][]float64, vh) // [value head][key][value]
	for h := range state {
		state[h] = make([][]float64, width)
		for i := range state[h] {
			state[h][i] = make([]float64, width)
		}
	}
	for t := range rows {
		x := make([]float64, s.Channels())
		for c := range x {
			for tap := range s.Taps {
				if from := t - s.Taps + 1 + tap; from >= 0 {
					x[c] += float64(w.Conv[tap*len(x)+c]) * rows[from][c]
				}
			}
			x[c] /= 1 + math.Exp(-x[c])
		}
		unit := func(v []float64) []float64 {
			sum := 0.0
			for _, a := range v {
				sum += a * a
			}
			n := slices.Clone(v)
			for i := range n {
				n[i] /= max(math.Sqrt(sum), eps)
			}
			return n
		}
		row := make([]float64, 0, s.Values())
		for h := range vh {
			q, k := unit(x[h%kh*width:][:width]), unit(x[(kh+h%kh)*width:][:width])
			v := x[(2*kh+h)*width:][:width]
			beta := 1 / (1 + math.Exp(-gates[t][h]))
			decay := math.Exp(float64(w.A[h]) * math.Log1p(math.Exp(gates[t][vh+h]+float64(w.DT[h]))))
			for j := range width {
				told := 0.0
				for i := range width {
					state[h][i][j] *= decay
					told += k[i] * state[h][i][j]
				}
				o := 0.0
				for i := range width {
					state[h][i][j] += k[i] * beta * (v[j] - told)
					o += q[i] / math.Sqrt(float64(width)) * state[h][i][j]
				}
				row = append(row, o)
			}
		}
		out = append(out, row)
	}
	return out
}

func TestALayerAgreesWithItsDefinition(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		p := pool.New(2)
		defer p.Close()
		s := Shape{KeyHeads: 3, ValueHeads: 6, Width: 2 * delta.Tile, Taps: 4}
		const n, layers, stride = 45, 2, 500
		r := rand.New(rand.NewPCG(8, 9))
		w := Weights{Conv: kerneltest.RandomVector(r, s.Taps*s.Channels()), A: make([]float32, s.ValueHeads), DT: kerneltest.RandomVector(r, s.ValueHeads)}
		for h := range w.A {
			w.A[h] = -r.Float32()
		}
		// Two sequences side by side, the second one in three pieces.
		first, second := kerneltest.RandomVector(r, n*stride), kerneltest.RandomVector(r, n*stride)
		gates, others := kerneltest.RandomVector(r, 2*n*s.ValueHeads), kerneltest.RandomVector(r, 2*n*s.ValueHeads)
		wide := func(x []float32, width int) (rows [][]float64) {
			for i := range n {
				var row []float64
				for _, v := range x[i*len(x)/n:][:width] {
					row = append(row, float64(v))
				}
				rows = append(rows, row)
			}
			return rows
		}
		want := [][][]float64{
			reference(s, &w, wide(first, s.Channels()), wide(gates, 2*s.ValueHeads), 1e-6),
			reference(s, &w, wide(second, s.Channels()), wide(others, 2*s.ValueHeads), 1e-6),
		}
		states := [2][]float32{make([]float32, layers*s.Size()), make([]float32, layers*s.Size())}
		pass, done := New(pool.Workers{Pool: p}, s, 1e-6), 0
		for _, cut := range []struct{ first, second int }{{n, 5}, {0, 1}, {0, n - 6}} {
			a, b := cut.first, cut.second
			rows := slices.Concat(first[:a*stride], second[done*stride:(done+b)*stride])
			g := slices.Concat(gates[:2*a*s.ValueHeads], others[2*done*s.ValueHeads:2*(done+b)*s.ValueHeads])
			var spans []Span
			if a > 0 {
				spans = append(spans, Span{First: 0, N: a, State: states[0]})
			}
			spans = append(spans, Span{First: a, N: b, Position: done, State: states[1]})
			pass.Run(rows, stride, g, spans, 1, &w)
			check := func(what string, at int, want [][]float64) {
				for i, row := range want {
					for c, x := range row {
						if got := rows[(at+i)*stride+2*s.KeyHeads*s.Width+c]; !kerneltest.Near(got, x, 3e-5) {
							t.Fatalf("%s sequence, row %d, output %d: %v, want %v", what, i, c, got, x)
						}
					}
				}
			}
			if a > 0 {
				check("first", 0, want[0])
			}
			check("second", a, want[1][done:done+b])
			done += b
		}
		for i, x := range states[0][:s.Size()] {
			if x != 0 {
				t.Fatalf("the state of the other layer holds %v at %d", x, i)
			}
		}
	})
}

// space is one state space over the tokens of one sequence, in float64, by its definition:
// rows of x, B, C and dt give outputs.
func space(s Shape, w *Weights, rows [][]float64) (out [][]float64) {
	m, channels := s.StateSpace, s.Channels()
	state := make([][]float64, m.Inner())
	for i := range state {
		state[i] = make([]float64, m.Len)
	}
	for t := range rows {
		x := make([]float64, channels)
		for c := range x {
			x[c] = float64(w.ConvBias[c])
			for tap := range s.Taps {
				if from := t - s.Taps + 1 + tap; from >= 0 {
					x[c] += float64(w.Conv[tap*channels+c]) * rows[from][c]
				}
			}
			x[c] /= 1 + math.Exp(-x[c])
		}
		row := make([]float64, m.Inner())
		for i := range row {
			head := i / m.HeadDim
			b := x[m.Inner()+head*m.Groups/m.Heads*m.Len:][:m.Len]
			c := x[m.Inner()+(m.Groups+head*m.Groups/m.Heads)*m.Len:][:m.Len]
			dt := math.Log1p(math.Exp(rows[t][channels+head] + float64(w.DT[head])))
			for k := range b {
				state[i][k] = math.Exp(dt*float64(w.A[head]))*state[i][k] + dt*x[i]*b[k]
				row[i] += state[i][k] * c[k]
			}
			row[i] += float64(w.D[head]) * x[i]
		}
		out = append(out, row)
	}
	return out
}

func TestAStateSpaceAgreesWithItsDefinitionAndGoesOnFromACopy(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		p := pool.New(2)
		defer p.Close()
		s := Shape{StateSpace: StateSpace{Heads: 6, HeadDim: 10, Groups: 2, Len: 9}, Taps: 4}
		const n, at, stride = 21, 13, 150
		r := rand.New(rand.NewPCG(5, 6))
		w := Weights{
			Conv: kerneltest.RandomVector(r, s.Taps*s.Channels()), ConvBias: kerneltest.RandomVector(r, s.Channels()),
			A: []float32{-0.1, -0.5, -1, -2, 0, -0.3}, DT: kerneltest.RandomVector(r, 6), D: kerneltest.RandomVector(r, 6),
		}
		rows := kerneltest.RandomVector(r, n*stride)
		var wide [][]float64
		for i := range n {
			var row []float64
			for _, v := range rows[i*stride:][:s.Channels()+s.Heads] {
				row = append(row, float64(v))
			}
			wide = append(wide, row)
		}
		want, rest := space(s, &w, wide), slices.Clone(rows[at*stride:])
		state, copied := make([]float32, 2*s.Size()), make([]float32, 2*s.Size())
		pass := New(pool.Workers{Pool: p}, s, 1e-6)
		pass.Run(rows, stride, nil, []Span{{N: n, State: state, Copies: []Copy{{at, copied}}}}, 1, &w)
		for i, row := range want {
			for c, x := range row {
				if got := rows[i*stride+c]; !kerneltest.Near(got, x, 3e-5) {
					t.Fatalf("row %d, output %d: %v, want %v", i, c, got, x)
				}
			}
		}
		pass.Run(rest[:3*stride], stride, nil, []Span{{N: 3, Position: at, State: copied}}, 1, &w)
		pass.Run(rest[3*stride:], stride, nil, []Span{{N: n - at - 3, Position: at + 3, State: copied}}, 1, &w)
		if !kerneltest.SameBits(rest, rows[at*stride:]) || !kerneltest.SameBits(state, copied) {
			t.Error("rows after the copy have other bits")
		}
	})
}

func TestAStateCopiedInTheMidstOfASpanGoesOnWithTheSameBits(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		p := pool.New(2)
		defer p.Close()
		s := Shape{KeyHeads: 1, ValueHeads: 2, Width: delta.Tile, Taps: 3}
		const n, at, stride = 3*delta.Chunk + 5, 2*delta.Chunk + 3, 70
		r := rand.New(rand.NewPCG(3, 7))
		w := Weights{Conv: kerneltest.RandomVector(r, s.Taps*s.Channels()), A: []float32{-0.1, -0.5}, DT: []float32{0, 1}}
		rows, gates := kerneltest.RandomVector(r, n*stride), kerneltest.RandomVector(r, 2*n*s.ValueHeads)
		rest, restGates := slices.Clone(rows[at*stride:]), slices.Clone(gates[2*at*s.ValueHeads:])
		state, copied := make([]float32, s.Size()), make([]float32, s.Size())
		pass := New(pool.Workers{Pool: p}, s, 1e-6)
		pass.Run(rows, stride, gates, []Span{{N: n, State: state, Copies: []Copy{{at, copied}}}}, 0, &w)
		pass.Run(rest, stride, restGates, []Span{{N: n - at, Position: at, State: copied}}, 0, &w)
		if !kerneltest.SameBits(rest, rows[at*stride:]) || !kerneltest.SameBits(state, copied) {
			t.Error("rows after the copy have other bits")
		}
	})
}

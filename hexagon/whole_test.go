package hexagon

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// exact computes a layer of one sequence's rows in float64, from its first position on.
type exact struct {
	m *models.DenseLayers
	s *models.DenseStep

	weights map[*linear][]float32
}

func (e *exact) norm(x []float64, w []float32) []float64 {
	y := make([]float64, len(x))
	for from := 0; w != nil && from < len(x); from += len(w) {
		sum := 0.0
		for _, v := range x[from : from+len(w)] {
			sum += v * v
		}
		for k := range w {
			y[from+k] = x[from+k] / math.Sqrt(sum/float64(len(w))+float64(e.m.Eps)) * float64(w[k])
		}
	}
	if w == nil {
		copy(y, x)
	}
	return y
}

// stream is a norm of the residual stream.
func (e *exact) stream(x []float64, n models.DenseNorm) []float64 {
	if n.Bias == nil {
		return e.norm(x, n.Weight)
	}
	y, mean, squares := make([]float64, len(x)), 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	for k, v := range x {
		y[k] = (v-mean)/math.Sqrt(squares/float64(len(x))+float64(e.m.Eps))*float64(n.Weight[k]) + float64(n.Bias[k])
	}
	return y
}

func (e *exact) mul(x []float64, of ...kernels.Linear) (y []float64) {
	for _, o := range of {
		l := o.(*linear)
		all := e.weights[l]
		for m := len(all) / l.Cols; m < l.Rows; m++ {
			all = append(all, make([]float32, l.Cols)...)
			l.weightsOf(all[m*l.Cols:], m)
		}
		e.weights[l] = all
		for m := range l.Rows {
			w := all[m*l.Cols:][:l.Cols]
			sum := 0.0
			for k := range w {
				sum += float64(w[k]) * x[k]
			}
			y = append(y, sum)
		}
	}
	return y
}

func add(x []float64, of []float32) {
	for i := range of {
		x[i] += float64(of[i])
	}
}

func (e *exact) heads(x []float64, h *models.DenseHeads, l *models.DenseLayer, row int) []float64 {
	add(x, h.Bias)
	if !h.NormLast {
		x = e.norm(x, h.Norm)
	}
	pairs := l.Rotated / 2
	for from := 0; from < len(x); from += e.m.HeadDim {
		for k := range pairs {
			a, b := from+k, from+k+pairs
			if l.RotationOfDistance == 1 {
				a, b = from+2*k, from+2*k+1
			}
			c, s := float64(e.s.Cos[l.Rope][row*pairs+k]), float64(e.s.Sin[l.Rope][row*pairs+k])
			x[a], x[b] = x[a]*c-x[b]*s, x[b]*c+x[a]*s
		}
	}
	if h.NormLast {
		x = e.norm(x, h.Norm)
	}
	return x
}

func act(g float64, unit models.GatedUnit) float64 {
	switch unit {
	case models.UnitGELU:
		return g / (1 + math.Exp(-1.5957691216057308*(g+0.044715*g*g*g)))
	case models.UnitReLU2:
		return max(g, 0) * max(g, 0)
	}
	return g / (1 + math.Exp(-g))
}

func (e *exact) layer(xs [][]float64, l *models.DenseLayer) {
	d, group := e.m.HeadDim, e.m.Heads/e.m.KVHeads
	q, w := e.m.Heads*d, e.m.KVHeads*d
	var keys, values [][]float64
	for row, x := range xs {
		read := e.stream(x, l.Norm)
		qkv := e.mul(read, l.QKV...)
		queries, v := e.heads(qkv[:q], &l.Q, l, row), qkv[q+w:]
		add(v, l.VBias)
		keys, values = append(keys, e.heads(qkv[q:q+w], &l.K, l, row)), append(values, v)
		out := make([]float64, q)
		for h := range e.m.Heads {
			sum, kv := 0.0, h/group*d
			if l.Sinks != nil {
				sum = math.Exp(float64(l.Sinks[h]))
			}
			for pos := range keys {
				if l.Window > 0 && pos <= row-l.Window {
					continue
				}
				score := 0.0
				for k := range d {
					score += queries[h*d+k] * keys[pos][kv+k]
				}
				score *= float64(l.Scale)
				if c := float64(l.Cap); c > 0 {
					score = c * math.Tanh(score/c)
				}
				p := math.Exp(score)
				sum += p
				for k := range d {
					out[h*d+k] += p * values[pos][kv+k]
				}
			}
			for k := range d {
				out[h*d+k] /= sum
			}
		}
		e.residual(x, e.mul(e.norm(out, l.AttendedNorm), l.O), l.OBias, l.OPostNorm)
		if !e.m.Parallel {
			read = e.stream(x, l.FFNNorm)
		}
		both := e.mul(read, l.GateUp...)
		for k, g := range both[:l.Width] {
			both[k] = act(g, l.Unit) * both[l.Width+k]
		}
		e.residual(x, e.mul(e.norm(both[:l.Width], l.DownNorm), l.Down), l.DownBias, l.DownPostNorm)
	}
}

func (e *exact) residual(x, y []float64, bias, norm []float32) {
	add(y, bias)
	for k, v := range e.norm(y, norm) {
		x[k] += float64(e.m.Factor) * v
	}
}

// Layers of all kinds: biases, norms of heads together or each, ahead of the rotation or behind
// it, rotations of both orders, of a part of a head, of none; matrices in one and in parts, of which one is in bytes;
// norms of both kinds, and none; sinks, and capped scores; half layers that read the same.
func TestEveryPartOfAWholeLayerIsComputed(t *testing.T) {
	for _, parallel := range []bool{false, true} {
		t.Run(fmt.Sprint(parallel), func(t *testing.T) { everyPart(t, PathLookup, 5, parallel) })
	}
	t.Run("a prompt by tiles", func(t *testing.T) { everyPart(t, PathTiles, 34, false) })
}

func everyPart(t *testing.T, path Path, rows int, parallel bool) {
	r := rand.New(rand.NewPCG(41, 1))
	const hidden, heads, kvHeads, dim, width = 256, 6, 2, 64, 288
	const q, w = heads * dim, kvHeads * dim
	var ran []device.Packet
	b := New("test", func(bytes int) (device.Device, error) {
		return hooked(bytes, func(p *device.Packet) error {
			ran = append(ran, *p)
			return nil
		}, nil)
	}, Options{Path: path})
	packed := func(p matrix.Packing, rows, cols int) kernels.Linear {
		l, err := b.Load(matrices.Random(t, r, p, rows, cols))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	load := func(rows, cols int) kernels.Linear { return packed(matrix.Q4, rows, cols) }
	ones := func(n int) []float32 {
		x := gaussians(r, n)
		for i := range x {
			x[i] = 1 + x[i]/8
		}
		return x
	}
	m := &models.DenseLayers{Hidden: hidden, Heads: heads, KVHeads: kvHeads, HeadDim: dim, Eps: 1e-5, Factor: 0.5, Parallel: parallel}
	for i := range 4 {
		l := &models.DenseLayer{
			Norm: models.DenseNorm{Weight: ones(hidden)}, O: load(hidden, q), QKV: []kernels.Linear{load(q+2*w, hidden)},
			DenseAttention: models.DenseAttention{KV: i, Rope: i % 2, Scale: 0.02, OPostNorm: ones(hidden)},
			DenseFFN: models.DenseFFN{
				FFNNorm: models.DenseNorm{Weight: ones(hidden)}, Width: width, Unit: []models.GatedUnit{models.UnitSiLU, models.UnitGELU, models.UnitReLU2}[i%3],
				GateUp: []kernels.Linear{load(2*width, hidden)}, Down: load(hidden, width), DownPostNorm: ones(hidden),
			},
		}
		if i%2 == 1 {
			l.QKV, l.GateUp = []kernels.Linear{load(q, hidden), packed(matrix.Q8, w, hidden), load(w, hidden)}, []kernels.Linear{load(width, hidden), load(width, hidden)}
			l.AttendedNorm, l.DownNorm = ones(q), ones(width)
		}
		l.Q, l.K = models.DenseHeads{Bias: gaussians(r, q), Norm: ones(dim), NormLast: i == 0}, models.DenseHeads{Norm: ones(w)}
		l.VBias, l.OBias, l.DownBias = gaussians(r, w), gaussians(r, hidden), gaussians(r, hidden)
		if i == 2 {
			l.Q, l.K, l.VBias, l.OBias, l.DownBias = models.DenseHeads{}, models.DenseHeads{Bias: gaussians(r, w)}, nil, nil, nil
		}
		l.Rotated, l.RotationOfDistance = []int{64, 32}[i%2], []int{1, 16}[i%2]
		if i == 3 {
			l.Rotated, l.RotationOfDistance = 0, 0
		}
		if l.Cap = 0.25; parallel {
			l.Cap = 0
		}
		if i < 2 { // which hides keys from some rows
			l.Window = rows/2 + 1
		}
		switch i {
		case 1:
			l.Norm.Bias, l.FFNNorm.Bias = gaussians(r, hidden), gaussians(r, hidden)
			l.Sinks = gaussians(r, heads)
		case 2:
			l.Sinks = []float32{-1e9, 3, 0, -1e-9, 9, -2}
			if !parallel {
				l.Norm = models.DenseNorm{}
			}
		case 3:
			l.FFNNorm = models.DenseNorm{}
		}
		m.Layers = append(m.Layers, l)
	}
	if !b.Layers(m) {
		t.Fatal("the device takes no layer")
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	cache, err := kv.New(kv.Shape{Layers: 4, Heads: kvHeads, HeadDim: dim}, kv.Options{BlockLen: 16, Blocks: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	seq := cache.Open(nil)
	if err := seq.Grow(rows); err != nil {
		t.Fatal(err)
	}
	s := &models.DenseStep{X: gaussians(r, rows*hidden), Wanted: make([]bool, rows), Cache: cache, Model: m}
	var xs [][]float64
	for i := range rows {
		s.Rows, xs = append(s.Rows, models.RowPos{Seq: seq, Pos: i}), append(xs, make([]float64, hidden))
		add(xs[i], s.X[i*hidden:][:hidden])
	}
	for i, pairs := range []int{32, 16} {
		for range rows * pairs {
			sin, cos := math.Sincos(6 * r.Float64())
			s.Cos[i], s.Sin[i] = append(s.Cos[i], float32(cos)), append(s.Sin[i], float32(sin))
		}
	}
	e := &exact{m, s, map[*linear][]float32{}}
	alone := packetsWithoutADevice(b, s)
	ran = nil
	if n := b.RunLayers(s); n != len(m.Layers) || b.Err() != nil {
		t.Fatalf("%d layers are computed: %v", n, b.Err())
	}
	if !slices.Equal(ran, alone) {
		t.Errorf("the device got %d packets; of the plan and the rows alone a step makes %d, or others", len(ran), len(alone))
	}
	var num, den float64
	for _, l := range m.Layers {
		e.layer(xs, l)
	}
	for i, x := range xs {
		for k, v := range x {
			diff := float64(s.X[i*hidden+k]) - v
			num, den = num+diff*diff, den+v*v
		}
	}
	if !(num/den < deviceNoise) {
		t.Errorf("NMSE %.3g", num/den)
	}
}

// packetsWithoutADevice makes the packets of a step of the plan and the rows alone, over memory of its own.
func packetsWithoutADevice(b *Backend, s *models.DenseStep) []device.Packet {
	d, q := b.plan.layers, &request{mem: alignedBytes(int(b.Memory())), tables: &b.plan.tables}
	k, tcm := &keys{q: q, slotsAt: b.attention.device.slotsAt, listsAt: b.attention.device.listsAt}, &attentionTCM{longest: longestChunk}
	r := newStep(q, k, tcm)
	r.follow(d)
	if !k.use(s.Cache) || !tcm.divide(d.m.HeadDim, d.cap) || !r.begin(stepRows{s: s, rows: s.Rows, n: len(s.Rows), last: len(d.layers)}, 0, false, b.session.probes+1) {
		return nil
	}
	for i := range d.layers {
		if room, slots := r.fits(i); !room || !slots {
			return nil
		}
		r.layer(i)
	}
	return q.packets
}

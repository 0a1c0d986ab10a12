package hexagon

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/device/qemu"
	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/models"
)

// gatedLayer is a layer of experts with biases, of whole matrices or gate and up apart.
type gatedLayer struct {
	b       *Backend
	experts []*models.GatedExpert
	packets []device.Packet // of the device
	matrix  exact
}

const gatedHidden, gatedWidth, gatedCount = 288, 160, 3

// newGatedLayer makes the same layer each time.
func newGatedLayer(t *testing.T, unit models.GatedUnit, opt Options, capacity int) *gatedLayer {
	t.Helper()
	g := &gatedLayer{matrix: exact{weights: map[*linear][]float32{}}}
	return g.over(t, unit, opt, capacity, func(bytes int) (device.Device, error) {
		return hooked(bytes, func(p *device.Packet) error { g.packets = append(g.packets, *p); return nil }, nil)
	})
}

func (g *gatedLayer) over(t *testing.T, unit models.GatedUnit, opt Options, capacity int, open Opener) *gatedLayer {
	t.Helper()
	r := rand.New(rand.NewPCG(51, 1))
	opt.Plan = uniform(experts.Shape{Model: "test", Layers: 1, Experts: gatedCount, Chosen: 1, Hidden: gatedHidden, Width: gatedWidth}, 64, gatedCount, 1)
	opt.Plan.Layers[0].Groups[0].Capacity = capacity
	g.b = New("test", open, opt)
	if err := g.b.Mixtures(models.MixtureShape{Model: "test", Layers: 1, Experts: gatedCount, Chosen: 1, Hidden: gatedHidden, Width: gatedWidth}); err != nil {
		t.Fatal(err)
	}
	for e := range gatedCount {
		load := func(p matrix.Packing, rows, cols int) kernels.Linear {
			l, err := g.b.Expert(0, e).Load(matrices.Random(t, r, p, rows, cols))
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		x := &models.GatedExpert{GateUp: []kernels.Linear{load(matrix.Q4, 2*gatedWidth, gatedHidden)}, Unit: unit, Width: gatedWidth, GateUpBias: gaussians(r, 2*gatedWidth), DownBias: gaussians(r, gatedHidden)}
		if e == 1 { // of two products, one of them in bytes
			x.GateUp = []kernels.Linear{load(matrix.Q8, gatedWidth, gatedHidden), load(matrix.Q4, gatedWidth, gatedHidden)}
		}
		x.Down = load(matrix.Q4, gatedHidden, gatedWidth)
		if g.experts = append(g.experts, x); !g.b.GatedExpert(0, e, x) {
			t.Fatalf("expert %d is not the device's", e)
		}
	}
	if err := g.b.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.b.Close() })
	return g
}

// run computes rows of sequences, with so many tokens each, that choose expert i%3 but for those in skewed,
// which choose the first, and returns what the experts make of them, in the rows' order.
func (g *gatedLayer) run(t *testing.T, h []float32, skewed int, tokens ...int) []float32 {
	t.Helper()
	x := &models.Experts{H: h, Hidden: gatedHidden, Width: gatedWidth, First: make([]int32, gatedCount+1)}
	for i, n := range tokens {
		for pos := range n {
			x.Rows = append(x.Rows, models.RowPos{Seq: sequences[i], Pos: pos})
		}
	}
	for e := range int32(gatedCount) {
		for i := range x.Rows {
			if i < skewed && e == 0 || i >= skewed && int32(i%gatedCount) == e {
				x.RowAt = append(x.RowAt, int32(i))
			}
		}
		if x.First[e+1] = int32(len(x.RowAt)); x.First[e+1] > x.First[e] {
			x.List = append(x.List, e)
		}
	}
	x.Out = make([]float32, len(x.Rows)*gatedHidden)
	g.packets = nil
	g.b.Begin(x.Rows)
	g.b.RunExperts(x)
	if err := g.b.Err(); err != nil {
		t.Fatal(err)
	}
	out := make([]float32, len(x.Out))
	for place, row := range x.RowAt {
		copy(out[int(row)*gatedHidden:], x.Out[place*gatedHidden:][:gatedHidden])
	}
	return out
}

// exact computes rows in float64.
func (g *gatedLayer) exact(unit models.GatedUnit, h []float32, skewed int) (out []float32) {
	for i := range len(h) / gatedHidden {
		x := g.experts[i%gatedCount]
		if i < skewed {
			x = g.experts[0]
		}
		row := make([]float64, gatedHidden)
		add(row, h[i*gatedHidden:][:gatedHidden])
		both := g.matrix.mul(row, x.GateUp...)
		add(both, x.GateUpBias)
		for k, v := range both[:gatedWidth] {
			u := both[gatedWidth+k]
			switch unit {
			case models.UnitClamped:
				v, u = min(v, 7), max(-7, min(u, 7))
				both[k] = v / (1 + math.Exp(-1.702*v)) * (u + 1)
			case models.UnitClampedSiLU:
				v, u = min(v, 7), max(-7, min(u, 7))
				both[k] = v / (1 + math.Exp(-v)) * u
			default:
				both[k] = act(v, unit) * u
			}
		}
		y := g.matrix.mul(both[:gatedWidth], x.Down)
		add(y, x.DownBias)
		for _, v := range y {
			out = append(out, float32(v))
		}
	}
	return out
}

// A row's bits are the same in a launch, where a group has no room for it, and in a step that makes no
// launch of groups, on the host or on the device. They equal the unit's definition.
func TestAnExpertsRowsHaveTheSameBitsWhereverTheyAreComputed(t *testing.T) {
	sweep.Full(t)
	const rows = 70
	r := rand.New(rand.NewPCG(52, 1))
	h := gaussians(r, rows*gatedHidden)
	clear(h[gatedHidden : 2*gatedHidden])
	for i := range gatedHidden { // gates and ups far beyond their bounds, and tiny ones
		h[i] *= 300
		h[3*gatedHidden+i] *= 1e-30
	}
	for _, unit := range []models.GatedUnit{models.UnitClamped, models.UnitClampedSiLU, models.UnitSiLU} {
		for _, path := range []Path{PathLookup, PathTiles} {
			t.Run(fmt.Sprint(unit, path), func(t *testing.T) {
				all := newGatedLayer(t, unit, Options{Path: path}, 64)
				want := all.run(t, h, 30, rows)
				if e := nmse(want, all.exact(unit, h, 30)); !(e < deviceNoise) {
					t.Errorf("NMSE %.3g", e)
				}
				if c := all.b.Counts(); c.Launches != 2 || c.Synced > 1 || c.Overflow != 0 || c.Computed != rows { // of two chunks
					t.Errorf("%+v", c)
				}
				few := newGatedLayer(t, unit, Options{Path: path, Decode: true}, 5)
				if got := few.run(t, h, 30, rows); !slices.Equal(got, want) {
					t.Errorf("with overflow: NMSE %.3g", nmse(got, want))
				}
				if c := few.b.Counts(); c.Overflow < rows/2 || c.Launches != 2 {
					t.Errorf("with overflow: %+v", c)
				}
				if got := few.run(t, h, 30, 30, 31, 9); !slices.Equal(got, want) { // which are more rows than a chunk
					t.Errorf("of no chunk: NMSE %.3g", nmse(got, want))
				}
				if c := few.b.Counts(); c.Launches != 4 || c.Decoded != rows || len(few.packets) == 0 {
					t.Errorf("of no chunk: %+v", c)
				}
				if got := all.run(t, h, 30, 30, 31, 9); !slices.Equal(got, want) || len(all.packets) != 0 {
					t.Errorf("by the host: NMSE %.3g, and %d packets of the device's", nmse(got, want), len(all.packets))
				}
				for lo := range 3 { // a row alone
					if got := few.run(t, h[lo*gatedHidden:][:gatedHidden], 1, 1); !slices.Equal(got, want[lo*gatedHidden:][:gatedHidden]) {
						t.Errorf("row %d alone: NMSE %.3g", lo, nmse(got, want[lo*gatedHidden:][:gatedHidden]))
					}
				}
			})
		}
	}
}

// The emulated device has the same bits, with shards in an order that shows what they share.
func TestAnEmulatedLaunchOfExpertsHasTheHostsBits(t *testing.T) {
	sweep.Hexagon(t, "qemu-hexagon")
	h := gaussians(rand.New(rand.NewPCG(55, 1)), 36*gatedHidden)
	for i, path := range []Path{PathLookup, PathTiles} {
		want := newGatedLayer(t, models.UnitClamped, Options{Path: path}, 4).run(t, h, 4, 36)
		g := (&gatedLayer{}).over(t, models.UnitClamped, Options{Path: path}, 4, func(bytes int) (device.Device, error) {
			return qemu.Open(qemu.Options{Memory: bytes, Workers: 2 + i, Seed: uint32(7 + i)})
		})
		if got := g.run(t, h, 4, 36); !slices.Equal(got, want) {
			t.Errorf("%s: NMSE %.3g", path, nmse(got, want))
		}
		w := g.b.Work()
		t.Logf("%s: %d packets, of instructions %d", path, w.Packets, w.Counts.Packets)
	}
}

// What a launch of a group asks of the device is the same for any rows, and is nothing but itself.
func TestALaunchOfGatedExpertsIsTheSameForAnyRows(t *testing.T) {
	h := gaussians(rand.New(rand.NewPCG(53, 1)), 64*gatedHidden)
	for _, path := range []Path{PathLookup, PathTiles} {
		g := newGatedLayer(t, models.UnitClamped, Options{Path: path}, 32)
		var first []device.Packet
		for _, c := range [][2]int{{64, 0}, {40, 40}, {33, 10}} { // rows, and those of the first expert
			before := g.b.Work().Runs
			g.run(t, h[:c[0]*gatedHidden], c[1], c[0])
			if n := g.b.Work().Runs - before; n != 1 {
				t.Errorf("%s: %d requests", path, n)
			}
			if first == nil {
				first = g.packets
			}
			if !slices.Equal(g.packets, first) {
				t.Errorf("%s: %d rows, %d skewed, are other packets", path, c[0], c[1])
			}
		}
	}
}

// A device that computes nonsense is found out by either product.
func TestAWrongProductOfAnExpertIsFound(t *testing.T) {
	h := gaussians(rand.New(rand.NewPCG(54, 1)), 8*gatedHidden)
	for spoiled := range 2 {
		g := newGatedLayer(t, models.UnitClamped, Options{Path: PathLookup, Decode: true}, 32)
		e := g.b.plan.mixture.gated.of[0][0]
		l := []*stack{e.gateUp, e.down}[spoiled].parts[0]
		for i := range l.Codes {
			l.Codes[i] ^= 0xff
		}
		l.Scales[0] ^= 0x1fff // what is looked at is computed of these, too; but of R as it was loaded
		for i := range device.View[float32](g.b.session.request.mem, []*stack{e.gateUp, e.down}[spoiled].r[0], l.M) {
			device.View[float32](g.b.session.request.mem, []*stack{e.gateUp, e.down}[spoiled].r[0], l.M)[i] *= 3
		}
		x := &models.Experts{H: h, Hidden: gatedHidden, Width: gatedWidth, Rows: []models.RowPos{{Seq: sequences[0]}}, List: []int32{0}, First: []int32{0, 1, 1, 1}, RowAt: []int32{0}, Out: make([]float32, gatedHidden)}
		for range 4 {
			g.b.RunExperts(x)
		}
		if g.b.Err() == nil {
			t.Errorf("product %d is wrong, and nothing says so", spoiled)
		}
	}
}

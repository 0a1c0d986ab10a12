package npu

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/matrix"
	trits "github.com/lutra-lm/lutra/kernels/ternary"
	"github.com/lutra-lm/lutra/lab/npu/soc"
)

// recorder is a device that keeps the packets that it is given. As in a layer that is one request, tables stay in
// TCM: their copies are left out.
type recorder struct {
	device.Device
	packets []device.Packet
}

func (r *recorder) Run(ctx context.Context, packets []device.Packet) (device.Counts, error) {
	if slices.ContainsFunc(packets, func(p device.Packet) bool { return p.Op == device.OpGEMV }) {
		packets = slices.DeleteFunc(slices.Clone(packets), func(p device.Packet) bool { return p.Op == device.OpCopy })
	}
	r.packets = append(r.packets, packets...)
	return r.Device.Run(ctx, packets)
}

// order is a layer's products as they come, those of one input after one another.
var order = [][]string{{"attn_q", "attn_k", "attn_v"}, {"attn_output"}, {"ffn_gate", "ffn_up"}, {"ffn_down"}}

// aLayer loads the matrices of a layer of stepModel, each size once: codes make no difference
// to counts.
func aLayer(t *testing.T, dev device.Device, o hexagon.Options) (*hexagon.Backend, map[string]kernels.Linear) {
	x, _ := Shape(stepModel)
	o.Keys, o.Timeout = 1<<20, runLimit
	b := hexagon.New("test", func(int) (device.Device, error) { return dev, nil }, o)
	sizes, all := map[[2]int]kernels.Linear{}, map[string]kernels.Linear{}
	for _, m := range x.Matrices[:len(x.Matrices)-1] {
		size := [2]int{m.M, m.K}
		if sizes[size] == nil {
			w, err := trits.Pack(m.M, m.K, make([]int8, m.M*m.K), []float32{1}, matrix.I2)
			if err != nil {
				t.Fatal(err)
			}
			if sizes[size], err = b.Load(w); err != nil {
				t.Fatal(err)
			}
		}
		all[m.Name] = sizes[size]
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b, all
}

const (
	stepMemory = 128 << 20
	runLimit   = 10 * time.Minute // a run of 128 rows is long where others compute, too
)

// run computes a layer's products of batch rows, and calls after behind each.
func runLayer(t *testing.T, b *hexagon.Backend, all map[string]kernels.Linear, batch int, after func(name string)) {
	var acts kernels.Acts
	for _, names := range order {
		k := 2560
		if names[0] == "ffn_down" {
			k = 6912
		}
		x := make([]float32, batch*k)
		for i := range x {
			x[i] = float32(i%7) - 3
		}
		acts.Set(x, batch, k)
		for _, name := range names {
			all[name].Mul(make([]float32, batch*6912), &acts)
			after(name)
		}
	}
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
}

// What the host sends are the tiles of the search, and what DMA moves are their pieces.
func TestTheTilesThatExecuteAreThoseThatTheSearchFinds(t *testing.T) {
	dev, err := device.NewGo(nil, stepMemory)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{Device: dev}
	b, all := aLayer(t, r, hexagon.Options{})
	chip, _ := soc.Named("8gen3")
	x, _ := Shape(stepModel)
	r.packets = nil
	batch := 1
	check := func(name string) {
		for _, m := range x.Matrices {
			if m.Name != name {
				continue
			}
			l, err := chip.Plan(m, hexagon.LookupRows(layout.Ternary, false))
			if err != nil {
				t.Fatal(err)
			}
			found, ran := l.Search.Choice, 0
			for _, p := range r.packets {
				if p.Op == device.OpGEMV {
					ran++
					if strips, workers := p.GEMVTiles(); strips != found.MIterD || workers != min(int(chip.Threads.Value), m.Padded().M/found.Rows()) || int(p.Args[14]) != found.Cols() || int(p.Args[6]) != m.Padded().M {
						t.Errorf("%s: %d rows in tiles of %d strips by %d columns execute, the search finds %d by %d", name, p.Args[6], strips, p.Args[14], found.MIterD, found.Cols())
					}
				}
			}
			if ran != 1 {
				t.Errorf("%s: %d products for %d rows at once", name, ran, batch)
			}
		}
		r.packets = nil
	}
	for ; batch <= 2; batch++ { // of two rows, tables are planned for more
		runLayer(t, b, all, batch, check)
	}
}

// What DMA moves for lookups of more rows are their tables and results, and keys and values, beside the weights of one.
func TestMoreRowsBringNoMoreWeights(t *testing.T) {
	moved := func(batch int) (sum float64) {
		x, err := soc.ExecutedStep(soc.Step{Model: stepModel, Batch: batch, Rows: 1, Context: tmanContext, Path: soc.ByLookup})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range x.Layer {
			if w.Tiles > 0 {
				sum += w.Moved
			}
		}
		return sum
	}
	x, _ := Shape(stepModel)
	tables := 0.0
	for _, m := range x.Matrices[:len(x.Matrices)-1] {
		p := m.Padded()
		tables += float64(2*device.TableStride(p.K, false) + 4*p.M)
	}
	one := moved(1)
	for _, batch := range soc.ExecutedBatches[1:] {
		if n := moved(batch); n > one+float64(batch-1)*tables || n < one {
			t.Errorf("%d rows: %.0f bytes, one row %.0f", batch, n, one)
		}
	}
}

// What is scaled from BitNet-2B's packets is near what executes of a model of other sizes and another format. By tiles, the
// unfolding of Q4_0's codes is scaled too high.
func TestStepsOfOtherModelsAreScaledNearWhatExecutes(t *testing.T) {
	chip, _ := soc.Named("8gen3")
	for _, s := range append(qwenSteps, llamaStep) {
		executed, err := soc.ExecutedStep(s)
		if err != nil {
			t.Fatal(err)
		}
		x := named(t, s.Model)
		if s == llamaStep {
			for i := range x.Matrices[:len(x.Matrices)-1] {
				x.Matrices[i].Bits, x.Matrices[i].Group, x.Matrices[i].Offsets = 2, 64, false
			}
		}
		m := soc.NewMachine(chip)
		m.Tiles = s.Path == soc.ByTiles
		scaled, want := m.Decode(&x, s.Batch, s.Context), m.Run(executed.Whole(x.Layers))
		t.Logf("%v: %.2f ms scaled (%.2f DMA, %.2f HVX, %.2f HMX), %.2f executed (%.2f, %.2f, %.2f)", s,
			1e3*scaled.Seconds, 1e3*scaled.DMA, 1e3*scaled.Vector, 1e3*scaled.Tiles, 1e3*want.Seconds, 1e3*want.DMA, 1e3*want.Vector, 1e3*want.Tiles)
		if ratio := scaled.Seconds / want.Seconds; ratio < 0.9 || ratio > 1.3 {
			t.Errorf("%v: scaled takes %.2f times as long as executed", s, ratio)
		}
	}
}

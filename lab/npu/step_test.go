package npu

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/device/qemu"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/internal/sweep"
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
func aLayer(t *testing.T, dev device.Device, path hexagon.Path) (*hexagon.Backend, map[string]kernels.Linear) {
	x, _ := Shape(stepModel)
	b := hexagon.New("test", func(int) (device.Device, error) { return dev, nil }, hexagon.Options{Path: path, Keys: 1 << 20, Timeout: runLimit})
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
	b, all := aLayer(t, r, hexagon.PathAuto)
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

func TestPacketsOfALayerThatExecutesAreAsRecorded(t *testing.T) {
	sweep.Hexagon(t, "qemu-hexagon")
	chip, _ := soc.Named("8gen3")
	var text strings.Builder
	execute := func(by hexagon.Path, tiles soc.Path, batches ...int) {
		dev, err := qemu.Open(qemu.Options{Memory: stepMemory, Workers: int(chip.Threads.Value), KeepTCM: true, Limit: runLimit})
		if err != nil {
			t.Fatal(err)
		}
		r := &recorder{Device: dev}
		b, all := aLayer(t, r, by)
		for _, batch := range batches {
			recordLayer(t, &text, b, r, all, batch, tiles)
		}
	}
	if *update || os.Getenv("LUTRA_REQUIRE") != "" {
		execute(hexagon.PathAuto, soc.ByTiles, 1, 2, 4, 8, 12, 16, soc.Chunk)
		execute(hexagon.PathInt8, soc.ByBytes, soc.Chunk)
	} else {
		execute(hexagon.PathAuto, soc.ByTiles, 1)
	}
	if *update {
		if err := os.WriteFile("step.txt", []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !strings.HasPrefix(executed, text.String()) {
		t.Errorf("executed\n%s\nrecorded (go test -C lab ./npu -run Executes -update records them anew)\n%s", text.String(), executed)
	}
}

// recordLayer writes what the products of a layer of batch rows take, those that are not lookups by tiles.
func recordLayer(t *testing.T, text *strings.Builder, b *hexagon.Backend, r *recorder, all map[string]kernels.Linear, batch int, tiles soc.Path) {
	before := b.Work()
	r.packets = nil
	runLayer(t, b, all, batch, func(name string) {
		now := b.Work()
		path := tiles
		if now.Lookups > before.Lookups {
			path = soc.ByLookup
		}
		fmt.Fprintln(text, batch, name, path, now.Counts.Packets-before.Counts.Packets, now.Longest-before.Longest, now.Barriers-before.Barriers, now.Moved-before.Moved)
		if want := pieces(r.packets); int(now.Transfers-before.Transfers) != want {
			t.Errorf("%s: DMA makes %d transfers, the tiles have %d", name, now.Transfers-before.Transfers, want)
		}
		before, r.packets = now, nil
	})
}

// pieces counts the transfers of DMA that packets are: copies, and of lookups a piece of each
// strip of a tile, or the whole of it where it has all columns, and the results.
func pieces(packets []device.Packet) (n int) {
	for _, p := range packets {
		switch a := p.Args; p.Op {
		case device.OpCopy:
			n++
		case device.OpGEMV:
			all, cols, k := int(a[6])/layout.Strip, int(a[14]), int(a[7])
			strips, workers := p.GEMVTiles()
			each := all // of a column of tiles
			if cols >= k {
				each = (all + strips - 1) / strips
			}
			n += each*((k+cols-1)/cols) + workers*int(a[3]) // each of which stores its results of each row
		}
	}
	return n
}

func TestADecodedTokenOfExecutedPacketsIsNearWhatTMANMeasures(t *testing.T) {
	a, err := Ablate("step", nil)
	if err != nil {
		t.Fatal(err)
	}
	var ratio float64
	if _, err := fmt.Sscan(a.Rows[0][len(a.Head)-1], &ratio); err != nil || ratio < 1/1.3 || ratio > 1.3 {
		t.Errorf("by T-MAN's 49.1 tokens/s it is %v, %v", ratio, err)
	}
	// TTS's curve for the same model, of its own products; both relative to one row.
	ours, theirs := slices.Index(a.Head, "tokens/s")+1, slices.Index(a.Head, "TTS's way")+1
	for i, most := range map[int]float64{1: 1.3, 2: 1.3, 3: 1.3, 4: 1.3, 5: 1.3} {
		x, y := 0.0, 0.0
		fmt.Sscan(a.Rows[i][ours], &x)
		fmt.Sscan(a.Rows[i][theirs], &y)
		if !(x > 0) || y > most*x {
			t.Errorf("%s rows: %v times one row's tokens/s, TTS's way %v", a.Rows[i][0], x, y)
		}
	}
	t.Log(a.Kind)
	for _, row := range append([][]string{a.Head}, a.Rows...) {
		t.Log(strings.Join(row, " | "))
	}
}

// What DMA moves for lookups of more rows are their tables and results beside the weights of one.
func TestMoreRowsBringNoMoreWeights(t *testing.T) {
	list, err := parseExecuted(executed)
	if err != nil {
		t.Fatal(err)
	}
	x, _ := Shape(stepModel)
	one, more := map[string]float64{}, 0
	for _, e := range list {
		if e.Batch == 1 {
			one[e.Matrix] = e.Moved
		} else if e.Path == soc.ByLookup {
			more++
			for _, m := range x.Matrices {
				p := m.Padded()
				tables := device.TableStride(p.K, false)
				if most := one[e.Matrix] + float64((e.Batch-1)*(2*tables+4*p.M)); m.Name == e.Matrix && e.Moved > most {
					t.Errorf("%s of %d rows: %.0f bytes, more than %.0f", e.Matrix, e.Batch, e.Moved, most)
				}
			}
		}
	}
	if more < len(one) {
		t.Errorf("lookups of several rows: %d matrices", more)
	}
}

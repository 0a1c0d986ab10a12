package npu

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/device/qemu"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/lab/npu/soc"
	"github.com/lutra-lm/lutra/lab/npu/tiling"
	"github.com/lutra-lm/lutra/lab/npu/timeline"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/synthetic"
)

const stepsFile = "soc/steps.txt"

// stepShape is stepModel with its own norms and gates.
const stepShape = "bitnet-2b-4t"

// idle is a device that, once begun, keeps the packets of a step and computes none: what they count does not depend on numbers.
type idle struct {
	device.Device
	begun   bool
	packets []device.Packet
}

func (d *idle) Run(_ context.Context, packets []device.Packet) (device.Counts, error) {
	for _, p := range packets {
		if !d.begun {
			device.Define(d.Memory(), p)
		}
	}
	d.packets = append(d.packets, packets...)
	return device.Counts{}, nil
}

// Close leaves the device to other models.
func (d *idle) Close() error { return nil }

// layersCounted is a model of one layer, and one of two, whose steps are given to a device that counts.
type layersCounted struct {
	*counter
	devices [2]*idle
	models  [2]models.Model
}

// lookupsOf has products go by a path alone: all rows of a batch by lookups, or none.
var lookupsOf = map[soc.Path]int{soc.ByLookup: tiling.MMA, soc.ByTiles: -1}

// load loads layers of a shape in a format, with products by a path alone.
func (c *counter) load(t *testing.T, s synthetic.Shape, blocks gguf.Type, path soc.Path) *layersCounted {
	x := &layersCounted{counter: c}
	for i := range x.models {
		s.Layers, x.devices[i] = i+1, &idle{Device: c.dev}
		x.models[i] = modelOn(t, s, blocks, x.devices[i], hexagon.Options{Keys: 256 << 20, Timeout: runLimit, Lookups: lookupsOf[path]})
	}
	return x
}

// step executes a step: what it does before its last layer, in each further one, and behind them.
func (x *layersCounted) step(t *testing.T, s soc.Step) *soc.Executed {
	var works [2][]timeline.Work
	for i, m := range x.models {
		works[i] = x.works(stepPackets(t, m, x.devices[i], s))
	}
	begin, layer, end, ok := divide(works[0], works[1])
	if !ok {
		t.Fatalf("%v: a second layer is not like the first", s)
	}
	return &soc.Executed{Begin: begin, Layer: layer, End: end}
}

// modelOn loads a synthetic model, whose steps a device is given.
func modelOn(t *testing.T, shape synthetic.Shape, blocks gguf.Type, dev *idle, o hexagon.Options) models.Model {
	f, err := synthetic.Build(shape, synthetic.Options{Blocks: blocks, Head: gguf.Q4_0, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	workers := pool.New(2)
	t.Cleanup(workers.Close)
	b := hexagon.New("test", func(int) (device.Device, error) { return dev, nil }, o)
	bundle, err := models.LoadFile(f, models.LoadOptions{Backend: b, Pool: workers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bundle.Close() })
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	dev.begun = true
	return bundle.Model
}

// stepPackets returns the packets of a step.
func stepPackets(t *testing.T, m models.Model, d *idle, of soc.Step) []device.Packet {
	const block = 16
	batch, rows, context := of.Batch, of.Rows, of.Context
	cache, err := kv.New(m.Config().KV(), kv.Options{BlockLen: block, Blocks: batch * (context/block + 2), States: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	var list []*kv.Sequence
	forward := func(n, out int) {
		for len(list) < batch {
			list = append(list, cache.Open(nil))
		}
		var b models.Batch
		for _, s := range list {
			at := s.Len()
			if err := s.Grow(n); err != nil {
				t.Fatal(err)
			}
			b.Add(s, at, out, make([]int32, n)...)
		}
		d.packets = d.packets[:0]
		if err := m.Forward(&b, cache); err != nil {
			t.Fatal(err)
		}
	}
	for at := 0; at < context-rows; at += soc.Chunk {
		forward(min(soc.Chunk, context-rows-at), 0)
	}
	out := 1
	if rows > 1 {
		out = 0 // of a chunk within a prompt
	}
	forward(rows, out)
	for _, s := range list {
		s.Release()
	}
	// What the host looks at of one product is another product's in each step: it is left out.
	const states = layout.Tile * device.StateBytes
	return slices.DeleteFunc(slices.Clone(d.packets), func(p device.Packet) bool {
		return p.Op == device.OpCopy && min(p.Args[0], p.Args[1]) >= device.TCMBytes && p.Args[2] != states
	})
}

// counter executes packets one by one, in the program that counts as V75 does.
type counter struct {
	t    *testing.T
	dev  *qemu.Device
	seen map[device.Packet]device.Counts
}

func newCounter(t *testing.T, memory int) *counter {
	chip, _ := soc.Named("8gen3")
	text, err := os.ReadFile(countsProgram(t))
	if err != nil {
		t.Fatal(err)
	}
	dev, err := qemu.Open(qemu.Options{Program: text, Memory: memory, Workers: int(chip.Threads.Value), KeepTCM: true, Limit: runLimit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return &counter{t, dev, map[device.Packet]device.Counts{}}
}

// count executes a packet, once of those that differ in places alone.
func (c *counter) count(p device.Packet) device.Counts {
	key := p
	operands, _ := p.Operands(len(c.dev.Memory()))
	for i, a := range key.Args { // of places, in which memory they are
		for _, o := range operands {
			if a == o.Offset && a > device.Align && a < device.TCMBytes {
				key.Args[i] = 1
			} else if a == o.Offset && a >= device.TCMBytes {
				key.Args[i] = 2
			}
		}
	}
	if n, ok := c.seen[key]; ok {
		return n
	}
	n, err := c.dev.Run(c.t.Context(), []device.Packet{p})
	if err != nil {
		c.t.Fatalf("%v: %v", p, err)
	}
	c.seen[key] = n
	return n
}

// works lists what packets take, and what each waits for (hexagon/dsp/dispatch/flow.c).
func (c *counter) works(packets []device.Packet) (list []timeline.Work) {
	type flying struct {
		at int
		of []device.Operand
	}
	var lines [2][]flying
	for i, p := range packets {
		n := c.count(p)
		w := timeline.Work{Op: p.Op.String(), Packets: float64(n.Longest), Barriers: float64(n.Barriers), Moved: float64(n.Moved)}
		operands, _ := p.Operands(len(c.dev.Memory()))
		ofTiles := p.OfTileUnit()
		for k := range lines {
			l := lines[k]
			end := len(l)
			for end > 0 && !meets(l[end-1].of, operands, ofTiles && k == 1) {
				end--
			}
			if end > 0 {
				w.Wait[k] = i - l[end-1].at
				lines[k] = l[end:]
			}
		}
		a := p.Args
		switch p.Op {
		case device.OpCopy, device.OpCollect:
			w.Unit = timeline.DMA
			lines[0] = append(lines[0], flying{i, operands})
		case device.OpTileMul:
			w.Unit, w.Products = timeline.Tiles, float64(a[7]*a[8]*(a[3]+a[6]))
			lines[1] = append(lines[1], flying{i, operands})
		case device.OpTileMulBytes:
			w.Unit, w.Reads = timeline.Tiles, float64(a[4]*a[5])
			w.Products = 2 * w.Reads * float64(a[3])
			lines[1] = append(lines[1], flying{i, operands})
		case device.OpGEMV:
			strips, workers := p.GEMVTiles()
			each := (int(a[6])/128 + strips - 1) / strips
			w.Tiles = (each + workers - 1) / workers * int((a[7]+a[14]-1)/a[14])
			w.Ahead = c.ahead(packets, i)
		}
		list = append(list, w)
	}
	return list
}

// ahead tells whether the first tiles of a product by lookups come while the one before ends: see flow_ahead.
func (c *counter) ahead(packets []device.Packet, i int) bool {
	tiles, _ := packets[i].Operands(len(c.dev.Memory()))
	tiles = slices.DeleteFunc(slices.Clone(tiles), func(o device.Operand) bool { return o.Name == "y" || o.Name == "tables" || o.Name == "B" })
	for at := i - 1; at >= 0 && i-at < 24; at-- {
		operands, _ := packets[at].Operands(len(c.dev.Memory()))
		if meets(operands, tiles, false) {
			return false
		}
		if packets[at].Op == device.OpGEMV {
			return true
		}
	}
	return false
}

func meets(a, b []device.Operand, products bool) bool {
	for _, x := range a {
		for _, y := range b {
			if (x.Rule|y.Rule)&device.Writes != 0 && x.Size() > 0 && y.Size() > 0 && uint64(x.Offset) < uint64(y.Offset)+y.Size() && uint64(y.Offset) < uint64(x.Offset)+x.Size() &&
				!(products && x.Name == "columns" && y.Name == "columns") {
				return true
			}
		}
	}
	return false
}

func countsProgram(t *testing.T) string {
	t.Helper()
	sweep.Hexagon(t, "make", "clang-19", "ld.lld-19", "qemu-hexagon")
	return built(t, "build/lutra-counts.elf")
}

// Norms, rotations, attention, gates, products and the head of stepModel execute, and are as recorded: those of a decoded row,
// and a layer's products in bytes. With -update all of wholeSteps execute that -run names, and are recorded.
func TestAWholeStepThatExecutesIsAsRecorded(t *testing.T) {
	c := newCounter(t, 1<<30)
	type of struct {
		model string
		path  soc.Path
	}
	loaded := map[of]*layersCounted{}
	recorded := map[soc.Step]*soc.Executed{}
	for i, s := range wholeSteps {
		recorded[s] = recordedStep(t, s)
		t.Run(s.String(), func(t *testing.T) {
			if i > 1 && !*update {
				t.Skip("it takes long")
			}
			executed := &soc.Executed{}
			if s.Path == soc.ByBytes {
				executed.Layer = c.works(productsInBytes(t, soc.Chunk, -1))
			} else {
				k := of{s.Model, s.Path}
				if loaded[k] == nil {
					shape, blocks := stepShapeOf(c.t, s.Model)
					loaded[k] = c.load(c.t, shape, blocks, s.Path)
				}
				executed = loaded[k].step(t, s)
			}
			if *update {
				recorded[s] = executed
				return
			}
			r := recorded[s]
			for _, part := range [][2][]timeline.Work{{executed.Begin, r.Begin}, {executed.Layer, r.Layer}, {executed.End, r.End}} {
				compare(t, s.String(), part[0], part[1])
			}
		})
	}
	if *update {
		var text strings.Builder
		if err := soc.WriteSteps(&text, wholeSteps, func(s soc.Step) *soc.Executed { return recorded[s] }); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(stepsFile, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// recordedStep returns what soc has of a step, with -update perhaps nothing.
func recordedStep(t *testing.T, s soc.Step) *soc.Executed {
	x, err := soc.ExecutedStep(s)
	if err != nil && !*update {
		t.Fatal(err)
	} else if err != nil {
		return &soc.Executed{}
	}
	return x
}

// compare wants the recorded packets. Another compiler may need a tenth more or fewer instructions.
func compare(t *testing.T, part string, executed, recorded []timeline.Work) {
	t.Helper()
	if len(executed) != len(recorded) {
		t.Errorf("%s: %d packets executed, %d are recorded (go test -C lab ./npu -run WholeStep -update records them anew)", part, len(executed), len(recorded))
		return
	}
	for i, w := range executed {
		r := recorded[i]
		if math.Abs(w.Packets-r.Packets) <= r.Packets/10 {
			w.Packets = r.Packets
		}
		if w.String() != r.String() {
			t.Errorf("%s: packet %d is %v, recorded is %v (go test -C lab ./npu -run WholeStep -update records them anew)", part, i, &executed[i], &r)
			return
		}
	}
}

// wholeSteps are the steps that soc.ExecutedStep has.
var wholeSteps = append(stepsOf(stepModel, []soc.Step{
	{Batch: 1, Rows: soc.Chunk, Path: soc.ByBytes},
	{Batch: 1, Rows: 1, Context: tmanContext, Path: soc.ByLookup}, {Batch: 2, Rows: 1, Context: tmanContext, Path: soc.ByLookup}, {Batch: 4, Rows: 1, Context: tmanContext, Path: soc.ByLookup},
	{Batch: 8, Rows: 1, Context: tmanContext, Path: soc.ByLookup}, {Batch: 16, Rows: 1, Context: tmanContext, Path: soc.ByLookup},
	{Batch: 1, Rows: 1, Context: tmanContext, Path: soc.ByTiles}, {Batch: 16, Rows: 1, Context: tmanContext, Path: soc.ByTiles},
	{Batch: 1, Rows: soc.Chunk, Context: soc.Chunk, Path: soc.ByTiles}, {Batch: 1, Rows: soc.Chunk, Context: promptTokens, Path: soc.ByTiles},
}), append(qwenSteps, llamaStep)...)

func stepsOf(model string, list []soc.Step) []soc.Step {
	for i := range list {
		list[i].Model = model
	}
	return list
}

// stepShapeOf returns what executes of a model in soc's steps, and its layers' format: stepModel with its own norms and
// gates, and others as Llamas.
func stepShapeOf(t *testing.T, model string) (synthetic.Shape, gguf.Type) {
	if model == stepModel {
		shape, err := synthetic.Named(stepShape)
		if err != nil {
			t.Fatal(err)
		}
		return shape, gguf.TQ2_0
	}
	i := slices.IndexFunc(papers, func(s shape) bool { return s.name == model })
	s := papers[i]
	blocks := gguf.Q4_0
	if model == llamaStep.Model {
		blocks = gguf.Q2_0
	}
	return synthetic.Shape{Name: s.name, Hidden: s.hidden, FFN: s.ffn, Layers: s.layers, Heads: s.heads, KVHeads: s.kv, HeadDim: s.headDim,
		Vocab: s.vocab, Context: 4096, RopeBase: 500000, TiedEmbedding: true, Arch: synthetic.Llama}, blocks
}

// productsInBytes returns the packets of a layer's products of rows rows by PathInt8, up to lookups of them by lookups and
// more by tiles of bytes. Its device computes, since the host looks at results.
func productsInBytes(t *testing.T, rows, lookups int) []device.Packet {
	dev, err := device.NewGo(nil, stepMemory)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{Device: dev}
	b, all := aLayer(t, r, hexagon.Options{Path: hexagon.PathInt8, Lookups: lookups})
	r.packets = nil
	runLayer(t, b, all, rows, func(string) {})
	return r.packets
}

// rowsFormats are formats of models whose few rows go by lookups.
var rowsFormats = []struct {
	blocks gguf.Type
	format layout.Format
}{
	{gguf.TQ2_0, layout.Ternary}, {gguf.Q1_0, layout.Format{Bits: 1, Group: 128}}, {gguf.Q2_0, layout.Format{Bits: 2, Group: 64}}, {gguf.PQ2_0, layout.Format{Bits: 2, Group: 128}},
	{gguf.Q4_0, layout.Q4_0}, {gguf.Q4_1, layout.Format{Bits: 4, Group: 32, Offsets: true}}, {gguf.IQ4_NL, layout.IQ4_NL}, {gguf.Q8_0, layout.Q8_0},
}

// One row more by lookups takes longer than by tiles, and one row less does not, but for half a percent: by executed packets
// of a layer.
func TestRowsByLookupsAreAsManyAsExecutedPacketsSay(t *testing.T) {
	const tie = 0.005
	c := newCounter(t, 1<<30)
	chip, _ := soc.Named("8gen3")
	m := soc.NewMachine(chip)
	check := func(t *testing.T, few, most int, seconds func(rows int, path soc.Path) float64) {
		for rows := few; rows <= min(few+1, most); rows++ {
			lookups, tiles := seconds(rows, soc.ByLookup), seconds(rows, soc.ByTiles)
			t.Logf("%d rows: %.1f µs by lookups, %.1f by tiles", rows, 1e6*lookups, 1e6*tiles)
			if rows == few && lookups > (1+tie)*tiles || rows > few && lookups < (1-tie)*tiles {
				t.Errorf("%d rows go by lookups, but %d rows take %.1f µs by lookups and %.1f by tiles", few, rows, 1e6*lookups, 1e6*tiles)
			}
		}
	}
	shape, err := synthetic.Named(stepShape)
	if err != nil {
		t.Fatal(err)
	}
	shape.Vocab = 512 // the head is no part of a layer
	for _, f := range rowsFormats {
		t.Run(f.blocks.String(), func(t *testing.T) {
			loaded := map[soc.Path]*layersCounted{soc.ByLookup: c.load(t, shape, f.blocks, soc.ByLookup), soc.ByTiles: c.load(t, shape, f.blocks, soc.ByTiles)}
			check(t, hexagon.LookupRows(f.format, false), tiling.MMA, func(rows int, path soc.Path) float64 {
				x := loaded[path].step(t, soc.Step{Model: stepModel, Batch: rows, Rows: 1, Context: 16})
				return m.Run(x.Whole(2)).Seconds - m.Run(x.Whole(1)).Seconds
			})
		})
	}
	t.Run("int8", func(t *testing.T) {
		check(t, hexagon.LookupRows(layout.Ternary, true), tiling.MMA, func(rows int, path soc.Path) float64 {
			return m.Run(c.works(productsInBytes(t, rows, lookupsOf[path]))).Seconds
		})
	})
}

// divide finds what a step does before its last layers, in each, and behind them.
func divide(one, two []timeline.Work) (begin, layer, end []timeline.Work, ok bool) {
	n := len(two) - len(one)
	if n <= 0 {
		return nil, nil, nil, false
	}
	at := 0
	for at < len(one) && one[at] == two[at] {
		at++
	}
	return two[:at], two[at : at+n], two[at+n:], slices.Equal(one[at:], two[at+n:])
}

// A step's rate is of its packets: two times as many instructions, or none, change it, and so do barriers.
func TestPacketsThatExecuteDecideTheRate(t *testing.T) {
	chip, _ := soc.Named("8gen3")
	rate := func(change func(c *soc.Chip), batch int) float64 {
		c := chip
		change(&c)
		x := named(t, stepModel)
		return float64(batch) / soc.NewMachine(c).Decode(&x, batch, tmanContext).Seconds
	}
	for _, batch := range []int{1, 8} {
		now := rate(func(*soc.Chip) {}, batch)
		twice := rate(func(c *soc.Chip) { c.CyclesPerPacket.Value *= 2 }, batch)
		none := rate(func(c *soc.Chip) { c.CyclesPerPacket.Value = 0 }, batch)
		free := rate(func(c *soc.Chip) { c.Barrier.Value = 0 }, batch)
		t.Logf("batch %d: %.1f tokens/s; packets twice as long %.1f, none %.1f; barriers for nothing %.1f", batch, now, twice, none, free)
		if !(twice < 0.95*now && none > 1.02*now && free > 1.005*now) {
			t.Errorf("batch %d: %.1f tokens/s; packets twice as long %.1f, none %.1f; barriers for nothing %.1f", batch, now, twice, none, free)
		}
	}
}

const dspSources = "../../hexagon/dsp"

// built has a program of hexagon/dsp made.
func built(t *testing.T, name string) string {
	t.Helper()
	if out, err := exec.Command("make", "-s", "-C", dspSources, name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dspSources, name)
}

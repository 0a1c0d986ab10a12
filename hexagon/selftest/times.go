package selftest

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
)

// Names of measurements, by which lutra-lab npu plan --measured reads them.
const (
	RoundTrip   = "round trip of a request"
	DMA         = "copy from DDR to TCM"       // of some bytes
	Lookups     = "packets of lookups"         // counted ones by their time
	TileUnit    = "product of the tile unit"   // of some tiles of 32 columns
	Gathers     = "a gather of softmax"        // 64 numbers, with what is computed of them
	BitNetLayer = "products of a BitNet layer" // of BitNet-2B, a row by lookups
)

// Bounds of a measurement.
const (
	measureFor  = 100 * time.Millisecond
	measureRuns = 64
)

// measure runs packets for a while, and returns the median time of a run, and what one run counted.
func (t *test) measure(ctx context.Context, packets []device.Packet) (median time.Duration, runs int, counts device.Counts, err error) {
	var all []time.Duration
	for begin := time.Now(); len(all) == 0 || len(all) < measureRuns && time.Since(begin) < measureFor; {
		at := time.Now()
		var fault error
		if counts, fault, err = t.run(ctx, packets); err != nil || fault != nil {
			return 0, 0, counts, err
		}
		all = append(all, time.Since(at))
	}
	slices.Sort(all)
	return all[len(all)/2], len(all), counts, nil
}

// times measures the device's units. Nothing is judged by them.
func (t *test) times(ctx context.Context) error {
	if err := t.begin("times"); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(7, 1))
	for i, mem := 0, device.View[uint32](t.mem, layerAt, layerBytes/4); i < len(mem); i++ {
		mem[i] = r.Uint32() & 0xbbffbbff // fp16 below 2
	}
	ping, runs, _, err := t.measure(ctx, []device.Packet{packet(device.OpPing)})
	if err != nil || runs == 0 {
		return err
	}
	t.add(RoundTrip, 0, 1e6*ping.Seconds(), "µs", runs)
	for _, part := range []func(context.Context, time.Duration) error{t.copies, t.products, t.softmax, t.layer} {
		if err := part(ctx, ping); err != nil || t.lost != nil {
			return err
		}
	}
	return nil
}

func (t *test) add(name string, of int, value float64, unit string, runs int) {
	t.r.Times = append(t.r.Times, Time{name, of, value, unit, runs})
}

// beside returns the seconds of a run without a round trip's.
func beside(took, ping time.Duration) float64 { return max(took-ping, time.Nanosecond).Seconds() }

// copies measures DMA.
func (t *test) copies(ctx context.Context, ping time.Duration) error {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20, 4 << 20} {
		if err := t.begin("times, copies of %d bytes", size); err != nil {
			return err
		}
		var packets []device.Packet
		for at := 0; at < 4<<20; at += size {
			packets = append(packets, packet(device.OpCopy, uint32(at), uint32(layerAt+at), uint32(size)))
		}
		took, runs, _, err := t.measure(ctx, packets)
		if err != nil || runs == 0 {
			return err
		}
		t.add(DMA, size, 4<<20/beside(took, ping)/1e9, "GB/s", runs)
	}
	return nil
}

// products measures the tile unit: 128 rows of weights of some tiles of columns, by 32 rows, as often as
// 64 tiles of columns take.
func (t *test) products(ctx context.Context, ping time.Duration) error {
	const rows, act, out, columns = 4, 1 << 20, 6 << 20, 7 << 20
	for k := 1; k <= 32; k *= 2 {
		if err := t.begin("times, the tile unit with %d tiles", k); err != nil {
			return err
		}
		packets := []device.Packet{packet(device.OpCopy, 0, layerAt, rows*32*layout.TileBytes), packet(device.OpCopy, act, layerAt, 32*layout.TileBytes)}
		for range 64 / k {
			packets = append(packets, packet(device.OpTileMul, out, 0, act, uint32(k), 0, 0, 0, rows, 1, uint32(layout.F16(1.0/1024)), columns))
		}
		took, runs, _, err := t.measure(ctx, packets)
		if err != nil || runs == 0 {
			return err
		}
		t.add(TileUnit, k, 2*32*32*32*rows*64/beside(took, ping)/1e9, "GFLOPS", runs)
	}
	return nil
}

// softmax measures gathers: of 32 rows of scores as long as a gather's latency does not show beside others.
func (t *test) softmax(ctx context.Context, ping time.Duration) error {
	const keys, scores, diag = 32, 1 << 20, 4 << 20
	if err := t.begin("times, gathers of softmax"); err != nil {
		return err
	}
	states := device.View[uint32](t.mem, layerAt, layout.Tile*ref.StateWords)
	for i := range layout.Tile {
		clear(states[i*ref.StateWords:][:ref.StateWords])
		states[i*ref.StateWords+ref.StateMax], states[i*ref.StateWords+ref.StateValid] = 0xfbff, keys*layout.Tile
	}
	packets := []device.Packet{packet(device.OpExpTable, 0), packet(device.OpCopy, scores, layerAt+1<<20, keys*layout.TileBytes)}
	idle, runs, _, err := t.measure(ctx, packets)
	if err != nil || runs == 0 {
		return err
	}
	took, runs, _, err := t.measure(ctx, append(packets, packet(device.OpSoftmax, scores, 0, layerAt, diag, 1, keys)))
	if err != nil || runs == 0 {
		return err
	}
	t.add(Gathers, 0, 1e9*beside(took, idle)/(keys*layout.TileBytes/128), "ns", runs)
	return nil
}

// LayerProducts are the rows and columns of a layer of BitNet-2B: q, k, v, o, gate, up and down, with a scale a row
// in two bits.
var LayerProducts = []struct{ M, K int }{{2560, 2560}, {640, 2560}, {640, 2560}, {2560, 2560}, {6912, 2560}, {6912, 2560}, {2560, 6912}}

// layerBytes holds their weights, a row that they multiply, and its sums.
const layerBytes = (2*2560*2560+2*640*2560+3*6912*2560)/4 + 1<<20

// layer measures lookups, as a token's.
func (t *test) layer(ctx context.Context, ping time.Duration) error {
	const x, y, tables, scratch = layerAt + layerBytes - 1<<20, layerAt + layerBytes - 1<<19, 0, 1 << 20
	const strips, cols, workers = 4, 256, 4
	if err := t.begin("times, %s", BitNetLayer); err != nil {
		return err
	}
	for i := range device.View[int16](t.mem, x, 6912) {
		device.View[int16](t.mem, x, 6912)[i] = int16(i*37%(2*device.MaxActivation) - device.MaxActivation)
	}
	var packets []device.Packet
	at, before := layerAt, 0
	for _, p := range LayerProducts {
		if p.K != before {
			packets = append(packets, packet(device.OpPrecompute, tables, 1, x, uint32(p.K), 0))
			before = p.K
		}
		packets = append(packets, packet(device.OpGEMV, y, uint32(at), tables, 1, 0, 0, uint32(p.M), uint32(p.K), 2, uint32(p.K), 1, 1, scratch, device.GEMVTiles(strips, workers), cols))
		at += p.M * p.K / 4
	}
	took, runs, counts, err := t.measure(ctx, packets)
	if err != nil || runs == 0 {
		return err
	}
	seconds := beside(took, ping)
	t.add(BitNetLayer, 0, 1e3*seconds, "ms", runs)
	if counts.Packets > 0 {
		t.add(Lookups, 0, float64(counts.Packets)/seconds/1e9, "packets a ns", runs)
	}
	return nil
}

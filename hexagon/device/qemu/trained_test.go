package qemu

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/models/embedded"
)

var update = flag.Bool("update", false, "record the counted packets of hexagon/dsp anew")

// put lays a matrix into memory.
func put(a *arena, w *layout.Weights) (codes, scales, offsets uint32) {
	codes = a.bytes(w.Codes, device.Align)
	if w.Scales != nil {
		scales = a.int16s(w.Scales)
	}
	if w.Offsets != nil {
		offsets = a.int16s(w.Offsets)
	}
	return codes, scales, offsets
}

// multiply runs both paths of a matrix, lookup and tiles, and compares them with their
// definitions.
func multiply(t *testing.T, d *Device, w *layout.Weights, x []int16) {
	a, behind := &arena{d.Memory(), device.Align}, &arena{d.Memory(), device.TCMBytes}
	at := a.int16s(x)
	codes, scales, offsets := put(behind, w)
	m, k := uint32(w.M), uint32(w.K)
	tables, y := a.alloc(device.TableStride(w.K, false), 128), a.alloc(4*w.M, 128)
	values, tiles := a.uint16s(w.Table()), a.alloc(4*w.K/32*2048, 128)
	form, b := uint32(0), uint32(w.B)
	if w.InBytes() {
		form = 1
	}
	if w.Values != nil {
		b = a.bytes(w.ByteValues(), device.Align)
	}
	format := []uint32{uint32(w.Bits), uint32(w.Group), form}
	if w.Integers() {
		both(t, d, packet(device.OpPrecompute, tables, 1, at, k, form),
			multiplication(y, codes, tables, 1, scales, offsets, m, k, uint32(w.Bits), uint32(w.Group), uint32(w.A), b))
	}
	both(t, d, packet(device.OpDequant, append([]uint32{tiles, codes, scales, offsets, values, m/128 - 1, 0, k / 64, k}, format...)...))
}

func TestTrainedWeightsEqualTheirDefinition(t *testing.T) {
	d := open(t, Options{KeepTCM: true})
	f, err := embedded.Open(embedded.Default)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(9, 1))
	for _, name := range []string{"token_embd.weight", "blk.0.ffn_down.weight", "blk.1.attn_q.weight"} {
		e := f.Tensor(name)
		dense := make([]float32, e.Len())
		if err := e.Dequantize(dense, 0); err != nil {
			t.Fatal(err)
		}
		rows := layout.Rows{Rows: min(e.Rows(), 256), Cols: e.Cols(), Row: func(m int, dst []float32) { copy(dst, dense[m*e.Cols():]) }}
		for format, what := range map[string]layout.Format{
			"ternary": layout.Ternary, "Q4_0": layout.Q4_0, "NF4": layout.NF4, "MXFP4": layout.MXFP4, "IQ4_NL": layout.IQ4_NL, "Q8_0": layout.Q8_0, "W2": {Bits: 2, A: 1, Group: 64, Offsets: true},
			"W1": layout.Binary, "W4": {Bits: 4, A: 2, B: 15, Group: 128},
		} {
			t.Run(name+" "+format, func(t *testing.T) {
				w, err := layout.Quantize(rows, what)
				if err != nil {
					t.Fatal(err)
				}
				x := make([]int16, w.K)
				copy(x, random16(r, w.Cols, device.MaxActivation))
				multiply(t, d, w, x)
			})
		}
	}
}

const recorded = "testdata/packets.txt"

// The counts are architectural: whatever machine emulates, they are these, until a
// kernel or its compiler changes.
func TestCountsOfPacketsAreAsRecorded(t *testing.T) {
	lines := []string{"# operation, packets, instructions, instructions of the vector unit; then packets for each 128 bytes of weights"}
	for _, c := range countEach(t, open(t, Options{KeepTCM: true, Workers: 1})) {
		line := fmt.Sprintf("%s: %d %d %d", c.what, c.Packets, c.Instructions, c.Vector)
		if c.weights > 0 {
			line += fmt.Sprintf("; %.2f", float64(c.Packets)*128/float64(c.weights))
		}
		lines = append(lines, line)
	}
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(recorded, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("counted\n%s\nrecorded (go test -run Counts -update records them anew)\n%s", got, want)
	}
}

// counted holds the cost of a packet.
type counted struct {
	what    string
	weights int // bytes; 0: it has none
	device.Counts
}

// countEach counts a packet of each operation and format.
func countEach(t *testing.T, d *Device) (all []counted) {
	r := rand.New(rand.NewPCG(1, 2))
	const m, k = 512, 1024
	record := func(what string, weights int, p device.Packet) {
		t.Helper()
		c, err := d.Run(t.Context(), []device.Packet{p})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, counted{what, weights, c})
	}
	a := &arena{d.Memory(), 1 << 17}
	x := a.int16s(random16(r, k, device.MaxActivation))
	tables, y, values := a.alloc(4*device.TableStride(k, false), 128), a.alloc(4*4*m, 128), a.uint16s(randomHalves(r, 16))
	ddr := &arena{d.Memory(), device.TCMBytes}
	codes, scale, offset := ddr.bytes(randomBytes(r, m*k/2), 128), ddr.int16s(scales(r, m*k/32, false)), ddr.int16s(scales(r, m*k/32, false))
	tiles, states, diag := a.alloc(8*8*2048, 128), a.alloc(32*device.StateBytes, 128), a.alloc(2048, 128)
	record("precompute 1024", 0, packet(device.OpPrecompute, tables, 1, x, k))
	for _, bits := range []uint32{1, 2, 4} {
		for _, group := range []uint32{32, 64, 128, k} {
			for _, o := range []uint32{0, offset} {
				with := ""
				if o != 0 {
					with = " with offsets"
				}
				if o != 0 && group == k {
					continue
				}
				record(fmt.Sprintf("gemv W%d group %d%s, 512x1024", bits, group, with), m*k*int(bits)/8,
					packet(device.OpGEMV, y, codes, tables, 1, scale, o, m, k, bits, group, 1, 1, 4<<20, 2, 512))
				if group == k || group == 64 && o == 0 {
					record(fmt.Sprintf("gemv W%d group %d, 4 rows, 512x1024", bits, group), m*k*int(bits)/8,
						packet(device.OpGEMV, y, codes, tables, 4, scale, o, m, k, bits, group, 1, 1, 4<<20, 2, 512))
				}
				record(fmt.Sprintf("dequant W%d group %d%s, 128x512", bits, group, with), 128*512*int(bits)/8,
					packet(device.OpDequant, tiles, codes, scale, o, values, 1, 0, 8, k, bits, group))
			}
		}
	}
	for _, bits := range []uint32{1, 2, 4} {
		record(fmt.Sprintf("byte tiles W%d, 128x512", bits), 128*512*int(bits)/8, packet(device.OpByteTiles, tiles, codes, 8, bits))
	}
	wide, listed := ddr.bytes(randomBytes(r, m*k), 128), a.bytes(randomBytes(r, 16), 128)
	for _, form := range []struct{ bits, one, b uint32 }{{8, 1, layout.ByteZero}, {4, 0, listed}} {
		record(fmt.Sprintf("gemv W%d in bytes, group 32, 512x1024", form.bits), m*k*int(form.bits)/8,
			packet(device.OpGEMV, y, wide, tables, 1, scale, 0, m, k, form.bits, 32, form.one, form.b, 4<<20, 2, 512))
		record(fmt.Sprintf("dequant W%d in bytes, group 32, 128x512", form.bits), 128*512*int(form.bits)/8,
			packet(device.OpDequant, tiles, wide, scale, 0, values, 1, 0, 8, k, form.bits, 32, 1))
	}
	groups := randomBytes(r, 64*layout.SuperGroupBytes)
	for i := range groups {
		groups[i] &^= 0x40
	}
	record("vlut16 64 super-groups", 64*layout.SuperGroupBytes, packet(device.OpVLUT16, tiles, a.bytes(groups, 16), 64, values))
	record("exp table", 0, packet(device.OpExpTable, 1<<16))
	for i := range 32 {
		copy(device.View[uint32](d.Memory(), states+uint32(i*device.StateBytes), 2), []uint32{0xfbff, 8*32 - uint32(i)})
	}
	clear(d.Memory()[tiles:][:8*2048])
	record("softmax 32x256", 0, packet(device.OpSoftmax, tiles, 1<<16, states, diag, 1, 8))
	record("copy 64 KiB", 0, packet(device.OpCopy, tiles, codes, 1<<16))
	record("ping", 0, packet(device.OpPing))
	return all
}

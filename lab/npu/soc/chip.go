// Package soc models the time and energy that the NPUs of Snapdragon chips need. A few
// constants are fitted to what papers measured, and what else they measured says how far the
// model is off (package npu lists all of it). Nothing in it was measured on a device by this
// project.
//
//	Chip (what the hardware has, each number with its source)
//	Model (matrices, heads)          ──▶ Chip.Step ──▶ Cost (seconds of each unit)
//	Work (rows and contexts of a step)
//
// A step has the packets of a step of BitNet-2B that executed, with counts that are scaled to the model's sizes, and
// costs Chip.Request beside. Sampling is not in it. A kernel by itself takes as long as its slowest unit: DMA, vector
// threads or the tile unit; a product over tiles also fills and drains its pipeline.
package soc

import (
	"fmt"
	"strings"

	"github.com/lutra-lm/lutra/hexagon/device/fastrpc"
)

// Source says where a number is from.
type Source string

// The sources.
const (
	TMan     Source = "T" // measured, in the T-MAN paper
	Scaling  Source = "S" // measured, in "Scaling LLM Test-Time Compute with Mobile NPU on Smartphones"
	Others   Source = "O" // measured, by a public program that the note names
	Measured Source = "M" // measured by lutra npu selftest, of the report that a plan was given
	Emulated Source = "E" // counted by the emulator that runs this project's kernels
	Fitted   Source = "F" // so that the model gives a figure that a paper measured
	Assumed  Source = "A" // not published: an input
)

// Number is a constant of the model.
type Number struct {
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Source Source  `json:"source"`
	Note   string  `json:"note,omitempty"`
}

// Chip describes one SoC to the model.
type Chip struct {
	Name string `json:"name"` // as Qualcomm writes it
	ID   string `json:"id"`   // as flags take it
	Arch string `json:"arch"` // of the NPU

	Threads         Number `json:"threads"`           // with vector registers
	Clock           Number `json:"clock"`             // of a thread
	CyclesPerPacket Number `json:"cycles_per_packet"` // of vector code, stalls included
	GatherPackets   Number `json:"gather_packets"`    // latency of a vgather, by thread
	Barrier         Number `json:"barrier"`           // what an operation that threads share takes beside its longest shard

	DMA        Number `json:"dma"`         // DDR to TCM
	L2Fetch    Number `json:"l2fetch"`     // DDR to L2 by prefetch, for what falls back to it
	VectorLoad Number `json:"vector_load"` // DDR to registers through L2, without prefetch
	TileUnit   Number `json:"tile_unit"`   // fp16, operands in TCM
	TileShare  Number `json:"tile_share"`  // of that rate, which products with weights that come in tiles reach
	ByteRate   Number `json:"byte_rate"`   // of tiles of bytes, relative to fp16's
	ByteRead   Number `json:"byte_read"`   // of the sums of a tile of 64×32
	Request    Number `json:"request"`     // a message to the NPU and back

	TCM       Number `json:"tcm"`
	Addresses Number `json:"addresses"` // virtual memory of one session

	HostBandwidth Number `json:"host_bandwidth"` // of the CPU, for what stays there
	HostCompute   Number `json:"host_compute"`   // of many rows
	HostRow       Number `json:"host_row"`       // of one row

	PrefillPower Number `json:"prefill_power"` // of the whole device
	DecodePower  Number `json:"decode_power"`
}

// gen3 is the chip that both papers measure; the others differ where notes say so.
var gen3 = Chip{
	Name: "Snapdragon 8 Gen 3", ID: "8gen3", Arch: "V75",
	Threads:         Number{4, "threads", TMan, "Table 2 measures four; both papers say 4 to 6"},
	Clock:           Number{1.22, "GHz", Fitted, "T-MAN §6.5.1: LoadFull takes 4.9 times as long as lookups"},
	CyclesPerPacket: Number{1, "cycles", Assumed, "the clock is fitted with it: 1.22 packets a nanosecond"},
	GatherPackets:   Number{24, "packets", Scaling, "§5.2.1: 24 to 48; the bound hides them behind other threads"},
	Barrier:         Number{1, "µs", Assumed, "threads poll for the next operation; waking those that sleep takes longer"},
	DMA:             Number{59, "GB/s", TMan, "Table 2; [S] Table 2 has 60"},
	L2Fetch:         Number{32, "GB/s", TMan, "Table 2, four threads"},
	VectorLoad:      Number{20, "GB/s", TMan, "Table 2, four threads"},
	TileUnit:        Number{12032.54, "GFLOPS", Scaling, "Table 2, 1024×1024×1024"},
	TileShare:       Number{0.46, "of the tile unit", Fitted, "T-MAN §6.5.2: one stage after the other takes 1.5 × 1.1 times the product alone"},
	ByteRate:        Number{2.05, "of fp16's", Others, "tools/hmx-bench of GrigoryEvko/qwen-mobile, on V79"},
	ByteRead:        Number{533, "cycles", Others, "the same: 711 for four planes of bytes, of which three are read"},
	Request:         Number{0.1, "ms", Assumed, "a message through shared memory that a thread polls for, and its answer"},
	TCM:             Number{8 << 20, "bytes", TMan, "§2.3; [S] §3.1.2"},
	Addresses:       Number{float64(fastrpc.MostMemory("V75")), "bytes", Others, "what ggml-hexagon maps, of 32-bit virtual addresses ([S] §7.2.2)"},
	HostBandwidth:   Number{40, "GB/s", Assumed, "of the CPU cluster"},
	HostCompute:     Number{175, "GFLOPS", Fitted, "T-MAN Table 3: bitnet.cpp computes prompts at 8.22 W and 0.196 J/token"},
	HostRow:         Number{81, "GFLOPS", Fitted, "T-MAN Table 3: bitnet.cpp decodes at 8.22 W and 0.490 J/token"},
	PrefillPower:    Number{5.01, "W", TMan, "Table 3, BitNet-2B, whole device"},
	DecodePower:     Number{4.91, "W", TMan, "Table 3, BitNet-2B, whole device; [S] §7.2.3 has below 5 W at 1.5B, 4.3 W at 3B"},
}

// Chips returns the modelled SoCs, oldest first.
func Chips() []Chip {
	gen2, elite, elite5 := gen3, gen3, gen3
	gen2.Name, gen2.ID, gen2.Arch = "Snapdragon 8 Gen 2", "8gen2", "V73"
	gen2.memory(8400)
	gen2.tiles(1/1.98, "8 Gen 3 is announced as up to 98 % faster")
	gen2.Addresses = Number{float64(fastrpc.MostMemory(gen2.Arch)), "bytes", Scaling, "§7.2.2: 2 GiB on older NPUs"}

	elite.Name, elite.ID, elite.Arch = "Snapdragon 8 Elite", "elite", "V79"
	elite.memory(10600)
	elite.tiles(1.45, "announced as up to 45 % faster than 8 Gen 3")
	elite.threads(6)

	elite5.Name, elite5.ID, elite5.Arch = "Snapdragon 8 Elite Gen 5", "elite5", "V81"
	elite5.memory(10600)
	elite5.tiles(1.45*1.37, "announced as up to 37 % faster than 8 Elite")
	elite5.threads(6)
	list := []Chip{gen2, gen3, elite, elite5}
	for i := range list {
		if c := &list[i]; c.ID != gen3.ID {
			c.derived()
		}
	}
	return list
}

// memory scales the bandwidths with the transfers of the memory, in MT/s.
func (c *Chip) memory(transfers float64) {
	for _, n := range []*Number{&c.DMA, &c.L2Fetch, &c.VectorLoad, &c.HostBandwidth} {
		n.Value *= transfers / 9600
		n.Source, n.Note = Assumed, fmt.Sprintf("8 Gen 3's, by the memory: LPDDR5X-%.0f for 9600", transfers)
	}
}

func (c *Chip) tiles(factor float64, note string) {
	c.TileUnit.Value *= factor
	c.TileUnit.Source, c.TileUnit.Note = Assumed, "8 Gen 3's, by the NPU's: "+note
}

func (c *Chip) threads(n float64) {
	c.Threads = Number{n, "threads", Assumed, "both papers say 4 to 6"}
}

// derived marks what is taken over from 8 Gen 3.
func (c *Chip) derived() {
	for _, n := range []*Number{&c.Threads, &c.GatherPackets, &c.Barrier, &c.Clock, &c.TileShare, &c.ByteRate, &c.ByteRead, &c.Request, &c.PrefillPower, &c.DecodePower, &c.HostCompute, &c.HostRow} {
		if n.Source != Assumed {
			n.Source, n.Note = Assumed, "as on 8 Gen 3"
		}
	}
}

// IDs lists the chips' IDs.
func IDs() (ids []string) {
	for _, c := range Chips() {
		ids = append(ids, c.ID)
	}
	return ids
}

// Named returns the chip with that ID.
func Named(id string) (Chip, error) {
	for _, c := range Chips() {
		if c.ID == id {
			return c, nil
		}
	}
	return Chip{}, fmt.Errorf("there is no chip %.40q (have %s)", id, strings.Join(IDs(), ", "))
}

// Numbers returns the chip's constants with their names, in the order of documents.
func (c *Chip) Numbers() []NamedNumber {
	return []NamedNumber{
		{"vector threads", c.Threads}, {"clock", c.Clock}, {"cycles per packet", c.CyclesPerPacket}, {"vgather", c.GatherPackets}, {"a barrier", c.Barrier},
		{"DMA", c.DMA}, {"l2fetch", c.L2Fetch}, {"vector load", c.VectorLoad}, {"tile unit", c.TileUnit}, {"tile unit, in use", c.TileShare},
		{"bytes", c.ByteRate}, {"reading their sums", c.ByteRead},
		{"a request", c.Request},
		{"TCM", c.TCM}, {"addresses", c.Addresses}, {"CPU bandwidth", c.HostBandwidth}, {"CPU compute", c.HostCompute}, {"CPU, one row", c.HostRow},
		{"power, prefill", c.PrefillPower}, {"power, decode", c.DecodePower},
	}
}

// NamedNumber is a constant with its name.
type NamedNumber struct {
	Name string `json:"name"`
	Number
}

// Route is the way of bytes from DDR.
type Route string

// The routes, fastest first. A device without user DMA falls back to the others.
const (
	ByDMA     Route = "dma"
	ByL2Fetch Route = "l2fetch"
	ByLoad    Route = "load"
)

// Routes lists them.
func Routes() []string { return []string{string(ByDMA), string(ByL2Fetch), string(ByLoad)} }

// Bandwidth returns the bandwidth of route r, in bytes a second.
func (c *Chip) Bandwidth(r Route) float64 {
	switch r {
	case ByL2Fetch:
		return c.L2Fetch.Value * 1e9
	case ByLoad:
		return c.VectorLoad.Value * 1e9
	}
	return c.DMA.Value * 1e9
}

// vector returns the seconds that packets take on all vector threads.
func (c *Chip) vector(packets float64) float64 { return c.thread(packets) / c.Threads.Value }

// thread returns the seconds that packets take on one thread.
func (c *Chip) thread(packets float64) float64 {
	return packets * c.CyclesPerPacket.Value / (c.Clock.Value * 1e9)
}

// tileSeconds returns the time of a product of n rows, padded to whole tiles.
func (c *Chip) tileSeconds(m, k, n int) float64 {
	return 2 * float64(up(m, 32)) * float64(up(k, 32)) * float64(up(n, 32)) / (c.TileUnit.Value * c.TileShare.Value * 1e9)
}

// byteSeconds returns the time of a product of n rows in int8: an instruction multiplies 64 rows of weights.
func (c *Chip) byteSeconds(m, k, n int) float64 {
	reads := float64(up(m, 64) / 64 * (up(n, 32) / 32))
	return c.tileSeconds(up(m, 64), k, n)/c.ByteRate.Value + reads*c.ByteRead.Value/(c.Clock.Value*1e9)
}

func up(n, unit int) int { return (n + unit - 1) / unit * unit }

package soc

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/lutra-lm/lutra/lab/npu/timeline"
)

// executed has the packets of BitNet-2B's steps in the emulated device. A test of package npu records them.
//
//go:embed steps.txt
var executed string

// Step names a step that executed: of so many sequences, the rows of each, and how many tokens each then has.
type Step struct{ Batch, Rows, Context int }

// Executed is a step of a model. Begin and End have one layer together, and each further layer has Layer's packets.
type Executed struct {
	Begin, Layer, End []timeline.Work
}

var steps = sync.OnceValues(func() (map[Step]*Executed, error) { return parseSteps(executed) })

func parseSteps(text string) (map[Step]*Executed, error) {
	all := map[Step]*Executed{}
	var x *Executed
	var of *[]timeline.Work
	var lines []string
	flush := func() (err error) {
		if of != nil {
			*of, err = timeline.Read(lines)
		}
		lines = nil
		return err
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		var s Step
		part := map[string]bool{"begin": true, "layer": true, "end": true}[line]
		n, _ := fmt.Sscanf(line, "step %d %d %d", &s.Batch, &s.Rows, &s.Context)
		if n != 3 && !part {
			lines = append(lines, line)
			continue
		}
		if err := flush(); err != nil {
			return nil, err
		}
		switch {
		case n == 3:
			x, of = &Executed{}, nil
			all[s] = x
		case x == nil:
			return nil, errors.New("soc: a part of no step")
		case line == "begin":
			of = &x.Begin
		case line == "layer":
			of = &x.Layer
		default:
			of = &x.End
		}
	}
	return all, flush()
}

// ExecutedStep returns what a step of BitNet-2B took.
func ExecutedStep(s Step) (*Executed, error) {
	all, err := steps()
	if err != nil {
		return nil, err
	}
	x, ok := all[s]
	if !ok {
		return nil, fmt.Errorf("soc: no step of %d sequences, %d rows at %d tokens has executed", s.Batch, s.Rows, s.Context)
	}
	return x, nil
}

// Whole returns the packets of a step of so many layers, of which Begin and End have one.
func (x *Executed) Whole(layers int) []timeline.Work {
	list := slices.Clone(x.Begin)
	for range layers - 1 {
		list = append(list, x.Layer...)
	}
	return append(list, x.End...)
}

// Rates returns what packets, barriers, bytes and products of tiles take.
func (m *Machine) Rates() timeline.Rates {
	return timeline.Rates{Packet: m.thread(1), Barrier: m.Barriers(1), Byte: m.load(1<<20) / (1 << 20), Product: m.tileSeconds(32, 32, 32),
		ByteProduct: m.tileSeconds(32, 32, 32) / m.ByteRate.Value, Read: m.ByteRead.Value / (m.Clock.Value * 1e9)}
}

// Run returns the time of packets that executed, with a request and its answer.
func (m *Machine) Run(list []timeline.Work) Cost {
	b := timeline.Run(list, m.Rates())
	return Cost{Seconds: b.Total + m.Request.Value/1e3, DMA: b.DMA, Vector: b.Vectors, Tiles: b.Tiles}
}

// Rest counts a layer beside products and softmax: packets of each operation's longest shard, and barriers.
type Rest struct {
	Packets  float64 // of one row: what does not grow with numbers
	Number   float64 // packets for each number of a row that products read or make
	Barriers float64
	// Of attention, for each sequence and head of keys; Collect for each token of the context, too.
	AttendPackets, AttendBarriers, Collect float64
}

// The heads of keys of BitNet-2B, the tokens of its executed steps, and the numbers that a layer's products read and make.
const (
	bitnetHeads   = 5
	bitnetContext = 1024 + 64
	bitnetNumbers = 2560 + 2560 + 2560 + 6912 + 2560 + 2*640 + 2560 + 2*6912 + 2560 // inputs, then outputs
)

// rest takes from executed steps of one row and of eight what Rest says.
func rest() (Rest, error) {
	var r Rest
	var rows [2]float64
	for i, batch := range []int{1, 8} {
		x, err := ExecutedStep(Step{batch, 1, bitnetContext})
		if err != nil {
			return r, err
		}
		for _, w := range x.Layer {
			switch w.Op {
			case "products_by_lookups", "lookup_tables", "tiles_of_codes", "softmax":
			case "RMS_norm", "quantization", "scaling_of_sums", "addition_of_rows", "rotary_embeddings", "gated_units":
				if rows[i] += w.Packets; i == 0 {
					r.Barriers += w.Barriers
				}
			case "collection_of_keys":
				if i == 0 {
					r.Collect += w.Packets / bitnetHeads / bitnetContext
				}
			default:
				if i == 0 {
					r.AttendPackets, r.AttendBarriers = r.AttendPackets+w.Packets/bitnetHeads, r.AttendBarriers+w.Barriers/bitnetHeads
				}
			}
		}
	}
	r.Number = (rows[1] - rows[0]) / 7 / bitnetNumbers
	r.Packets = rows[0] - r.Number*bitnetNumbers
	return r, nil
}

// layerRest returns the cost of what a layer of rows rows has beside products and attention.
func (m *Machine) layerRest(x *Model, rows int) Cost {
	numbers, read := 0, map[string]bool{}
	for _, mx := range x.Matrices {
		if mx.Input == Logits || mx.Count == 0 {
			continue
		}
		if numbers += mx.M; !read[mx.Input] {
			read[mx.Input] = true
			numbers += mx.K
		}
	}
	r := &m.Packets.Rest
	s := m.thread(r.Packets+r.Number*float64(numbers*rows)) + m.Barriers(r.Barriers)
	return Cost{Vector: s, Seconds: s}
}

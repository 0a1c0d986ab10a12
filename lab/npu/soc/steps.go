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

// time returns the time of packets that executed.
func (m *Machine) time(list []timeline.Work) Cost {
	b := timeline.Run(list, m.Rates())
	return Cost{Seconds: b.Total, DMA: b.DMA, Vector: b.Vectors, Tiles: b.Tiles}
}

// Run returns the time of packets that executed, with a request and its answer.
func (m *Machine) Run(list []timeline.Work) Cost {
	c := m.time(list)
	c.Seconds += m.Request.Value / 1e3
	return c
}

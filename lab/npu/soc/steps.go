package soc

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/lab/npu/timeline"
)

// executed has the packets of steps in the emulated device: BitNet-2B's, by which other models are scaled, and some of theirs.
// A test of package npu records them.
//
//go:embed steps.txt
var executed string

// Step names a step that executed: its model, of how many sequences it is, the rows of each, how many tokens each then has,
// and the path of its products. Of ByBytes a layer's products alone executed.
type Step struct {
	Model                string
	Batch, Rows, Context int
	Path                 Path
}

func (s Step) String() string {
	return fmt.Sprintf("step %s %d %d %d %s", s.Model, s.Batch, s.Rows, s.Context, s.Path)
}

// Executed is a step of a model. Begin and End have one layer together, and each further layer has Layer's packets.
type Executed struct {
	Begin, Layer, End []timeline.Work
}

var steps = sync.OnceValues(func() (map[Step]*Executed, error) { return parseSteps(executed) })

// WriteSteps writes steps as Executed's file has them.
func WriteSteps(w io.Writer, list []Step, of func(Step) *Executed) error {
	for _, s := range list {
		if _, err := fmt.Fprintln(w, s); err != nil {
			return err
		}
		x := of(s)
		for _, part := range []struct {
			name string
			list []timeline.Work
		}{{"begin", x.Begin}, {"layer", x.Layer}, {"end", x.End}} {
			if len(part.list) == 0 {
				continue
			}
			if _, err := fmt.Fprintln(w, part.name); err != nil {
				return err
			}
			if err := timeline.Write(w, part.list); err != nil {
				return err
			}
		}
	}
	return nil
}

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
		n, _ := fmt.Sscanf(line, "step %s %d %d %d %s", &s.Model, &s.Batch, &s.Rows, &s.Context, &s.Path)
		if n != 5 && !part {
			lines = append(lines, line)
			continue
		}
		if err := flush(); err != nil {
			return nil, err
		}
		switch {
		case n == 5:
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

// ExecutedStep returns what a step took.
func ExecutedStep(s Step) (*Executed, error) {
	all, err := steps()
	if err != nil {
		return nil, err
	}
	x, ok := all[s]
	if !ok {
		return nil, fmt.Errorf("soc: no %v has executed", s)
	}
	return x, nil
}

// ExecutedBatch returns a step of a batch of BitNet-2B, a row each. Layers and head go by the paths that package hexagon takes for so
// many rows.
func ExecutedBatch(batch int) (*Executed, error) {
	of := func(f layout.Format) (*Executed, error) {
		path := ByTiles
		if batch <= hexagon.LookupRows(f, false) {
			path = ByLookup
		}
		return ExecutedStep(Step{bitnet.Name, batch, 1, ExecutedContext, path})
	}
	layers, err := of(layout.Ternary)
	if err != nil {
		return nil, err
	}
	head, err := of(layout.Q4_0)
	if err != nil {
		return nil, err
	}
	return &Executed{layers.Begin, layers.Layer, head.End}, nil
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

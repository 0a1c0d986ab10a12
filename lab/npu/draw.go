package npu

import (
	"fmt"
	"io"
	"strconv"

	"github.com/lutra-lm/lutra/hexagon/pipeline"
	"github.com/lutra-lm/lutra/lab/chart"
	"github.com/lutra-lm/lutra/lab/npu/timeline"
)

// SVG draws the timeline of the largest matrix, pipelined and not (T-MAN, Figures 9 and
// 17), beside the modelled throughput of batches (TTS, Figure 11).
func (p *Plan) SVG(w io.Writer) error {
	const left, right, height = 454, 312, 241 // points
	s := chart.NewSheet(left+right, height)
	s.Draw(p.Timeline.chart(), 0, 0, left, height)
	s.Draw(p.curve(), left, 0, right, height)
	_, err := s.WriteTo(w)
	return err
}

// addJobs draws jobs as boxes: a row for each unit, the tile unit's lowest.
func addJobs(c *chart.Chart, spans []timeline.Span, lowest float64) {
	for _, s := range spans {
		row := lowest + float64(pipeline.Multiply-s.Stage)
		box := chart.Box{A: chart.Point{X: 1e6 * s.Begin, Y: row - 0.38}, B: chart.Point{X: 1e6 * s.End, Y: row + 0.38}}
		c.Fill([]chart.Box{box}, chart.Hues[s.Stage])
		a, b := box.A, box.B
		c.Line([]chart.Point{a, {X: a.X, Y: b.Y}, b, {X: b.X, Y: a.Y}, a}, chart.Stroke{Color: "#ffffff", Width: 0.8})
		c.Label(box, strconv.Itoa(s.Tile))
	}
}

func (t *Timeline) chart() *chart.Chart {
	end := 0.0
	for _, s := range t.apart {
		end = max(end, 1e6*s.End)
	}
	c := &chart.Chart{
		Title: fmt.Sprintf("%s × %d tokens, modelled: the first %d of %d tiles\nin a pipeline (above) and one after the other (below)", t.Matrix, t.Tokens, len(t.First)/3, t.Tiles),
		X:     chart.Axis{Label: "µs, modelled", Max: end, Ticks: chart.Round(0, end)},
		Y:     chart.Axis{Min: -0.6, Max: 5.6},
	}
	for i, unit := range []string{"HMX", "HVX", "DMA", "HMX", "HVX", "DMA"} { // from below
		c.Y.Ticks = append(c.Y.Ticks, chart.Tick{At: float64(i), Label: unit})
	}
	addJobs(c, t.First, 3)
	addJobs(c, t.apart, 0)
	return c
}

func (p *Plan) curve() *chart.Chart {
	c := &chart.Chart{
		Title: fmt.Sprintf("%s, decode at a context of %d", p.Model.Name, p.Options.Context),
		X:     chart.Axis{Label: "batch"}, Y: chart.Axis{Label: "tokens/s, modelled"},
	}
	for i, b := range p.Chips {
		var at []chart.Point
		for _, d := range b.Decode {
			at = append(at, chart.Point{X: float64(d.Tokens), Y: d.TokensPerSecond})
			c.X.Max, c.Y.Max = max(c.X.Max, float64(d.Tokens)), max(c.Y.Max, 1.35*d.TokensPerSecond) // room for the legend
		}
		hue := chart.Hues[i%len(chart.Hues)]
		line, dot := chart.Stroke{Color: hue, Width: 1.5}, chart.Mark{Color: hue, Radius: 2.5}
		if i == len(p.Chips)-1 { // often lies on the one before
			line.Dash = "4 4"
		}
		c.Line(at, line)
		c.Marks(at, dot)
		c.Name(b.Name, line, &dot)
	}
	c.X.Ticks, c.Y.Ticks = chart.Round(0, c.X.Max), chart.Round(0, c.Y.Max)
	return c
}

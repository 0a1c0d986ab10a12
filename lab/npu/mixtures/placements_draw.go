package mixtures

import (
	"fmt"
	"io"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/lab/chart"
	"github.com/lutra-lm/lutra/lab/npu/moecost"
)

// SVG draws the report in the manner of NPUMoE's Figures 14 and 13: time to the first token
// by setting and placement, attention below experts; and time against energy.
func (r *PlacementReport) SVG(w io.Writer) error {
	const left, right, height = 454, 312, 241 // points
	s := chart.NewSheet(left+right, height)
	s.Draw(r.breakdown(), 0, 0, left, height)
	s.Draw(r.tradeOff(), left, 0, right, height)
	_, err := s.WriteTo(w)
	return err
}

// breakdown draws a group of bars for each setting. Prompts differ, so times are by token.
func (r *PlacementReport) breakdown() *chart.Chart {
	c := &chart.Chart{
		Title: fmt.Sprintf("%s on %s, modelled: time to the first token\nby token; attention (pale) and experts", r.Model.Model, r.Machine.Name),
		X:     chart.Axis{Label: "prompt, chunk", Min: -0.6, Max: float64(len(r.Settings)) - 0.4},
		Y:     chart.Axis{Label: "ms a token", Grid: true},
		Aside: 76,
	}
	const bar = 0.2 // of the room of a setting
	bars := len(hexagon.Placements())
	experts, attention := make([][]chart.Box, bars), make([][]chart.Box, bars)
	for i, s := range r.Settings {
		c.X.Ticks = append(c.X.Ticks, chart.Tick{At: float64(i), Label: fmt.Sprintf("%d, %d", s.Prompt, s.Chunk)})
		for k, cost := range s.Costs {
			x := float64(i) + (float64(k)-float64(bars)/2)*bar
			split, top := 1e3*cost.Attention/float64(s.Prompt), 1e3*cost.Seconds/float64(s.Prompt)
			attention[k] = append(attention[k], chart.Box{A: chart.Point{X: x}, B: chart.Point{X: x + 0.9*bar, Y: split}})
			experts[k] = append(experts[k], chart.Box{A: chart.Point{X: x, Y: split}, B: chart.Point{X: x + 0.9*bar, Y: top}})
			c.Y.Max = max(c.Y.Max, 1.05*top)
		}
	}
	for k, name := range hexagon.Placements() {
		c.Fill(attention[k], "#c9c9c9")
		c.Fill(experts[k], chart.Hues[k])
		c.Name(name, chart.Stroke{Color: chart.Hues[k], Width: 5}, nil)
	}
	c.Y.Ticks = chart.Round(0, c.Y.Max)
	return c
}

// tradeOff draws a point for each setting and placement; larger ones take more CPU cycles.
func (r *PlacementReport) tradeOff() *chart.Chart {
	c := &chart.Chart{
		Title: "time and energy, modelled\nlarger: more CPU cycles",
		X:     chart.Axis{Label: "ms a token", Grid: true}, Y: chart.Axis{Label: "mJ a token", Grid: true},
	}
	most := 0.0
	cycles := func(s *Setting, cost moecost.Cost) float64 { return cost.Cycles / float64(s.Prompt) }
	for i := range r.Settings {
		for _, cost := range r.Settings[i].Costs {
			most = max(most, cycles(&r.Settings[i], cost))
		}
	}
	for i := range r.Settings {
		s := &r.Settings[i]
		for k, cost := range s.Costs {
			at := chart.Point{X: 1e3 * cost.Seconds / float64(s.Prompt), Y: 1e3 * cost.PerToken}
			c.X.Max, c.Y.Max = max(c.X.Max, 1.08*at.X), max(c.Y.Max, 1.08*at.Y)
			c.Marks([]chart.Point{at}, chart.Mark{Color: chart.Hues[k], Radius: 2 + 4*cycles(s, cost)/most})
		}
	}
	c.X.Ticks, c.Y.Ticks = chart.Round(0, c.X.Max), chart.Round(0, c.Y.Max)
	return c
}

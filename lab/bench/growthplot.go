package bench

import (
	"io"

	"github.com/lutra-lm/lutra/lab/chart"
)

// growthPanels are the drawing's charts, left to right.
var growthPanels = []struct {
	axis, label, unit string
	value             func(GrowthPoint) float64
}{
	{"batch", "sequences at once", "tokens/s", func(p GrowthPoint) float64 { return p.TokS }},
	{"context", "tokens before", "ms a token", func(p GrowthPoint) float64 { return p.MS }},
	{"threads", "threads", "tokens/s", func(p GrowthPoint) float64 { return p.TokS }},
}

// drawGrowth draws the charts side by side as SVG. Sizes are logarithmic; points with
// a remark have a ring.
func drawGrowth(w io.Writer, points []GrowthPoint) error {
	const width, height = 283, 227 // points
	s := chart.NewSheet(width*float64(len(growthPanels)), height)
	for i, panel := range growthPanels {
		var curves [][]GrowthPoint
		for _, point := range points {
			if point.Axis != panel.axis {
				continue
			}
			if n := len(curves); n == 0 || curves[n-1][0].Series != point.Series {
				curves = append(curves, nil)
			}
			curves[len(curves)-1] = append(curves[len(curves)-1], point)
		}
		if len(curves) == 0 {
			continue
		}
		first := float64(curves[0][0].X)
		c := &chart.Chart{Title: panel.axis, X: chart.Axis{Label: panel.label, Log: true, Min: first, Max: first}, Y: chart.Axis{Label: panel.unit}}
		for k, curve := range curves {
			addGrowth(c, curve, k, panel.value)
		}
		if c.X.Min == c.X.Max {
			c.X.Max *= 2
		}
		c.X.Ticks, c.Y.Ticks = chart.Doubling(c.X.Min, c.X.Max), chart.Round(0, c.Y.Max)
		s.Draw(c, width*float64(i), 0, width, height)
	}
	_, err := s.WriteTo(w)
	return err
}

// addGrowth draws curve number k and widens the axes to hold it.
func addGrowth(c *chart.Chart, curve []GrowthPoint, k int, value func(GrowthPoint) float64) {
	var line, rings []chart.Point
	for _, point := range curve {
		p := chart.Point{X: float64(point.X), Y: value(point)}
		line = append(line, p)
		if point.Remark != "" {
			rings = append(rings, p)
		}
		c.X.Min, c.X.Max, c.Y.Max = min(c.X.Min, p.X), max(c.X.Max, p.X), max(c.Y.Max, 1.2*p.Y) // room for the legend
	}
	hue := chart.Hues[k%3]
	stroke, dot := chart.Stroke{Color: hue, Width: 1}, chart.Mark{Color: hue, Radius: 2.5}
	c.Line(line, stroke)
	c.Marks(line, dot)
	c.Marks(rings, chart.Mark{Shape: chart.Ring, Color: chart.Ink, Radius: 6})
	c.Name(curve[0].Series, stroke, &dot)
}

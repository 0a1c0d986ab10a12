package mixtures

import (
	"fmt"
	"io"
	"math"

	"github.com/lutra-lm/lutra/lab/chart"
	"github.com/lutra-lm/lutra/lab/npu/calibration"
)

// Sizes of a drawing, which has a row of two charts for each data set, in points.
const (
	mapWidth, ratioWidth, rowHeight = 454, 198, 227

	mostDrawn = 4 // data sets
)

// SVG draws a calibration in the manner of NPUMoE's Figure 5: the load of each expert by
// layer, and the imbalance of each layer.
func SVG(w io.Writer, c *calibration.Calibration) error {
	n := min(mostDrawn, len(c.Sets))
	s := chart.NewSheet(mapWidth+ratioWidth, float64(n*rowHeight))
	for i := range n {
		s.Draw(loadChart(c, i), 0, float64(i*rowHeight), mapWidth, rowHeight)
		s.Draw(imbalanceChart(c, i), mapWidth, float64(i*rowHeight), ratioWidth, rowHeight)
	}
	_, err := s.WriteTo(w)
	return err
}

// shades is the number of colours for loads.
const shades = 48

// shade returns the colour of a load of x times the largest: from white to dark blue.
func shade(x float64) string {
	mix := func(a, b float64) uint8 { return uint8(math.Round(a + (b-a)*x)) }
	return fmt.Sprintf("#%02x%02x%02x", mix(255, 8), mix(255, 48), mix(255, 107))
}

// cell returns the box of an expert in the row of its layer, the first at the bottom.
func cell(expert, layer int) chart.Box {
	x, y := float64(expert), float64(layer)
	return chart.Box{A: chart.Point{X: x - 0.5, Y: y - 0.5}, B: chart.Point{X: x + 0.5, Y: y + 0.5}}
}

// loadChart draws the loads of experts, by the mean of their layer.
func loadChart(c *calibration.Calibration, i int) *chart.Chart {
	most := 1.0
	for _, l := range c.Sets[i].Layers {
		most = max(most, l.Imbalance)
	}
	var cells [shades][]chart.Box
	for layer, l := range c.Sets[i].Layers {
		sum := int64(0)
		for _, n := range l.Tokens {
			sum += n
		}
		for e, n := range l.Tokens {
			load := float64(n) * float64(len(l.Tokens)) / float64(sum)
			at := int(math.Round(load / most * (shades - 1)))
			cells[at] = append(cells[at], cell(e, layer))
		}
	}
	out := &chart.Chart{
		Title: fmt.Sprintf("%s, %s: tokens of each expert, prefill\nwhite: none, dark: %.2f times the mean of its layer", name(c.Shape), c.Sets[i].Name, most),
		X:     chart.Axis{Label: "expert", Min: -0.5, Max: float64(c.Shape.Experts) - 0.5, Ticks: chart.Whole(float64(c.Shape.Experts - 1))},
		Y:     layerAxis(c),
	}
	out.Y.Label = "layer"
	for at, boxes := range cells {
		if len(boxes) > 0 {
			out.Fill(boxes, shade(float64(at)/(shades-1)))
		}
	}
	return out
}

func layerAxis(c *calibration.Calibration) chart.Axis {
	return chart.Axis{Min: -0.5, Max: float64(c.Shape.Layers) - 0.5, Ticks: chart.Whole(float64(c.Shape.Layers - 1))}
}

// imbalanceChart draws the imbalances of the layers as bars.
func imbalanceChart(c *calibration.Calibration, i int) *chart.Chart {
	most := 1.0
	for _, set := range c.Sets {
		for _, l := range set.Layers {
			most = max(most, l.Imbalance)
		}
	}
	out := &chart.Chart{Title: "imbalance\n(most by mean)", X: chart.Axis{Label: "r", Max: 1.05 * most, Grid: true, Ticks: chart.Whole(1.05 * most)}, Y: layerAxis(c)}
	var bars []chart.Box
	for layer, l := range c.Sets[i].Layers {
		bars = append(bars, chart.Box{A: chart.Point{Y: float64(layer) - 0.38}, B: chart.Point{X: l.Imbalance, Y: float64(layer) + 0.38}})
	}
	out.Fill(bars, chart.Hues[0])
	return out
}

package bench

import (
	"fmt"
	"image/color"
	"io"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
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
	const width, height = 10 * vg.Centimeter, 8 * vg.Centimeter
	whole := width * vg.Length(len(growthPanels))
	c := vgsvg.New(whole, height)
	for i, panel := range growthPanels {
		p := plot.New()
		p.Title.Text, p.X.Label.Text, p.Y.Label.Text = panel.axis, panel.label, panel.unit
		p.Y.Min = 0
		p.Legend.Top, p.Legend.Left = true, true
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
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, powersOfTwo{}
		for k, curve := range curves {
			if err := addGrowth(p, curve, k, panel.value); err != nil {
				return fmt.Errorf("drawing %s: %w", panel.axis, err)
			}
		}
		if p.X.Min == p.X.Max {
			p.X.Max *= 2
		}
		left := width * vg.Length(i)
		p.Draw(draw.Crop(draw.New(c), left+vg.Points(4), left+width-whole-vg.Points(10), vg.Points(4), -vg.Points(4)))
	}
	_, err := c.WriteTo(w)
	return err
}

func addGrowth(p *plot.Plot, curve []GrowthPoint, k int, value func(GrowthPoint) float64) error {
	line, rings := make(plotter.XYs, len(curve)), plotter.XYs{}
	for i, point := range curve {
		line[i] = plotter.XY{X: float64(point.X), Y: value(point)}
		if point.Remark != "" {
			rings = append(rings, line[i])
		}
	}
	l, dots, err := plotter.NewLinePoints(line)
	if err != nil {
		return err
	}
	hue := []color.Color{color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff}}[k%3]
	l.Color, dots.Color, dots.Shape = hue, hue, draw.CircleGlyph{}
	p.Add(l, dots)
	p.Legend.Add(curve[0].Series, l, dots)
	if len(rings) > 0 {
		ring, err := plotter.NewScatter(rings)
		if err != nil {
			return err
		}
		ring.Shape, ring.Radius = draw.RingGlyph{}, vg.Points(6)
		p.Add(ring)
	}
	return nil
}

// powersOfTwo are the ticks of an axis of sizes.
type powersOfTwo struct{}

func (powersOfTwo) Ticks(lo, hi float64) []plot.Tick {
	var ticks []plot.Tick
	for v := 1; float64(v) <= hi; v *= 2 {
		if float64(v) >= lo {
			ticks = append(ticks, plot.Tick{Value: float64(v), Label: strconv.Itoa(v)})
		}
	}
	return ticks
}

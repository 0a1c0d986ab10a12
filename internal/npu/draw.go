package npu

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

	"github.com/lutra-lm/lutra/hexagon/pipeline"
	"github.com/lutra-lm/lutra/internal/npu/timeline"
)

// hues are those of the evaluation's drawings (Okabe & Ito 2008).
var hues = []color.RGBA{{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff}}

// SVG draws the timeline of the largest matrix, pipelined and not (T-MAN, Figures 9 and
// 17), beside the modelled throughput of batches (TTS, Figure 11).
func (p *Plan) SVG(w io.Writer) error {
	const left, right, height = 16 * vg.Centimeter, 11 * vg.Centimeter, 8.5 * vg.Centimeter
	c := vgsvg.New(left+right, height)
	whole := draw.New(c)
	whole.SetColor(color.White)
	whole.Fill(whole.Rectangle.Path())
	time := p.Timeline.chart()
	curve, err := p.curve()
	if err != nil {
		return fmt.Errorf("drawing: %w", err)
	}
	time.Draw(draw.Crop(whole, vg.Points(6), -right-vg.Points(10), vg.Points(4), -vg.Points(6)))
	curve.Draw(draw.Crop(whole, left+vg.Points(6), -vg.Points(10), vg.Points(4), -vg.Points(6)))
	_, err = c.WriteTo(w)
	return err
}

// bars are jobs as rectangles: a row for each unit of each of the two orders.
type bars struct {
	spans []timeline.Span
	row   float64 // of the tile unit, the lowest
}

// Plot implements plot.Plotter.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, s := range b.spans {
		row := b.row + float64(pipeline.Multiply-s.Stage)
		at := []vg.Point{{X: x(1e6 * s.Begin), Y: y(row - 0.38)}, {X: x(1e6 * s.End), Y: y(row - 0.38)}, {X: x(1e6 * s.End), Y: y(row + 0.38)}, {X: x(1e6 * s.Begin), Y: y(row + 0.38)}}
		c.FillPolygon(hues[s.Stage], at)
		c.StrokeLines(draw.LineStyle{Color: color.White, Width: vg.Points(0.8)}, append(at, at[0]))
		if at[1].X-at[0].X > vg.Points(9) {
			style := p.X.Tick.Label
			style.Color, style.Font.Size, style.XAlign, style.YAlign = color.White, vg.Points(8), draw.XCenter, draw.YCenter
			c.FillText(style, vg.Point{X: (at[0].X + at[1].X) / 2, Y: (at[0].Y + at[2].Y) / 2}, strconv.Itoa(s.Tile))
		}
	}
}

// rowNames label the rows from below.
type rowNames []string

// Ticks implements plot.Ticker.
func (n rowNames) Ticks(_, _ float64) []plot.Tick {
	var ticks []plot.Tick
	for i, name := range n {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: name})
	}
	return ticks
}

func (t *Timeline) chart() *plot.Plot {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s × %d tokens, modelled: the first %d of %d tiles\nin a pipeline (above) and one after the other (below)", t.Matrix, t.Tokens, len(t.First)/3, t.Tiles)
	p.X.Label.Text = "µs, modelled"
	p.Add(bars{t.First, 3}, bars{t.apart, 0})
	end := 0.0
	for _, s := range t.apart {
		end = max(end, s.End)
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1e6*end, -0.6, 5.6
	p.Y.Tick.Marker = rowNames{"HMX", "HVX", "DMA", "HMX", "HVX", "DMA"}
	p.Y.LineStyle.Width, p.Y.Tick.Length = 0, 0
	p.Title.TextStyle.Font.Size, p.X.Label.TextStyle.Font.Size = vg.Points(10), vg.Points(10)
	return p
}

// plain are the usual ticks, with no more digits than a number has.
type plain struct{}

// Ticks implements plot.Ticker.
func (plain) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if t := &ticks[i]; !t.IsMinor() {
			t.Label = strconv.FormatFloat(t.Value, 'g', 4, 64)
		}
	}
	return ticks
}

func (p *Plan) curve() (*plot.Plot, error) {
	c := plot.New()
	c.Title.Text = fmt.Sprintf("%s, decode at a context of %d", p.Model.Name, p.Options.Context)
	c.Title.TextStyle.Font.Size = vg.Points(10)
	c.X.Label.Text, c.Y.Label.Text = "batch", "tokens/s, modelled bound"
	c.Legend.Top, c.Legend.Left, c.Legend.Padding = true, true, vg.Points(2)
	c.Legend.TextStyle.Font.Size, c.X.Label.TextStyle.Font.Size, c.Y.Label.TextStyle.Font.Size = vg.Points(8.5), vg.Points(10), vg.Points(10)
	c.Y.Min, c.X.Min = 0, 0
	c.Y.Tick.Marker = plain{}
	for i, b := range p.Chips {
		var at plotter.XYs
		for _, d := range b.Decode {
			at = append(at, plotter.XY{X: float64(d.Tokens), Y: d.TokensPerSecond})
		}
		line, dots, err := plotter.NewLinePoints(at)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width, dots.Color, dots.Shape = hues[i%len(hues)], vg.Points(1.5), hues[i%len(hues)], draw.CircleGlyph{}
		if i == len(p.Chips)-1 { // often lies on the one before
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(4)}
		}
		c.Add(line, dots)
		c.Legend.Add(b.Name, line, dots)
	}
	c.Y.Max *= 1.35 // room for the legend
	return c, nil
}

package mixtures

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/lutra-lm/lutra/hexagon/experts"
)

// Sizes of a drawing, which has a row of two charts for each data set.
const (
	mapWidth   = 16 * vg.Centimeter
	ratioWidth = 7 * vg.Centimeter
	rowHeight  = 8 * vg.Centimeter
	margin     = 6.0 // points
	drawingDPI = 110 // of the PNG
	mostDrawn  = 4   // data sets
)

// SVG draws a calibration in the manner of NPUMoE's Figure 5: the load of each expert by
// layer, and the imbalance of each layer.
func SVG(w io.Writer, c *experts.Calibration) error {
	canvas := vgsvg.New(size(c))
	var drawing bytes.Buffer
	if err := render(&drawing, c, canvas, canvas); err != nil {
		return err
	}
	// Few readers have the font; these are as wide.
	_, err := w.Write(bytes.ReplaceAll(drawing.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif")))
	return err
}

// PNG is SVG's drawing as an image.
func PNG(w io.Writer, c *experts.Calibration) error {
	width, height := size(c)
	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(drawingDPI))
	return render(w, c, canvas, vgimg.PngCanvas{Canvas: canvas})
}

func size(c *experts.Calibration) (width, height vg.Length) {
	return mapWidth + ratioWidth, vg.Length(min(mostDrawn, len(c.Sets))) * rowHeight
}

func render(w io.Writer, c *experts.Calibration, canvas vg.CanvasSizer, out io.WriterTo) error {
	whole := draw.New(canvas)
	whole.SetColor(color.White)
	whole.Fill(whole.Rectangle.Path())
	n := min(mostDrawn, len(c.Sets))
	for i := range n {
		heat, ratio := loadChart(c, i), imbalanceChart(c, i)
		low, high := vg.Length(n-1-i)*rowHeight+vg.Points(margin), -vg.Length(i)*rowHeight-vg.Points(margin)
		heat.Draw(draw.Crop(whole, vg.Points(margin), -ratioWidth-vg.Points(2*margin), low, high))
		ratio.Draw(draw.Crop(whole, mapWidth, -vg.Points(2*margin), low, high))
	}
	var image bytes.Buffer // the SVG canvas ignores errors of its writer
	if _, err := out.WriteTo(&image); err != nil {
		return fmt.Errorf("drawing: %w", err)
	}
	_, err := w.Write(image.Bytes())
	return err
}

// shades are how many colours loads have.
const shades = 48

// shade is the colour of a load of x times the largest: from white to dark blue.
func shade(x float64) color.Color {
	mix := func(a, b float64) uint8 { return uint8(math.Round(a + (b-a)*x)) }
	return color.RGBA{mix(255, 8), mix(255, 48), mix(255, 107), 255}
}

// heatMap is the loads of experts, by the mean of their layer, as cells: a layer a row,
// the first at the bottom.
type heatMap struct {
	loads [][]float64
	most  float64
}

// Plot implements plot.Plotter. Cells of a colour are one path.
func (h heatMap) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var paths [shades]vg.Path
	for layer, loads := range h.loads {
		for e, load := range loads {
			path := &paths[int(math.Round(load/h.most*(shades-1)))]
			left, right, low, high := x(float64(e)-0.5), x(float64(e)+0.5), y(float64(layer)-0.5), y(float64(layer)+0.5)
			path.Move(vg.Point{X: left, Y: low})
			path.Line(vg.Point{X: right, Y: low})
			path.Line(vg.Point{X: right, Y: high})
			path.Line(vg.Point{X: left, Y: high})
			path.Close()
		}
	}
	for i, path := range paths {
		if len(path) > 0 {
			c.SetColor(shade(float64(i) / (shades - 1)))
			c.Fill(path)
		}
	}
}

// whole are ticks at whole numbers.
type whole struct{}

// Ticks implements plot.Ticker.
func (whole) Ticks(low, high float64) (ticks []plot.Tick) {
	step := 1
	for (high-low)/float64(step) > 10 {
		step *= 2
	}
	for n := 0; float64(n) <= high; n += step {
		ticks = append(ticks, plot.Tick{Value: float64(n), Label: fmt.Sprint(n)})
	}
	return ticks
}

func loadChart(c *experts.Calibration, i int) *plot.Plot {
	h := heatMap{most: 1}
	for _, l := range c.Sets[i].Layers {
		sum := int64(0)
		for _, n := range l.Tokens {
			sum += n
		}
		loads := make([]float64, len(l.Tokens))
		for e, n := range l.Tokens {
			loads[e] = float64(n) * float64(len(loads)) / float64(sum)
		}
		h.loads, h.most = append(h.loads, loads), max(h.most, l.Imbalance)
	}
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s, %s: tokens of each expert, prefill\nwhite: none, dark: %.2f times the mean of its layer", name(c.Shape), c.Sets[i].Name, h.most)
	p.X.Label.Text, p.Y.Label.Text = "expert", "layer"
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.5, float64(c.Shape.Experts)-0.5, -0.5, float64(c.Shape.Layers)-0.5
	p.X.Tick.Marker, p.Y.Tick.Marker = whole{}, whole{}
	p.Add(h)
	style(p)
	return p
}

// bars are the layers' imbalances.
type bars []experts.Loads

// Plot implements plot.Plotter.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, l := range b {
		low, high := y(float64(i)-0.38), y(float64(i)+0.38)
		c.FillPolygon(color.RGBA{0x00, 0x72, 0xb2, 0xff}, []vg.Point{{X: x(0), Y: low}, {X: x(l.Imbalance), Y: low}, {X: x(l.Imbalance), Y: high}, {X: x(0), Y: high}})
	}
}

func imbalanceChart(c *experts.Calibration, i int) *plot.Plot {
	most := 1.0
	for _, set := range c.Sets {
		for _, l := range set.Layers {
			most = max(most, l.Imbalance)
		}
	}
	p := plot.New()
	p.Title.Text = "imbalance\n(most by mean)"
	p.X.Label.Text = "r"
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1.05*most, -0.5, float64(c.Shape.Layers)-0.5
	p.X.Tick.Marker, p.Y.Tick.Marker = whole{}, whole{}
	grid := plotter.NewGrid()
	grid.Horizontal.Width = 0
	p.Add(bars(c.Sets[i].Layers), grid)
	style(p)
	return p
}

func style(p *plot.Plot) {
	p.Title.TextStyle.Font.Size, p.Title.TextStyle.Font.Variant = vg.Points(10), "Sans"
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font.Size, a.Tick.Label.Font.Size = vg.Points(10), vg.Points(9)
		a.Label.TextStyle.Font.Variant, a.Tick.Label.Font.Variant = "Sans", "Sans"
	}
}

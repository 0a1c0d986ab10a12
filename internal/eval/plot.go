package eval

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Size of the drawing.
const (
	plotWidth   = 24 * vg.Centimeter
	plotHeight  = 12 * vg.Centimeter
	legendWidth = 7 * vg.Centimeter // at its right
	plotDPI     = 110               // of the PNG
)

// hues distinguish methods, also for colour-blind readers (Okabe & Ito 2008). Glyphs
// and dashes distinguish models.
var hues = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff},
	{0xcc, 0x79, 0xa7, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff},
}

var glyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}}

var dashes = [][]vg.Length{nil, {vg.Points(5), vg.Points(3)}, {vg.Points(1.5), vg.Points(2.5)}, {vg.Points(7), vg.Points(2), vg.Points(1.5), vg.Points(2)}}

var (
	ink       = color.Gray{0x22}
	grid      = color.Gray{0xe6}
	frontTone = color.Gray{0xb8}
)

// SVG draws the results as accuracy against latency, in the manner of "Scaling
// LLM Test-Time Compute with Mobile NPU on Smartphones" §7.2, Figure 10: one
// line a model and method, points labelled with n, single samples as stars.
// The broad grey line is the Pareto front. Modelled costs take the place of latency.
func SVG(w io.Writer, title string, results []Result, cost Cost) error {
	c := vgsvg.New(plotWidth, plotHeight)
	var drawing bytes.Buffer
	if err := render(&drawing, title, results, cost, c, c); err != nil {
		return err
	}
	// Few readers have the font; these are as wide.
	_, err := w.Write(bytes.ReplaceAll(drawing.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif")))
	return err
}

// PNG writes SVG's drawing as an image.
func PNG(w io.Writer, title string, results []Result, cost Cost) error {
	c := vgimg.NewWith(vgimg.UseWH(plotWidth, plotHeight), vgimg.UseDPI(plotDPI))
	return render(w, title, results, cost, c, vgimg.PngCanvas{Canvas: c})
}

// axes are the labels of costs.
var axes = map[Cost]string{
	Latency: "latency per problem (ms, logarithmic)",
	OnNPU:   "modelled latency per problem on an NPU (ms, logarithmic)",
	Energy:  "modelled energy per problem on an NPU (mJ, logarithmic)",
}

func render(w io.Writer, title string, results []Result, cost Cost, c vg.CanvasSizer, out io.WriterTo) error {
	p, err := chart(title, by(results, cost))
	if err != nil {
		return err
	}
	p.X.Label.Text = axes[cost]
	whole := draw.New(c)
	whole.SetColor(color.White)
	whole.Fill(whole.Rectangle.Path())
	legend := p.Legend
	p.Legend = plot.NewLegend() // the plot would draw it over the points
	p.Draw(draw.Crop(whole, vg.Points(6), -legendWidth, vg.Points(6), -vg.Points(6)))
	legend.Draw(draw.Crop(whole, plotWidth-legendWidth, -vg.Points(6), 0, -vg.Points(30)))
	var image bytes.Buffer // the SVG canvas ignores errors of its writer
	if _, err := out.WriteTo(&image); err != nil {
		return fmt.Errorf("eval: plot: %w", err)
	}
	_, err = w.Write(image.Bytes())
	return err
}

// series is a line of the chart: a model's points of one method, by n.
type series struct {
	model, method int // indexes of first appearance
	name          string
	points        []Result
}

func chart(title string, results []Result) (*plot.Plot, error) {
	if len(results) == 0 {
		return nil, fmt.Errorf("eval: nothing to plot")
	}
	p := plot.New()
	p.Title.Text = title
	p.Y.Label.Text = "right answers (%)"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.TickerFunc(latencyTicks)
	p.Y.Tick.Marker = plot.TickerFunc(accuracyTicks)
	style(p)
	grids := plotter.NewGrid()
	grids.Horizontal.Color, grids.Vertical.Color = grid, grid
	p.Add(grids)

	if err := addFront(p, results); err != nil {
		return nil, err
	}
	all := split(results)
	for _, s := range all {
		if err := s.addLine(p); err != nil {
			return nil, err
		}
	}
	for _, s := range all { // above all lines
		if err := s.addLabels(p); err != nil {
			return nil, err
		}
	}
	frame(p, results)
	return p, nil
}

func style(p *plot.Plot) {
	texts := map[*draw.TextStyle]vg.Length{&p.Title.TextStyle: vg.Points(12), &p.Legend.TextStyle: vg.Points(9)}
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		texts[&a.Label.TextStyle], texts[&a.Tick.Label] = vg.Points(10), vg.Points(9)
		a.LineStyle.Color, a.Tick.LineStyle.Color = ink, ink
		a.Label.Padding = vg.Points(4)
	}
	for text, size := range texts {
		text.Font.Variant, text.Font.Size, text.Color = "Sans", size, ink
	}
	p.Title.Padding = vg.Points(8)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.ThumbnailWidth, p.Legend.Padding = vg.Points(30), vg.Points(2.5)
}

// frame leaves room around the points for their labels and the legend.
func frame(p *plot.Plot, results []Result) {
	low, high, fast, slow := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, r := range results {
		low, high = min(low, 100*r.Accuracy), max(high, 100*r.Accuracy)
		fast, slow = min(fast, latency(r)), max(slow, latency(r))
	}
	margin := max(2, (high-low)/10)
	p.Y.Min, p.Y.Max = max(0, low-margin), min(102, high+margin)
	reach := max(1.15, math.Pow(slow/fast, 0.06))
	p.X.Min, p.X.Max = fast/reach, slow*reach
}

// latency returns a result's place on the logarithmic axis.
func latency(r Result) float64 { return max(r.LatencyMS, 1e-3) }

func xy(r Result) plotter.XY { return plotter.XY{X: latency(r), Y: 100 * r.Accuracy} }

// split groups results into lines. A model's single samples are lines of their own,
// and the first of them the beginning of its others.
func split(results []Result) []*series {
	var all []*series
	var models, methods []string
	for _, r := range results {
		if !r.Plain() && !slices.Contains(methods, r.Method) {
			methods = append(methods, r.Method)
		}
		if !slices.Contains(models, r.Model) {
			models = append(models, r.Model)
		}
		s := &series{model: slices.Index(models, r.Model), method: slices.Index(methods, r.Method), name: r.Model + ", " + r.Method}
		at := slices.IndexFunc(all, func(o *series) bool {
			return o.model == s.model && o.method == s.method && (s.method >= 0 || o.name == s.name)
		})
		if at < 0 {
			all, at = append(all, s), len(all)
		}
		all[at].points = append(all[at].points, r)
	}
	for _, s := range all {
		slices.SortFunc(s.points, func(a, b Result) int { return cmp.Compare(a.N, b.N) })
	}
	slices.SortStableFunc(all, func(a, b *series) int { return cmp.Or(cmp.Compare(a.model, b.model), cmp.Compare(a.method, b.method)) })
	for i, s := range all {
		if s.method < 0 && (i == 0 || all[i-1].model != s.model) { // the first of its model
			for _, o := range all[i+1:] {
				if o.model == s.model && o.method >= 0 {
					o.points = slices.Insert(o.points, 0, s.points[0])
				}
			}
		}
	}
	return all
}

// look returns the series' colour, glyph and the glyph's radius.
func (s *series) look() draw.GlyphStyle {
	if s.method < 0 {
		return draw.GlyphStyle{Color: ink, Shape: star{}, Radius: vg.Points(6)}
	}
	return draw.GlyphStyle{Color: hues[s.method%len(hues)], Shape: glyphs[s.model%len(glyphs)], Radius: vg.Points(3.2)}
}

// own returns the points that the series names and marks: not the single sample
// that a line of several begins with, which is a series of its own.
func (s *series) own() []Result {
	return slices.DeleteFunc(slices.Clone(s.points), func(r Result) bool { return s.method >= 0 && r.Plain() })
}

func places(results []Result) plotter.XYs {
	at := make(plotter.XYs, len(results))
	for i, r := range results {
		at[i] = xy(r)
	}
	return at
}

// addLine draws a line with its glyphs.
func (s *series) addLine(p *plot.Plot) error {
	points, err := plotter.NewScatter(places(s.own()))
	if err != nil {
		return err
	}
	points.GlyphStyle = s.look()
	if s.method < 0 {
		p.Add(points) // named by its label
		return nil
	}
	line, err := plotter.NewLine(places(s.points))
	if err != nil {
		return err
	}
	line.Color, line.Width, line.Dashes = points.Color, vg.Points(1.6), dashes[s.model%len(dashes)]
	p.Add(line, points)
	p.Legend.Add(s.name, line, points)
	return nil
}

// addLabels writes n above the points, in the line's colour, and a single
// sample's model below it.
func (s *series) addLabels(p *plot.Plot) error {
	own := s.own()
	l := plotter.XYLabels{XYs: places(own)}
	for _, r := range own {
		text := strconv.Itoa(r.N)
		if s.method < 0 {
			text = r.Model + ", single"
		}
		l.Labels = append(l.Labels, text)
	}
	labels, err := plotter.NewLabels(l)
	if err != nil {
		return err
	}
	labels.Offset.Y = vg.Points(5)
	for i := range labels.TextStyle {
		t := &labels.TextStyle[i]
		t.Font.Variant, t.Font.Size, t.Color, t.XAlign = "Sans", vg.Points(8), s.look().Color, draw.XCenter
		if s.method < 0 {
			t.XAlign, t.YAlign, labels.Offset.Y = draw.XLeft, draw.YTop, -vg.Points(7)
		}
	}
	p.Add(labels)
	return nil
}

// addFront draws the Pareto front as a staircase: the best accuracy within a time.
func addFront(p *plot.Plot, results []Result) error {
	var front []Result
	for _, r := range results {
		if r.Pareto {
			front = append(front, r)
		}
	}
	slices.SortFunc(front, func(a, b Result) int { return cmp.Compare(a.LatencyMS, b.LatencyMS) })
	var at plotter.XYs
	for _, r := range front {
		at = append(at, xy(r))
	}
	line, err := plotter.NewLine(at)
	if err != nil {
		return err
	}
	line.StepStyle, line.Color, line.Width = plotter.PostStep, frontTone, vg.Points(5)
	p.Add(line)
	p.Legend.Add("Pareto front", line)
	return nil
}

// latencyTicks returns 1, 2 and 5 times the powers of ten, or more where these are too few.
func latencyTicks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for _, steps := range [][]float64{{1, 2, 5}, {1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9}} {
		ticks = ticks[:0]
		for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
			for _, m := range steps {
				if v := m * math.Pow(10, e); v >= low && v <= high {
					ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 6, 64)})
				}
			}
		}
		if len(ticks) > 2 {
			break
		}
	}
	return ticks
}

// accuracyTicks returns whole percents, five to a dozen of them where there is room.
func accuracyTicks(low, high float64) []plot.Tick {
	step := 1.0
	for _, s := range []float64{2, 5, 10, 20} {
		if (high-low)/s >= 5 {
			step = s
		}
	}
	var ticks []plot.Tick
	for v := math.Ceil(low/step) * step; v <= high; v += step {
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 6, 64)})
	}
	return ticks
}

// star is the glyph of a single sample.
type star struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (star) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	var path vg.Path
	for i := range 10 {
		radius := style.Radius
		if i%2 == 1 {
			radius *= 0.42
		}
		sin, cos := math.Sincos(float64(i) * math.Pi / 5)
		corner := vg.Point{X: at.X + radius*vg.Length(sin), Y: at.Y + radius*vg.Length(cos)}
		if i == 0 {
			path.Move(corner)
		} else {
			path.Line(corner)
		}
	}
	path.Close()
	c.SetColor(style.Color)
	c.Fill(path)
}

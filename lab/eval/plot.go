package eval

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/lutra-lm/lutra/lab/chart"
)

// Size of the drawing, in points.
const (
	plotWidth, plotHeight = 680, 340
	legendWidth           = 198 // at its right
)

// Shapes and dashes distinguish models, hues methods.
var (
	shapes = []chart.Shape{chart.Circle, chart.Square, chart.Triangle, chart.Pyramid}
	dashes = []string{"", "5 3", "1.5 2.5", "7 2 1.5 2"}
)

const frontTone = "#b8b8b8"

// axes are the labels of costs.
var axes = map[Cost]string{
	Latency: "latency per problem (ms, logarithmic)",
	OnNPU:   "modelled latency per problem on an NPU (ms, logarithmic)",
	Energy:  "modelled energy per problem on an NPU (mJ, logarithmic)",

	Generated: "tokens per problem, of all candidates (logarithmic)",
}

// SVG draws the results as accuracy against latency, in the manner of "Scaling LLM Test-Time Compute with Mobile NPU on
// Smartphones" §7.2, Figure 10. It has one line a model and method, points labelled with n, and single samples as stars. Thin
// bars are 95 % intervals, the broad grey line is the Pareto front. Other costs may replace latency.
func SVG(w io.Writer, title string, results []Result, cost Cost) error {
	if len(results) == 0 {
		return fmt.Errorf("eval: nothing to plot")
	}
	results = by(results, cost)
	c := &chart.Chart{Title: title, Aside: legendWidth}
	c.X, c.Y = frame(results)
	c.X.Label, c.Y.Label = axes[cost], "right answers (%)"
	addFront(c, results)
	all := split(results)
	for _, s := range all {
		s.addLine(c)
	}
	for _, s := range all { // above all lines
		s.addLabels(c)
	}
	sheet := chart.NewSheet(plotWidth, plotHeight)
	sheet.Draw(c, 0, 0, plotWidth, plotHeight)
	_, err := sheet.WriteTo(w)
	return err
}

// frame leaves room around the points for their labels.
func frame(results []Result) (x, y chart.Axis) {
	low, high, fast, slow := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, r := range results {
		low, high = min(low, 100*r.Low), max(high, 100*r.High)
		fast, slow = min(fast, latency(r)), max(slow, latency(r))
	}
	margin := max(2, (high-low)/10)
	reach := max(1.15, math.Pow(slow/fast, 0.06))
	x = chart.Axis{Min: fast / reach, Max: slow * reach, Log: true, Grid: true}
	y = chart.Axis{Min: max(0, low-margin), Max: min(102, high+margin), Grid: true}
	x.Ticks, y.Ticks = latencyTicks(x.Min, x.Max), accuracyTicks(y.Min, y.Max)
	return x, y
}

// latency is a result's place on the logarithmic axis.
func latency(r Result) float64 { return max(r.LatencyMS, 1e-3) }

func places(results []Result) (at []chart.Point) {
	for _, r := range results {
		at = append(at, chart.Point{X: latency(r), Y: 100 * r.Accuracy})
	}
	return at
}

// series is a line of the chart: a model's points of one method, by n.
type series struct {
	model, method int // indexes of first appearance
	name          string
	points        []Result
}

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

// mark returns the mark at the points of the series.
func (s *series) mark() chart.Mark {
	if s.method < 0 {
		return chart.Mark{Shape: chart.Star, Color: chart.Ink, Radius: 6}
	}
	return chart.Mark{Shape: shapes[s.model%len(shapes)], Color: chart.Hues[s.method%len(chart.Hues)], Radius: 3.2}
}

// own are the points that the series names and marks: not the single sample
// that a line of several begins with, which is a series of its own.
func (s *series) own() []Result {
	return slices.DeleteFunc(slices.Clone(s.points), func(r Result) bool { return s.method >= 0 && r.Plain() })
}

// addLine draws a line with its marks. Single samples are named by their labels.
func (s *series) addLine(c *chart.Chart) {
	mark := s.mark()
	if s.method >= 0 {
		stroke := chart.Stroke{Color: mark.Color, Width: 1.6, Dash: dashes[s.model%len(dashes)]}
		c.Line(places(s.points), stroke)
		c.Name(s.name, stroke, &mark)
	}
	for _, r := range s.own() {
		c.Line([]chart.Point{{X: latency(r), Y: 100 * r.Low}, {X: latency(r), Y: 100 * r.High}}, chart.Stroke{Color: mark.Color, Width: 0.6})
	}
	c.Marks(places(s.own()), mark)
}

// addLabels writes n above the points, in the line's colour, and a single
// sample's model below it.
func (s *series) addLabels(c *chart.Chart) {
	own := s.own()
	for i, at := range places(own) {
		w := chart.Words{Text: strconv.Itoa(own[i].N), Color: s.mark().Color, Size: 8, DY: 6}
		if s.method < 0 {
			w.Text, w.Left, w.DY = own[i].Model+", single", true, -14
		}
		c.Write(at, w)
	}
}

// addFront draws the Pareto front as a staircase: the best accuracy within a time.
func addFront(c *chart.Chart, results []Result) {
	var front []Result
	for _, r := range results {
		if r.Pareto {
			front = append(front, r)
		}
	}
	slices.SortFunc(front, func(a, b Result) int { return cmp.Compare(a.LatencyMS, b.LatencyMS) })
	stroke := chart.Stroke{Color: frontTone, Width: 5}
	c.Steps(places(front), stroke)
	c.Name("Pareto front", stroke, nil)
}

// latencyTicks are 1, 2 and 5 times the powers of ten, or more where these are too few.
func latencyTicks(low, high float64) []chart.Tick {
	var ticks []chart.Tick
	for _, steps := range [][]float64{{1, 2, 5}, {1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9}} {
		ticks = ticks[:0]
		for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
			for _, m := range steps {
				if v := m * math.Pow(10, e); v >= low && v <= high {
					ticks = append(ticks, chart.Tick{At: v, Label: strconv.FormatFloat(v, 'g', 6, 64)})
				}
			}
		}
		if len(ticks) > 2 {
			break
		}
	}
	return ticks
}

// accuracyTicks are whole percents, five to a dozen of them where there is room.
func accuracyTicks(low, high float64) []chart.Tick {
	step := 1.0
	for _, s := range []float64{2, 5, 10, 20} {
		if (high-low)/s >= 5 {
			step = s
		}
	}
	var ticks []chart.Tick
	for v := math.Ceil(low/step) * step; v <= high; v += step {
		ticks = append(ticks, chart.Tick{At: v, Label: strconv.FormatFloat(v, 'g', 6, 64)})
	}
	return ticks
}

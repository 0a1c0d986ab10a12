// Package chart draws charts as SVG: lines, marks, boxes and words in a frame of two
// axes. Sizes are in points, y goes up within a chart and down on a sheet.
//
//	NewSheet ──Draw (a Chart, where)──▶ Sheet ──WriteTo──▶ SVG
package chart

import (
	"math"
	"strconv"
	"strings"
)

// Hues distinguish series, also for colour-blind readers (Okabe & Ito 2008).
var Hues = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// Ink is the colour of words and axes.
const Ink = "#222222"

// Point is a place in the units of the axes.
type Point struct{ X, Y float64 }

// Chart is the content of a frame. What was added first is drawn first.
type Chart struct {
	Title  string // may have several lines
	X, Y   Axis
	Aside  float64 // width of the legend at the right; 0: it lies within the frame
	items  []func(f *frame)
	legend []entry
}

// Axis is the range and the ticks of a direction.
type Axis struct {
	Label    string
	Min, Max float64
	Log      bool
	Grid     bool // lines at the ticks
	Ticks    []Tick
}

// Tick is a labelled place of an axis.
type Tick struct {
	At    float64
	Label string
}

// Stroke is the style of a line.
type Stroke struct {
	Color string
	Width float64
	Dash  string // as stroke-dasharray; empty: a whole line
}

// Mark is a symbol at a point.
type Mark struct {
	Shape  Shape
	Color  string
	Radius float64
}

// Words are a text beside a point.
type Words struct {
	Text   string
	Color  string
	Size   float64
	DX, DY float64 // from the point, in points; DY goes up
	Left   bool    // it begins there; otherwise that is its middle
}

type entry struct {
	name   string
	stroke Stroke
	mark   *Mark
}

// Line draws straight pieces through points.
func (c *Chart) Line(points []Point, s Stroke) {
	c.items = append(c.items, func(f *frame) { f.polyline(points, s) })
}

// Steps draws a staircase through points: level to the next one, then to its height.
func (c *Chart) Steps(points []Point, s Stroke) {
	var corners []Point
	for i, p := range points {
		if i > 0 {
			corners = append(corners, Point{p.X, points[i-1].Y})
		}
		corners = append(corners, p)
	}
	c.Line(corners, s)
}

// Marks draws m at each of points.
func (c *Chart) Marks(points []Point, m Mark) {
	c.items = append(c.items, func(f *frame) {
		for _, p := range points {
			x, y := f.at(p)
			f.s.mark(x, y, m)
		}
	})
}

// Label writes words in a box: they stand in white in its middle, where it has room for them.
func (c *Chart) Label(b Box, words string) {
	c.items = append(c.items, func(f *frame) {
		x0, y0 := f.at(b.A)
		x1, y1 := f.at(b.B)
		if math.Abs(x1-x0) > 9 {
			f.s.text((x0+x1)/2, (y0+y1)/2+3, 8, "middle", "#ffffff", words)
		}
	})
}

// Box is the rectangle between two corners.
type Box struct{ A, B Point }

// Fill fills boxes, as one path.
func (c *Chart) Fill(boxes []Box, fill string) {
	c.items = append(c.items, func(f *frame) {
		var d strings.Builder
		for _, b := range boxes {
			x0, y0 := f.at(b.A)
			x1, y1 := f.at(b.B)
			d.WriteString("M" + num(x0) + " " + num(y0) + "H" + num(x1) + "V" + num(y1) + "H" + num(x0) + "Z")
		}
		f.s.printf(`<path d="%s" fill="%s"/>`, d.String(), fill)
	})
}

// Write writes w beside a point.
func (c *Chart) Write(at Point, w Words) {
	c.items = append(c.items, func(f *frame) {
		x, y := f.at(at)
		anchor := "middle"
		if w.Left {
			anchor = "start"
		}
		f.s.text(x+w.DX, y-w.DY, w.Size, anchor, w.Color, w.Text)
	})
}

// Name adds a line of the legend: how a series is drawn, mark may be nil.
func (c *Chart) Name(name string, s Stroke, mark *Mark) {
	c.legend = append(c.legend, entry{name, s, mark})
}

// place returns where v is between the ends of the axis, from 0 to 1.
func (a *Axis) place(v float64) float64 {
	lo, hi := a.Min, a.Max
	if a.Log {
		v, lo, hi = math.Log(v), math.Log(lo), math.Log(hi)
	}
	if lo == hi {
		return 0.5
	}
	return (v - lo) / (hi - lo)
}

// Round returns ticks at 1, 2 or 5 times a power of ten between lo and hi, at most eight.
func Round(lo, hi float64) (ticks []Tick) {
	if !(hi > lo) {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10(hi-lo))-1)
	for _, m := range []float64{2, 2.5, 2, 2, 2.5, 2} {
		if (hi-lo)/step <= 8 {
			break
		}
		step *= m
	}
	for i := math.Ceil(lo / step); i*step <= hi*(1+1e-9); i++ {
		ticks = append(ticks, Tick{i * step, strconv.FormatFloat(i*step, 'g', 6, 64)})
	}
	return ticks
}

// Whole returns ticks at whole numbers from 0 to hi, at most eleven.
func Whole(hi float64) (ticks []Tick) {
	step := 1
	for hi/float64(step) > 10 {
		step *= 2
	}
	for n := 0; float64(n) <= hi; n += step {
		ticks = append(ticks, Tick{float64(n), strconv.Itoa(n)})
	}
	return ticks
}

// Doubling returns ticks at the powers of two between lo and hi.
func Doubling(lo, hi float64) (ticks []Tick) {
	for v := 1; float64(v) <= hi; v *= 2 {
		if float64(v) >= lo {
			ticks = append(ticks, Tick{float64(v), strconv.Itoa(v)})
		}
	}
	return ticks
}

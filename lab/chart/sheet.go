package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Sheet is a drawing in the making.
type Sheet struct{ b bytes.Buffer }

// NewSheet makes a white sheet.
func NewSheet(width, height float64) *Sheet {
	s := new(Sheet)
	s.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%spt" height="%spt" viewBox="0 0 %s %s" font-family="Liberation Sans,Arial,Helvetica,sans-serif">`,
		num(width), num(height), num(width), num(height))
	s.printf(`<rect width="%s" height="%s" fill="#ffffff"/>`, num(width), num(height))
	return s
}

// WriteTo writes the SVG. Nothing can be drawn afterwards.
func (s *Sheet) WriteTo(w io.Writer) (int64, error) {
	s.printf("</svg>")
	return s.b.WriteTo(w)
}

// Sizes of what surrounds a frame.
const (
	titleSize, labelSize, tickSize, legendSize = 10, 10, 9, 8.5
	tickLength                                 = 4
	lineHeight                                 = 1.25 // of a text's size
)

// frame is a chart's place on a sheet.
type frame struct {
	s                        *Sheet
	c                        *Chart
	left, top, width, height float64
}

// Draw draws c in the rectangle of that size whose upper left corner is (x, y).
func (s *Sheet) Draw(c *Chart, x, y, width, height float64) {
	title := strings.Split(c.Title, "\n")
	above, below, left := 6.0, 8.0, 8.0
	if c.Title != "" {
		above += float64(len(title)) * titleSize * lineHeight
	}
	if len(c.X.Ticks) > 0 {
		below += tickLength + tickSize*lineHeight
	}
	if c.X.Label != "" {
		below += labelSize * lineHeight
	}
	widest := 0
	for _, t := range c.Y.Ticks {
		widest = max(widest, len([]rune(t.Label)))
	}
	left += tickLength + 0.68*tickSize*float64(widest)
	if c.Y.Label != "" {
		left += labelSize * lineHeight
	}
	f := &frame{s, c, x + left, y + above, width - left - 8 - c.Aside, height - above - below}
	for i, line := range title {
		s.text(f.left+f.width/2, y+titleSize*lineHeight*float64(i+1), titleSize, "middle", Ink, line)
	}
	f.axes()
	if c.X.Label != "" {
		s.text(f.left+f.width/2, y+height-6, labelSize, "middle", Ink, c.X.Label)
	}
	if c.Y.Label != "" {
		s.printf(`<text transform="translate(%s %s) rotate(-90)" font-size="%s" text-anchor="middle" fill="%s">%s</text>`,
			num(x+labelSize+2), num(f.top+f.height/2), num(labelSize), Ink, escape(c.Y.Label))
	}
	for _, draw := range c.items {
		draw(f)
	}
	f.legend()
}

// axes draws grid, ticks and the two lines.
func (f *frame) axes() {
	bottom := f.top + f.height
	line := func(x0, y0, x1, y1 float64, color string) {
		f.s.printf(`<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s" stroke-width="0.6"/>`, num(x0), num(y0), num(x1), num(y1), color)
	}
	const grid = "#e6e6e6"
	for _, t := range f.c.X.Ticks {
		x := f.left + f.width*f.c.X.place(t.At)
		if f.c.X.Grid {
			line(x, f.top, x, bottom, grid)
		}
		line(x, bottom, x, bottom+tickLength, Ink)
		f.s.text(x, bottom+tickLength+tickSize, tickSize, "middle", Ink, t.Label)
	}
	for _, t := range f.c.Y.Ticks {
		y := bottom - f.height*f.c.Y.place(t.At)
		if f.c.Y.Grid {
			line(f.left, y, f.left+f.width, y, grid)
		}
		line(f.left-tickLength, y, f.left, y, Ink)
		f.s.text(f.left-tickLength-2, y+tickSize*0.35, tickSize, "end", Ink, t.Label)
	}
	line(f.left, bottom, f.left+f.width, bottom, Ink)
	line(f.left, f.top, f.left, bottom, Ink)
}

// legend draws the names of series.
func (f *frame) legend() {
	x, y := f.left+8, f.top+6
	if f.c.Aside > 0 {
		x = f.left + f.width + 12
	}
	for i, e := range f.c.legend {
		at := y + (float64(i)+0.5)*legendSize*1.5
		if e.stroke.Width > 0 {
			f.s.path(fmt.Sprintf("M%s %sH%s", num(x), num(at), num(x+26)), e.stroke)
		}
		if e.mark != nil {
			f.s.mark(x+13, at, *e.mark)
		}
		f.s.text(x+31, at+legendSize*0.35, legendSize, "start", Ink, e.name)
	}
}

// at returns where p is on the sheet.
func (f *frame) at(p Point) (x, y float64) {
	return f.left + f.width*f.c.X.place(p.X), f.top + f.height*(1-f.c.Y.place(p.Y))
}

func (f *frame) polyline(points []Point, s Stroke) {
	var d strings.Builder
	for i, p := range points {
		x, y := f.at(p)
		d.WriteString([]string{"M", "L"}[min(i, 1)] + num(x) + " " + num(y))
	}
	if len(points) > 0 {
		f.s.path(d.String(), s)
	}
}

func (s *Sheet) path(d string, stroke Stroke) {
	dash := ""
	if stroke.Dash != "" {
		dash = ` stroke-dasharray="` + stroke.Dash + `"`
	}
	s.printf(`<path d="%s" fill="none" stroke="%s" stroke-width="%s"%s/>`, d, stroke.Color, num(stroke.Width), dash)
}

// text writes words at a baseline.
func (s *Sheet) text(x, y, size float64, anchor, color, words string) {
	s.printf(`<text x="%s" y="%s" font-size="%s" text-anchor="%s" fill="%s">%s</text>`, num(x), num(y), num(size), anchor, color, escape(words))
}

// Shape is the form of a mark.
type Shape uint8

// The shapes.
const (
	Circle Shape = iota
	Square
	Triangle
	Pyramid // a triangle on its tip
	Ring
	Star
)

func (s *Sheet) mark(x, y float64, m Mark) {
	r := m.Radius
	switch m.Shape {
	case Circle:
		s.printf(`<circle cx="%s" cy="%s" r="%s" fill="%s"/>`, num(x), num(y), num(r), m.Color)
	case Ring:
		s.printf(`<circle cx="%s" cy="%s" r="%s" fill="none" stroke="%s"/>`, num(x), num(y), num(r), m.Color)
	case Square:
		s.polygon(x, y, m.Color, 4, func(int) (float64, float64) { return r * math.Sqrt2 * 0.9, math.Pi / 4 })
	case Triangle:
		s.polygon(x, y, m.Color, 3, func(int) (float64, float64) { return r * 1.2, 0 })
	case Pyramid:
		s.polygon(x, y, m.Color, 3, func(int) (float64, float64) { return r * 1.2, math.Pi })
	case Star:
		s.polygon(x, y, m.Color, 10, func(i int) (float64, float64) { return r * []float64{1, 0.42}[i%2], 0 })
	}
}

// polygon fills n corners around (x, y); corner gives the radius of each and by how much
// all are turned from straight up.
func (s *Sheet) polygon(x, y float64, color string, n int, corner func(i int) (radius, turned float64)) {
	var points []string
	for i := range n {
		r, turned := corner(i)
		sin, cos := math.Sincos(2*math.Pi*float64(i)/float64(n) + turned)
		points = append(points, num(x+r*sin)+","+num(y-r*cos))
	}
	s.printf(`<polygon points="%s" fill="%s"/>`, strings.Join(points, " "), color)
}

func (s *Sheet) printf(format string, args ...any) { fmt.Fprintf(&s.b, format+"\n", args...) }

// num writes a length with two digits at most behind the point.
func num(x float64) string { return strconv.FormatFloat(math.Round(100*x)/100, 'f', -1, 64) }

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes all
	return b.String()
}

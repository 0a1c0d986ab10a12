package soak

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/lutra-lm/lutra/lab/chart"
)

// Print writes how the requests of each kind ended, and what the server held before and after.
func (r *Report) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "requests\tsent\t%v\t%v\t%v\t%v\n", answered, refused, cancelled, faulty)
	line := func(name string, n [ends]int) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\n", name, n[answered]+n[refused]+n[cancelled]+n[faulty], n[answered], n[refused], n[cancelled], n[faulty])
	}
	for _, c := range r.Kinds {
		line(c.Kind, c.Ends)
	}
	sum := r.Sum()
	line("all", sum)
	n := sum[answered] + sum[refused] + sum[cancelled] + sum[faulty]
	if len(r.Beside) > 0 {
		fmt.Fprintf(t, "\na stream beside\trequests of these\tmedian, ms\tp99, ms\tp99 to alone\n")
		for _, b := range r.Beside {
			fmt.Fprintf(t, "%s\t%d\t%.1f\t%.1f\t%.2f\n", cmp.Or(b.Kind, "nothing"), b.Requests, b.Median.Seconds()*1e3, b.P99.Seconds()*1e3, b.P99.Seconds()/r.Beside[0].P99.Seconds())
		}
	}
	fmt.Fprintf(t, "\nidle server\tbefore\tafter\n")
	for _, row := range []struct {
		name          string
		before, after float64
	}{
		{"KV blocks held, share", r.Before.Blocks, r.After.Blocks},
		{"memory leased, bytes", r.Before.Leased, r.After.Leased},
		{"goroutines", r.Before.Goroutines, r.After.Goroutines},
		{"file descriptors", float64(r.Before.Files), float64(r.After.Files)},
		{"resident, MB", r.Before.Resident / 1e6, r.After.Resident / 1e6},
	} {
		fmt.Fprintf(t, "%s\t%.4g\t%.4g\n", row.name, row.before, row.after)
	}
	fmt.Fprintf(t, "\n%.0f requests/s in %.1f s; resident memory of the last fifth is %.3f times that of the second\n", float64(n)/r.Took.Seconds(), r.Took.Seconds(), r.grown())
	for _, fault := range r.Faults {
		fmt.Fprintln(t, "fault:", fault)
	}
	return t.Flush()
}

// WriteCSV writes the samples, a line each.
func (r *Report) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{"seconds", "requests", "resident_bytes", "heap_bytes", "goroutines", "files", "in_flight", "leased_bytes", "sequences", "kv_share"})
	for _, s := range r.Samples {
		_ = c.Write([]string{num(s.At.Seconds()), strconv.Itoa(s.Requests), num(s.Resident), num(s.Heap), num(s.Goroutines), strconv.Itoa(s.Files), num(s.InFlight), num(s.Leased), num(s.Sequences), num(s.Blocks)})
	}
	c.Flush()
	return c.Error()
}

func num(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// WriteSVG draws memory, and what else could leak, against requests.
func (r *Report) WriteSVG(w io.Writer) error {
	const width, height = 460, 300
	sheet := chart.NewSheet(2*width, height)
	draw := func(at float64, title string, lines ...series) {
		c := chart.Chart{Title: title}
		most, last := 1.0, 1.0
		for _, l := range lines {
			for _, s := range r.Samples {
				most, last = max(most, l.of(&s)), max(last, float64(s.Requests)/1e3)
			}
		}
		c.X = chart.Axis{Label: "thousand requests", Max: last, Ticks: chart.Round(0, last)}
		c.Y = chart.Axis{Max: most * 1.3, Grid: true, Ticks: chart.Round(0, most*1.3)}
		for _, l := range lines {
			var points []chart.Point
			for _, s := range r.Samples {
				points = append(points, chart.Point{X: float64(s.Requests) / 1e3, Y: l.of(&s)})
			}
			stroke := chart.Stroke{Color: l.color, Width: 1.5}
			c.Line(points, stroke)
			c.Name(l.name, stroke, nil)
		}
		sheet.Draw(&c, at, 0, width, height)
	}
	draw(0, "Memory, MB",
		series{"resident", "#0f6b63", func(s *Sample) float64 { return s.Resident / 1e6 }},
		series{"Go's heap", "#b4532a", func(s *Sample) float64 { return s.Heap / 1e6 }})
	draw(width, "Held",
		series{"goroutines", "#0f6b63", func(s *Sample) float64 { return s.Goroutines }},
		series{"file descriptors", "#b4532a", func(s *Sample) float64 { return float64(s.Files) }},
		series{"sequences", "#6a6a6a", func(s *Sample) float64 { return s.Sequences }})
	_, err := sheet.WriteTo(w)
	return err
}

// series is a line of a chart.
type series struct {
	name, color string
	of          func(*Sample) float64
}

package chart

import (
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"
)

// drawn is a sheet with one chart as text, which is well-formed XML.
func drawn(t *testing.T, c *Chart) string {
	t.Helper()
	s, text := NewSheet(200, 100), strings.Builder{}
	s.Draw(c, 0, 0, 200, 100)
	if _, err := s.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(text.String())); ; {
		if _, err := d.Token(); err == io.EOF {
			return text.String()
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text.String())
		}
	}
}

func TestAChartIsASheetOfAllItHolds(t *testing.T) {
	c := &Chart{Title: "<one>\ntwo", Aside: 50, X: Axis{Label: "x & y", Min: 1, Max: 8, Log: true, Grid: true, Ticks: Doubling(1, 8)}, Y: Axis{Max: 10, Ticks: Round(0, 10)}}
	at := []Point{{1, 0}, {2, 10}, {8, 5}}
	c.Line(at, Stroke{Color: "#111111", Width: 1, Dash: "1 2"})
	c.Steps(at, Stroke{Color: "#222222", Width: 1})
	for shape := Circle; shape <= Star; shape++ {
		c.Marks(at[:1], Mark{shape, "#333333", 3})
	}
	c.Fill([]Box{{at[0], at[1]}}, "#444444")
	c.Label(Box{at[0], at[2]}, "in it")
	c.Write(at[1], Words{Text: "n", Size: 8})
	c.Name("series", Stroke{Color: "#111111", Width: 1}, &Mark{})
	text := drawn(t, c)
	for _, want := range []string{"&lt;one&gt;", ">two<", "x &amp; y", `stroke-dasharray="1 2"`, "in it", ">n<", ">series<", "#444444"} {
		if !strings.Contains(text, want) {
			t.Errorf("the sheet lacks %s", want)
		}
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Errorf("a place is no number:\n%s", text)
	}
	_ = drawn(t, &Chart{X: Axis{Min: 3, Max: 3}, Y: Axis{Min: 3, Max: 3}}) // axes without a length
}

func TestPointsStandWhereTheAxesSay(t *testing.T) {
	for _, c := range []struct {
		a    Axis
		v    float64
		want float64
	}{{Axis{Max: 10}, 5, 0.5}, {Axis{Min: 1, Max: 100, Log: true}, 10, 0.5}, {Axis{Min: 2, Max: 2}, 2, 0.5}, {Axis{Min: -1, Max: 1}, -1, 0}} {
		if got := c.a.place(c.v); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%v stands at %v of %+v, want %v", c.v, got, c.a, c.want)
		}
	}
}

func TestTicksAreRoundAndFew(t *testing.T) {
	labels := func(ticks []Tick) (list []string) {
		for _, t := range ticks {
			list = append(list, t.Label)
		}
		return list
	}
	for got, want := range map[string][]string{
		strings.Join(labels(Round(0, 10)), " "):     {"0", "2", "4", "6", "8", "10"},
		strings.Join(labels(Round(0, 38000)), " "):  {"0", "5000", "10000", "15000", "20000", "25000", "30000", "35000"},
		strings.Join(labels(Round(0.1, 0.17)), " "): {"0.1", "0.11", "0.12", "0.13", "0.14", "0.15", "0.16", "0.17"},
		strings.Join(labels(Whole(3)), " "):         {"0", "1", "2", "3"},
		strings.Join(labels(Whole(47)), " "):        {"0", "8", "16", "24", "32", "40"},
		strings.Join(labels(Doubling(3, 17)), " "):  {"4", "8", "16"},
	} {
		if !slices.Equal(strings.Fields(got), want) {
			t.Errorf("ticks %s, want %v", got, want)
		}
	}
	if Round(2, 2) != nil {
		t.Error("an axis without a length has ticks")
	}
}

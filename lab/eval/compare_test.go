package eval

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestMethodsAreComparedProblemByProblem(t *testing.T) {
	base, other := Point{Model: "m", Method: "best_of_n", N: 16}, Point{Model: "m", Method: "deepconf", N: 16}
	var records []Record
	add := func(n int, baseRight, otherRight bool) {
		for range n {
			i := len(records) / 2
			records = append(records, Record{Point: base, Problem: i, Right: baseRight, Tokens: 100}, Record{Point: other, Problem: i, Right: otherRight, Tokens: 40})
		}
	}
	add(80, true, true)
	add(8, false, true)
	add(2, true, false)
	add(10, false, false)
	records = append(records, Record{Point: other, Problem: 100, Right: true}) // the base has not answered it
	for _, name := range []string{"best_of_n", "best_of_n;n=16"} {
		got, err := Compare([]Point{other, base}, records, 101, name)
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		d := got[0]
		if d.Point != other || d.Base != base || d.Problems != 100 || d.Better != 8 || d.Worse != 2 || math.Abs(d.Delta-0.06) > 1e-12 || d.Tokens != 0.4 {
			t.Errorf("%s: %+v", name, d)
		}
		// The normal interval is 0.06 ± 1.96 √((0.10 - 0.06²)/100) = 0.06 ± 0.061.
		if math.Abs(d.Low-0) > 0.011 || math.Abs(d.High-0.12) > 0.011 {
			t.Errorf("%s: the interval is %v to %v", name, d.Low, d.High)
		}
		var page bytes.Buffer
		if err := CompareMarkdown(&page, got); err != nil || !strings.Contains(page.String(), "| m | deepconf;n=16 | best_of_n;n=16 | 100 | +6.0 |") {
			t.Errorf("%v\n%s", err, &page)
		}
	}
	if _, err := Compare([]Point{other, base}, nil, 0, "beam_search"); err == nil {
		t.Error("a method that is not there: no error")
	}
}

func TestMcNemarsTestIsExact(t *testing.T) {
	for _, c := range []struct {
		better, worse int
		want          float64
	}{{0, 0, 1}, {1, 0, 1}, {5, 5, 1}, {8, 2, 112.0 / 1024}, {2, 8, 112.0 / 1024}, {6, 0, 2.0 / 64}} {
		if got := McNemar(c.better, c.worse); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("McNemar(%d, %d) = %v, want %v", c.better, c.worse, got, c.want)
		}
	}
}

func TestAMethodIsComparedAcrossModels(t *testing.T) {
	large, small := Point{Model: "a/large", Method: Single, N: 1}, Point{Model: "small", Method: "best_of_n", N: 4}
	points := []Point{{Model: "small", Method: Single, N: 1}, small, large}
	var records []Record
	for i := range 8 {
		records = append(records, Record{Point: small, Problem: i, Right: true, Tokens: 30}, Record{Point: large, Problem: i, Right: i < 2, Tokens: 10})
	}
	got, err := Compare(points, records, 8, "a/large/single")
	if err != nil || len(got) != 1 || got[0].Point != small || got[0].Base != large || got[0].Better != 6 || got[0].Worse != 0 || got[0].Tokens != 3 {
		t.Fatalf("%v: %+v", err, got)
	}
	if row := CompareRows(got)[1]; row[2] != "a/large/single" {
		t.Errorf("the row is %q", row)
	}
}

package eval

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite testdata")

// measured is the summary of a small experiment with invented times.
func measured(t *testing.T) []Result {
	t.Helper()
	points := mustPoints(t, []string{"single", "best_of_n", "beam_search"}, []int{2, 8}, 4)
	yes, no := true, false
	var records []Record
	for i := range 4 {
		for _, p := range points {
			r := Record{Point: p, Problem: i, Right: i < 1+p.N/4, Tokens: 70 * p.N, Latency: time.Duration(10+p.N+i+2*p.Width) * time.Millisecond}
			if p.Method != Single {
				r.Any, r.Verifier = &yes, 71*p.N
				if i == 3 {
					r.Any = &no
				}
			}
			records = append(records, r)
		}
	}
	records = append(records, Record{Point: points[0], Problem: 9, Right: true}) // of a larger run
	return Summarise(points, records, 4, 1)
}

func TestWilsonIntervalsAreThePublishedOnes(t *testing.T) {
	// Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3.
	for _, c := range []struct {
		right, n  int
		low, high float64
	}{{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}, {29, 29, 0.8830, 1}} {
		low, high := Wilson(c.right, c.n)
		if math.Abs(low-c.low) > 5e-5 || math.Abs(high-c.high) > 5e-5 {
			t.Errorf("Wilson(%d, %d) = %.4f, %.4f, want %.4f, %.4f", c.right, c.n, low, high, c.low, c.high)
		}
	}
	if low, high := Wilson(0, 0); low != 0 || high != 1 {
		t.Errorf("Wilson(0, 0) = %v, %v, want all", low, high)
	}
}

func TestSummariesCountOnlyTheProblemsAsked(t *testing.T) {
	r := measured(t)[0]
	if r.Problems != 4 || r.Accuracy != 0.25 || r.Any != nil || r.LatencyMS != 12.5 || r.MedianMS != 13 || r.Tokens != 70 || r.TokensPerSec != 5600 || r.VsSingle != 1 {
		t.Errorf("single = %+v", r)
	}
}

func TestTheFrontHoldsUnbeatenPoints(t *testing.T) {
	var on []string
	for _, r := range measured(t) {
		if r.Pareto {
			on = append(on, r.Point.String())
		}
	}
	if got := strings.Join(on, " "); got != "single best_of_n;n=8" {
		t.Errorf("front = %s", got)
	}
}

func TestMarkdownIsAsItWas(t *testing.T) {
	var got bytes.Buffer
	setup := Setup{Data: "a set", Hash: "0123", Temperature: 0.8, Seed: 1, MaxTokens: 256, Concurrency: 1, Where: "a machine, 2 threads"}
	if err := Markdown(&got, setup, measured(t)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "report.md")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("Markdown =\n%s\nwant (rewrite with -update)\n%s", got.Bytes(), want)
	}
}

func TestThePlotIsAWellFormedDrawing(t *testing.T) {
	var drawing bytes.Buffer
	if err := SVG(&drawing, "A <plot>", measured(t), Latency); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	d := xml.NewDecoder(&drawing)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if chars, ok := token.(xml.CharData); ok {
			text.Write(chars)
		}
	}
	for _, want := range []string{"A <plot>", "m, best_of_n", "m, beam_search", "m, single", "Pareto front"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the drawing does not say %q", want)
		}
	}
}

func TestOddResultsArePlottedToo(t *testing.T) {
	point := Point{Model: "m", Method: Single, N: 1}
	for _, results := range [][]Result{
		{{Point: point, Pareto: true}},
		{{Point: point, LatencyMS: 5, Accuracy: 1, Pareto: true}, {Point: point, LatencyMS: 5, Accuracy: 1}},
	} {
		if err := SVG(io.Discard, "", results, Latency); err != nil {
			t.Errorf("SVG(%+v): %v", results, err)
		}
	}
	if err := SVG(io.Discard, "", nil, Latency); err == nil {
		t.Error("nothing to plot: no error")
	}
}

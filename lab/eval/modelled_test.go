package eval

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// onNPU are two points of which the one that is slower here is faster on an NPU.
func onNPU() []Result {
	var records []Record
	points := []Point{{Model: "m", Method: Single, N: 1}, {Model: "m", Method: "best_of_n", N: 8}}
	for i := range 2 {
		records = append(records,
			Record{Point: points[0], Problem: i, Right: true, Tokens: 10, Latency: 10 * time.Millisecond, Modelled: &Modelled{Seconds: 0.004, Joules: 0.02}},
			Record{Point: points[1], Problem: i, Right: true, Tokens: 80, Latency: 30 * time.Millisecond, Modelled: &Modelled{Seconds: 0.002, Joules: 0.03}})
	}
	return Summarise(points, records, 2, 1)
}

func TestModelledCostsAreMeansWithAFrontOfTheirOwn(t *testing.T) {
	results := onNPU()
	if r := results[0]; r.ModelledMS != 4 || r.ModelledMJ != 20 || !r.Pareto || results[1].Pareto {
		t.Errorf("%+v", results)
	}
	if npu := by(results, OnNPU); npu[0].Pareto || !npu[1].Pareto || npu[1].LatencyMS != 2 {
		t.Errorf("by modelled time: %+v", npu)
	}
	if energy := by(results, Energy); !energy[0].Pareto || energy[1].Pareto || energy[0].LatencyMS != 20 {
		t.Errorf("by energy: %+v", energy)
	}
	if results[0].LatencyMS != 10 {
		t.Error("the results themselves have changed")
	}
}

func TestAReportSaysWhatIsModelled(t *testing.T) {
	var page, drawing bytes.Buffer
	if err := Markdown(&page, Setup{SoC: "Snapdragon"}, onNPU()); err != nil {
		t.Fatal(err)
	}
	if err := SVG(&drawing, "t", onNPU(), OnNPU); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"page": page.String(), "drawing": drawing.String()} {
		if !strings.Contains(text, "modelled") {
			t.Errorf("the %s does not:\n%s", name, text)
		}
	}
	if rows := Rows(measured(t)); strings.Contains(strings.Join(rows[0], " "), "modelled") {
		t.Error("a report without an NPU has a column for it")
	}
}

func TestANarrowAxisHasSeveralTicks(t *testing.T) {
	for _, c := range [][2]float64{{1.8, 3.4}, {10, 12}, {1, 1000}, {0.03, 0.05}} {
		if n := len(latencyTicks(c[0], c[1])); n < 2 || n > 16 {
			t.Errorf("%v to %v has %d ticks", c[0], c[1], n)
		}
	}
}

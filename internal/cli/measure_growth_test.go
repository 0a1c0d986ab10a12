package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/usage"
)

func TestRemarksNameTheGrowthThatGoesWrong(t *testing.T) {
	points := []growthPoint{
		{Axis: "batch", Series: "decode", X: 1, TokS: 10},
		{Axis: "batch", Series: "decode", X: 2, TokS: 20},
		{Axis: "batch", Series: "decode", X: 4, TokS: 19.5}, // within noise
		{Axis: "batch", Series: "decode", X: 8, TokS: 12},   // wrong
		{Axis: "batch", Series: "decode", X: 16, TokS: 40},
		{Axis: "context", Series: "decode", X: 128, MS: 1},
		{Axis: "context", Series: "decode", X: 256, MS: 2},
		{Axis: "context", Series: "decode", X: 512, MS: 4},  // in a line
		{Axis: "context", Series: "decode", X: 1024, MS: 9}, // wrong
		{Axis: "context", Series: "prefill", X: 128, MS: 9}, // another curve
		{Axis: "context", Series: "prefill", X: 256, MS: 3},
		{Axis: "context", Series: "prefill", X: 512, MS: 4}, // wrong: the line falls, its continuation does not
		{Axis: "threads", Series: "decode", X: 1, TokS: 5},
	}
	remark(points)
	var wrong []int
	for i, p := range points {
		if p.Remark != "" {
			wrong = append(wrong, i)
		}
	}
	if len(wrong) != 3 || wrong[0] != 3 || wrong[1] != 8 || wrong[2] != 11 {
		t.Errorf("remarks on points %v of %+v", wrong, points)
	}
}

func TestBenchGrowthMeasuresAndDrawsEveryAxis(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "growth.svg")
	args := []string{"bench", "growth", "--model", "lutra-tiny-s", "-r", "1", "--decode", "2", "--batches", "1,3", "--contexts", "8,16,60000"}
	var points []growthPoint
	if err := json.Unmarshal([]byte(mustLutra(t, append(args, "--threads", "1,2", "--svg", svg, "--json")...)), &points); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, p := range points {
		count[p.Axis+" "+p.Series]++
		if p.TokS <= 0 || p.MS <= 0 {
			t.Errorf("%+v", p)
		}
	}
	want := map[string]int{"batch decode": 2, "context decode": 2, "context prefill": 2, "threads prefill": 2, "threads decode 1": 2, "threads decode 32": 2}
	for curve, n := range want {
		if count[curve] != n {
			t.Errorf("%s has %d points, want %d", curve, count[curve], n)
		}
	}
	drawing, err := os.ReadFile(svg)
	if err != nil || !strings.Contains(string(drawing), "</svg>") || !strings.Contains(string(drawing), "decode 32") {
		t.Errorf("the drawing is %d bytes, %v", len(drawing), err)
	}
	for _, bad := range [][]string{{"--batches", "4,1"}, {"--contexts", "0"}, {"--threads", "-1"}, {"--decode", "1"}} {
		var mistake usage.Error
		if _, err := lutra(t, append(args, bad...)...); !errors.As(err, &mistake) {
			t.Errorf("%v: error %v, want one of usage", bad, err)
		}
	}
}

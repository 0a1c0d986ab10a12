package bench

import (
	"testing"
)

func TestRemarksMarkThePointsWhereCostsGrowBadly(t *testing.T) {
	points := []GrowthPoint{
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

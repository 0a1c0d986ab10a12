package products

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/kernels/bench"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// What is measured is given here, never taken from a clock.
func TestTheChosenKernelIsComparedWithTheFastestForcedOneTurnByTurn(t *testing.T) {
	names := []string{"avx512:mad", "avx512:gfni"}
	for what, c := range map[string]struct {
		chosen string
		times  [][]time.Duration // of the default, mad and gfni
		best   string
		ratio  float64
	}{
		"the best one is used":            {"avx512:gfni", [][]time.Duration{{80, 80, 80}, {100, 100, 100}, {80, 80, 80}}, "avx512:gfni", 1},
		"another one is faster":           {"avx512:mad", [][]time.Duration{{100, 100, 100}, {100, 100, 100}, {80, 80, 80}}, "avx512:gfni", 0.8},
		"a turn in which memory was slow": {"avx512:mad", [][]time.Duration{{100, 500, 100}, {100, 500, 100}, {80, 400, 800}}, "avx512:gfni", 0.8},
		"itself seems to be faster":       {"avx512:mad", [][]time.Duration{{100, 100, 100}, {90, 90, 90}, {100, 100, 100}}, "avx512:mad", 1},
	} {
		row := ChosenRow{M: 10, K: 10, N: 1, Chosen: c.chosen}
		row.fill(names, c.times)
		if row.Best != c.best || row.Ratio != c.ratio || row.GMACs != row.Forced*c.ratio {
			t.Errorf("%s: %+v, want %s and a ratio of %v", what, row, c.best, c.ratio)
		}
	}
}

func TestEveryPackingWithSeveralKernelsIsCompared(t *testing.T) {
	o := Options{Packings: matrix.Packings(), Shapes: [][2]int{{64, 256}}, Tokens: []int{1, 9}, Threads: []int{1}, Budget: 1}
	var want, got []string
	for _, c := range bench.Choices() {
		want = append(want, c.Packing)
	}
	for row, err := range Chosen(o) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, row.Packing); row.GMACs <= 0 || row.Ratio <= 0 || row.Ratio > 1 {
			t.Errorf("%+v", row)
		}
	}
	if got := slices.Compact(slices.Clone(got)); !slices.Equal(got, want) {
		t.Errorf("compared %v, want %v", got, want)
	}
	if len(got) != len(want)*len(o.Tokens) {
		t.Errorf("%d rows, want %d a packing", len(got), len(o.Tokens))
	}
	o.Packings, o.Shapes = []matrix.Packing{matrix.I2}, [][2]int{{0, 5}}
	for _, err := range Chosen(o) {
		if !errors.Is(err, matrix.ErrShape) {
			t.Errorf("error %v, want ErrShape", err)
		}
	}
}

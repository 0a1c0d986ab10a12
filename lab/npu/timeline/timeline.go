// Package timeline models when the units of an NPU work on the tiles of a product, in the
// order of package pipeline.
package timeline

import (
	"slices"

	"github.com/lutra-lm/lutra/hexagon/pipeline"
)

// stages is the number of stages of a tile that take time: results that leave take DMA's, and wait for nothing.
const stages = pipeline.Multiply + 1

// Costs are the seconds of each stage for one tile, by pipeline.Stage.
type Costs [stages]float64

// Span is when a job runs, in seconds from the beginning.
type Span struct {
	pipeline.Job
	Begin float64 `json:"begin"`
	End   float64 `json:"end"`
}

// Simulate returns when the jobs of n equal tiles run, and when the last one ends. A job
// begins when its unit is free, its tile has gone through the stage before, and the
// buffer that it fills has been emptied. If overlap is false, a tile goes through all
// stages before the next one begins.
func Simulate(n int, c Costs, overlap bool) (spans []Span, total float64) {
	ends := make([][stages]float64, n)
	at := func(tile int, s pipeline.Stage) float64 {
		if tile < 0 || s < 0 {
			return 0
		}
		return ends[tile][s]
	}
	_ = inOrder(n, overlap, func(j pipeline.Job) error {
		begin := max(at(j.Tile, j.Stage-1), at(j.Tile-1, j.Stage))
		if j.Stage < pipeline.Multiply {
			begin = max(begin, at(j.Tile-pipeline.Buffers, j.Stage+1))
		}
		if !overlap {
			begin = total
		}
		end := begin + c[j.Stage]
		ends[j.Tile][j.Stage] = end
		spans, total = append(spans, Span{j, begin, end}), max(total, end)
		return nil
	})
	return spans, total
}

func inOrder(n int, overlap bool, do func(pipeline.Job) error) error {
	if overlap {
		return pipeline.Order(n, true, func(j pipeline.Job) error {
			if j.Stage == pipeline.Store {
				return nil
			}
			return do(j)
		})
	}
	for tile := range n {
		for s := pipeline.Load; s < stages; s++ {
			if err := do(pipeline.Job{Stage: s, Tile: tile, Buffer: tile % pipeline.Buffers}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Total returns what Simulate says of the whole, for any number of tiles: the slowest stage
// n times, and the others once.
func Total(n int, c Costs, overlap bool) float64 {
	sum := 0.0
	for _, s := range c {
		sum += s
	}
	switch {
	case n < 1:
		return 0
	case !overlap:
		return float64(n) * sum
	}
	return sum + float64(n-1)*slices.Max(c[:])
}

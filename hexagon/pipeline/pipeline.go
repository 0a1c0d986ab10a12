// Package pipeline is the order in which tiles of a product go through the NPU: DMA
// brings packed weights into TCM, vector threads unpack them to fp16 tiles, and the
// tile unit multiplies (T-MAN §4.2, Figure 9).
//
//	step   1       2         3           4
//	DMA    load 0  load 1    load 2      load 3
//	HVX            unpack 0  unpack 1    unpack 2
//	HMX                      multiply 0  multiply 1
//
// Order is that schedule for a device that runs packets. It knows nothing of what a tile
// holds.
package pipeline

// Stage is a unit's part of the work on a tile.
type Stage int

// The stages, in the order in which a tile goes through them.
const (
	Load     Stage = iota // DMA: DDR to TCM
	Unpack                // vector threads: packed weights to fp16 tiles
	Multiply              // the tile unit
	stages
)

func (s Stage) String() string { return [...]string{"DMA", "HVX", "HMX"}[s] }

// MarshalText implements encoding.TextMarshaler.
func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Buffers is how many tiles each of the two memories between the stages must hold for
// the stages to overlap: one that is written and one that is read.
const Buffers = 2

// Job is one stage of one tile.
type Job struct {
	Stage Stage `json:"unit"`
	Tile  int   `json:"tile"`
	// Buffer, below Buffers, is where the tile lies: packed for Load and Unpack, in fp16
	// for Unpack and Multiply.
	Buffer int `json:"buffer"`
}

// Order calls do for all jobs of n tiles, one step of the pipeline after the other, and
// stops at the first error. Within a step the stage that empties a buffer comes before
// the one that fills it, so the order is also right on a device that runs one job at a
// time.
func Order(n int, do func(Job) error) error {
	for step := range n + int(stages) - 1 {
		for s := Multiply; s >= Load; s-- {
			if tile := step - int(s); tile >= 0 && tile < n {
				if err := do(Job{s, tile, tile % Buffers}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

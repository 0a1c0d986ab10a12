// Package pipeline is the order in which tiles of a product go through the NPU: DMA
// brings packed weights into TCM, vector threads unpack them to fp16 tiles, the
// tile unit multiplies (T-MAN §4.2, Figure 9), and results leave.
//
//	step   1       2         3           4           5
//	HMX                      multiply 0  multiply 1  multiply 2
//	DMA    load 0  load 1    load 2      load 3      load 4
//	DMA                                  store 0     store 1
//	HVX            unpack 0  unpack 1    unpack 2    unpack 3
//
// Order is that schedule for a device that runs packets. It begins copies and products without
// waiting for them, and waits where an operand is still under way. So within a step new copies and
// products come first, and the wait for the product of the step before comes after them. It knows
// nothing of a tile's contents.
package pipeline

// Stage is a unit's part of the work on a tile.
type Stage int

// The stages, in the order in which a tile goes through them.
const (
	Load     Stage = iota // DMA: DDR to TCM
	Unpack                // vector threads: packed weights to fp16 tiles
	Multiply              // the tile unit
	Store                 // DMA, or whoever takes the results
	stages
)

func (s Stage) String() string { return [...]string{"DMA", "HVX", "HMX", "out"}[s] }

// MarshalText implements encoding.TextMarshaler.
func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Buffers is the number of tiles that each of the two memories between the stages must hold for
// the stages to overlap: one that is written and one that is read.
const Buffers = 2

// Job is one stage of one tile.
type Job struct {
	Stage Stage `json:"unit"`
	Tile  int   `json:"tile"`
	// Buffer, below Buffers, is where the tile lies: packed for Load and Unpack, in fp16
	// for Unpack and Multiply, its results for Multiply and Store.
	Buffer int `json:"buffer"`
}

// Order calls do for all jobs of n tiles, one step of the pipeline after the other, and
// stops at the first error. Where nothing is to unpack, unpack is false: tiles are multiplied where they are loaded. The
// order is also right on a device that runs one job at a time.
func Order(n int, unpack bool, do func(Job) error) error {
	behind := [stages]int{Unpack: 1, Multiply: 2, Store: 3} // steps behind the load of a tile
	if !unpack {
		behind = [stages]int{Multiply: 1, Store: 2}
	}
	for step := range n + behind[Store] {
		for _, s := range [...]Stage{Multiply, Load, Store, Unpack} {
			if tile := step - behind[s]; tile >= 0 && tile < n && (unpack || s != Unpack) {
				if err := do(Job{s, tile, tile % Buffers}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

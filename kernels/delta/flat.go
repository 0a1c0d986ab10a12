package delta

import (
	"fmt"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// Flatten sets dst, panels [width/panel][width][panel] as a state begins with, to the state of a head after its
// sequence's first position tokens, an unfinished chunk's among them. A device goes on from there.
func Flatten(dst, state []float32, width, position int) {
	all, part := checkFlat(dst, state, width, position)
	copy(dst, state[:all])
	begun := position % Chunk
	if begun == 0 {
		return
	}
	keys, correct, decays := state[all:][:part], state[all+part:][:part], state[all+2*part:]
	vector.ScaleInto(dst, decays[Chunk])
	for i, r := range decays[:begun] {
		for lo := 0; lo < width; lo += panel {
			columns := min(panel, width-lo)
			for j, k := range keys[i*width:][:width] {
				vector.Axpy(dst[lo*width+j*columns:][:columns], r*k, correct[i*width+lo:][:columns])
			}
		}
	}
}

// Restore sets a head's state to what Flatten makes of it: tokens of a chunk that has begun have no corrections left.
func Restore(state, flat []float32, width, position int) {
	all, _ := checkFlat(flat, state, width, position)
	copy(state, flat)
	clear(state[all:])
	for i := range Chunk + 1 {
		state[all+2*width*Chunk+i] = 1 // decays, and before
	}
}

// checkFlat returns the numbers of panels and of a chunk's keys.
func checkFlat(flat, state []float32, width, position int) (all, part int) {
	if width < Tile || width%Tile != 0 || len(flat) != width*width || len(state) != Size(width) || position < 0 {
		panic(fmt.Sprintf("kernels: a state of %d at %d as %d numbers", len(state), position, len(flat)))
	}
	return width * width, width * Chunk
}

package soc

// Packets are what the kernels take, counted by the emulator [E]: bundles of
// instructions that a thread executes.
type Packets struct {
	Line       map[int]float64 // of OpGEMV, by bits: a line of 128 bytes
	Scale      float64         // of OpGEMV: a strip's scales of one group
	Precompute float64         // of OpPrecompute: 256 activations
	Dequant    map[int]float64 // of OpDequant, by bits: a block of 128×64, scales included
	VLUT16     float64         // of OpVLUT16: a super-group of 256 weights
	Softmax    float64         // of OpSoftmax: 64 scores, without the latency of vgather
}

// Counted are the packets of this project's kernels. Kernels that round fp16 by integer
// instructions in the emulator have one qfloat instruction for it on a device; those
// are counted as the device's build has them.
var Counted = Packets{
	Line:       map[int]float64{1: 4.3, 2: 4.2, 4: 4.4},
	Scale:      24,
	Precompute: 176,
	Dequant:    map[int]float64{1: 380, 2: 420, 4: 646},
	VLUT16:     22,
	Softmax:    6,
}

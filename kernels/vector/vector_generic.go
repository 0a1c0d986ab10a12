//go:build purego || !(amd64 || arm64)

package vector

// The Fast functions do what they can of a slice and return how much that was;
// here it is nothing, and the portable loops do it all.

func f32ToF16Fast([]uint16, []float32) int                               { return 0 }
func addFast(_, _, _ []float32) int                                      { return 0 }
func scaleFast(_, _ []float32, _ float32) int                            { return 0 }
func axpyFast(_ []float32, _ float32, _ []float32) int                   { return 0 }
func dotFast(_, _ []float32) (int, float32)                              { return 0, 0 }
func maxFast([]float32) (int, float32)                                   { return 0, negInf }
func absMaxFast([]float32) (int, float32)                                { return 0, 0 }
func scaleMulFast(_, _, _ []float32, _ float32) int                      { return 0 }
func sumSquaresFast([]float32) (int, float64)                            { return 0, 0 }
func expSumFast(_, _ []float32, _ float32) (float32, bool)               { return 0, false }
func sumWithinFast(*[16]float32, []float32, float32, float32) (int, int) { return 0, 0 }
func swigluFast(_, _, _ []float32) bool                                  { return false }
func gegluFast(_, _, _ []float32) bool                                   { return false }
func clampedGLUFast(_, _, _ []float32) bool                              { return false }
func relu2Fast(_, _, _ []float32) int                                    { return 0 }
func ropePairsFast(_, _, _ []float32) int                                { return 0 }
func ropeHalvesFast(_, _, _, _ []float32) int                            { return 0 }
func mulAddFast(_, _, _ []float32) int                                   { return 0 }
func butterflyFast(_, _ []float32) int                                   { return 0 }
func hadamardFast([]float32) int                                         { return 1 }
func mulFast(_, _, _ []float32) int                                      { return 0 }
func gluFast(_, _, _ []float32) bool                                     { return false }

//go:build (!amd64 && !arm64) || purego

package delta

func productsFast(_ []float32, _ int, _, _ []float32, _, _ int, _ []float32) bool { return false }
func dotsFast(_, _, _ []float32, _ *mix) bool                                     { return false }
func correctFast([]float32, int, *mix, []float32, []float32) bool                 { return false }
func foldFast(_, _, _ []float32, _ float32, _ int) bool                           { return false }
func spaceFast(_ []float32, _, _ int, _, _ []float32, _ int, _, _ []float32, _ int, _ []float32) int {
	return 0
}

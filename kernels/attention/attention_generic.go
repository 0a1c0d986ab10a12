//go:build purego || !(amd64 || arm64)

package attention

func scoresF16Fast(_ []float32, _ int, _ []float32, _ []uint16, _ []int32, _, _, _ int, _ Ahead[uint16]) bool {
	return false
}
func accumF16Fast(_, _ []float32, _ int, _ []uint16, _ []int32, _, _, _ int, _ Ahead[uint16]) bool {
	return false
}
func scoresQ8Fast(_ []float32, _ int, _ []float32, _ []int8, _ []float32, _ []int32, _, _, _ int, _ Ahead[int8]) bool {
	return false
}
func accumQ8Fast(_, _ []float32, _ int, _ []int8, _ []float32, _ []int32, _, _, _ int, _ Ahead[int8]) bool {
	return false
}
func scoresQ4Fast(_ []float32, _ int, _, _ []byte, _ []uint16, _ []int32, _, _, _ int, _ Ahead[byte]) bool {
	return false
}
func accumQ4Fast(_, _ []float32, _ int, _ []byte, _ []uint16, _ []int32, _, _, _ int, _ Ahead[byte]) bool {
	return false
}
func softmaxRowsFast(_ []Softmax, _ []float32, _ int, _ []int32, _ []float32, _ int) bool {
	return false
}
func storeKeyF16Fast(_ []uint16, _ []float32) int { return 0 }

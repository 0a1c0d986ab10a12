//go:build purego || !amd64

package tiles

func (s *Sums) multiplyFast(act, wgt []float32) bool { return false }
func widenFast([]float32, []uint16) bool             { return false }
func widenRowsFast([]float32, []uint16) bool         { return false }

//go:build purego || !amd64

package tiles

func (s *Sums) multiplyFast(act, wgt []float32) bool { return false }
func widenFast([]float32, []uint16) bool             { return false }
func widenRowsFast([]float32, []uint16) bool         { return false }

func (s *Sums) narrowFast(*[Size]uint16, float32) bool                            { return false }
func unpackFast(*[Size]uint16, []byte, *[Side][Codes]uint16, int) bool            { return false }
func scaleValuesFast([][Codes]uint16, *[Codes]float32, []float32, []float32) bool { return false }

//go:build purego || !amd64

package tiles

func (s *Sums) multiplyFast(act, wgt []float32, columns int) bool { return false }
func widenFast([]float32, []uint16) bool                          { return false }
func widenRowsFast([]float32, []uint16) bool                      { return false }

func (s *Sums) narrowFast(*[Size]uint16, float32) bool                            { return false }
func superGroupsFast([]uint16, []byte, *[Codes]float32, int) bool                 { return false }
func unpackFast(*[Size]uint16, []byte, *[Side][Codes]uint16, int) bool            { return false }
func scaleValuesFast([][Codes]uint16, *[Codes]float32, []float32, []float32) bool { return false }

// LooksUp reports whether LookUp has instructions.
func LooksUp() bool { return false }

func lookUpFast(*[Rows]int32, []byte, []int16, int) bool                        { return false }
func addScaledFast(*[Rows]int32, *[Rows]int32, *[Rows]int16, int32, int32) bool { return false }

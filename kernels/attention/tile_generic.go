//go:build purego || !amd64

package attention

// haveTiles returns false: keys and values are read as they are.
func haveTiles() bool { return false }

func tiledFrom() int { return 0 }

func vectorFloats() int { return KeyGroup }

func panel() int { return 64 }

func (p *product) fast(_ []float32, _ int) bool { return false }

func (t *Tile) weighFast(_ []float32, _, _ int) bool { return false }

func widenHalvesFast(_ []float32, _ int, _ []uint16, _, _, _ int) bool { return false }

func widenBytesFast(_ []float32, _ int, _ []int8, _, _, _ int) bool { return false }

package quantize

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/models/gguf"
)

// tailI2S is the size of what follows the last block of I2_S: the scale, and padding.
const tailI2S = 32

// encodeI2S writes all blocks of a tensor and its scale.
func encodeI2S(dst []byte, src []float32, scale float32) error {
	if size, err := gguf.I2_S.Size([]int{max(128, len(src))}); err != nil || len(src) == 0 || size != len(dst) {
		return fmt.Errorf("quantize: %d values do not take %d bytes of %v", len(src), len(dst), gguf.I2_S)
	}
	blocksI2S(dst, src, scale)
	putTailI2S(dst[len(dst)-tailI2S:], scale)
	return nil
}

// blocksI2S writes trits of src/scale, rounded, in the form that pairsI2S of package gguf
// reads: 128 in 32 bytes, the first 32 in the highest bits.
func blocksI2S(dst []byte, src []float32, scale float32) {
	id := inverse(scale)
	for ; len(src) > 0; dst, src = dst[32:], src[128:] {
		for i := range 32 {
			q := byte(0)
			for k := range 4 {
				trit := math.Round(float64(src[32*k+i] * id))
				q |= byte(int(max(-1, min(1, trit)))+1) << (6 - 2*k)
			}
			dst[i] = q
		}
	}
}

func putTailI2S(dst []byte, scale float32) {
	clear(dst)
	binary.LittleEndian.PutUint32(dst, math.Float32bits(scale))
}

// isTernary reports whether each group of n values has one magnitude but zeros.
func isTernary(x []float32, n int) bool {
	for ; len(x) > 0; x = x[n:] {
		d := abs(largest(x[:n]))
		for _, v := range x[:n] {
			if v != 0 && abs(v) != d {
				return false
			}
		}
	}
	return true
}

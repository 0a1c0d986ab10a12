package quantize

import "github.com/lutra-lm/lutra/models/gguf"

// Blocks of 32 with importances. Without, gguf.Quantize rounds to the nearest.

var affineSearch = search{-0.9, 0.05, 36}

// blocks32 calls do for the blocks of whole rows, with the importances of their values.
func blocks32(dst []byte, size int, src, columns []float32, do func(block []byte, x, weights *[32]float32)) {
	for row := 0; row < len(src); row += len(columns) {
		x := src[row : row+len(columns)]
		meanSquare := sumSquares(x) / float32(len(x))
		for i := 0; i < len(x); i += 32 {
			var w [32]float32
			importance(w[:], x[i:i+32], columns[i:], meanSquare)
			do(dst[:size], (*[32]float32)(x[i:]), &w)
			dst = dst[size:]
		}
	}
}

func encodeQ4_0(dst []byte, src, columns []float32) {
	blocks32(dst, 18, src, columns, func(block []byte, x, weights *[32]float32) {
		var codes [32]byte
		putHalf(block, fitSymmetric(codes[:], x[:], weights[:], 8))
		putNibbles(block[2:], &codes)
	})
}

func encodeQ4_1(dst []byte, src, columns []float32) {
	blocks32(dst, 20, src, columns, func(block []byte, x, weights *[32]float32) {
		var codes [32]byte
		putAffine(block, &codes, x, weights, 15)
		putNibbles(block[4:], &codes)
	})
}

func encodeQ5_0(dst []byte, src, columns []float32) {
	blocks32(dst, 22, src, columns, func(block []byte, x, weights *[32]float32) {
		var codes [32]byte
		putHalf(block, fitSymmetric(codes[:], x[:], weights[:], 16))
		gguf.PutFifths(block[2:], &codes)
	})
}

func encodeQ5_1(dst []byte, src, columns []float32) {
	blocks32(dst, 24, src, columns, func(block []byte, x, weights *[32]float32) {
		var codes [32]byte
		putAffine(block, &codes, x, weights, 31)
		gguf.PutFifths(block[4:], &codes)
	})
}

func putAffine(block []byte, codes *[32]byte, x, weights *[32]float32, top int) {
	scale, offset := fitAffine(codes, x, weights, top, affineSearch)
	putHalf(block, scale)
	putHalf(block[2:], -offset)
}

// putNibbles writes 32 codes of 4 bits, code i and i+16 in byte i.
func putNibbles(dst []byte, codes *[32]byte) {
	for i := range 16 {
		dst[i] = codes[i] | codes[16+i]<<4
	}
}

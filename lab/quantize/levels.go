package quantize

import "encoding/binary"

// levels are the values of the codes of IQ4_NL and IQ4_XS (kvalues_iq4nl).
var levels = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// below holds for each integer from -128 the last code whose level is not above it; levels
// are integers.
var below = func() (codes [256]byte) {
	for i := range codes {
		for codes[i] < 14 && levels[codes[i]+1] <= float32(i-128) {
			codes[i]++
		}
	}
	return codes
}()

// nearestLevel returns the code whose level is nearest to x, the upper of two.
func nearestLevel(x float32) byte {
	if x <= levels[0] {
		return 0
	}
	if x >= levels[15] {
		return 15
	}
	c := below[byte(int(x+128))] & 15 // a sum that rounds up to a level gives that, which is nearest
	if x-levels[c] < levels[(c+1)&15]-x {
		return c
	}
	return (c + 1) & 15
}

// fitLevels finds the scale that brings 32 values nearest to levels: -127 is tried for the
// value of largest magnitude, then numbers around it.
func fitLevels(x, weights *[32]float32) (scale float32) {
	most := largest(x[:])
	if abs(most) < tiny {
		return 0
	}
	const tries = 7
	best := float32(0)
	for try := -tries - 1; try <= tries; try++ {
		var inverse float32
		if try < -tries {
			inverse = 1 / (-most / levels[0])
		} else {
			inverse = (float32(try) + levels[0]) / most
		}
		var sumQX, sumQ2 float32
		for i, v := range x {
			q := levels[nearestLevel(float32(inverse*v))]
			w := weights[i]
			sumQX += float32(float32(w*q) * v)
			sumQ2 += float32(float32(w*q) * q)
		}
		if try < -tries {
			if sumQ2 > 0 {
				scale = sumQX / sumQ2
			}
			best = float32(scale * sumQX)
		} else if sumQ2 > 0 && float32(sumQX*sumQX) > float32(best*sumQ2) {
			scale = sumQX / sumQ2
			best = float32(scale * sumQX)
		}
	}
	return scale
}

// levelWeights sets w to the weights of errors of 32 values of a block whose squares have
// half that mean.
func levelWeights(w, x *[32]float32, columns []float32, meanSquare float32) {
	if columns != nil {
		importance(w[:], x[:], columns, meanSquare)
		return
	}
	for i, v := range x {
		w[i] = float32(v * v)
	}
}

// inverse returns 1/d, 0 for 0.
func inverse(d float32) float32 {
	if d == 0 {
		return 0
	}
	return 1 / d
}

func encodeIQ4NL(dst []byte, src, columns []float32) {
	for at := 0; at < len(src); at += 32 {
		block, x := dst[at/32*18:][:18], (*[32]float32)(src[at:])
		var w [32]float32
		levelWeights(&w, x, rowPart(columns, at, 32), float32(sumSquares(x[:])*(2./32)))
		scale := fitLevels(x, &w)
		putHalf(block, scale)
		putLevels(block[2:], x, inverse(scale))
	}
}

// putLevels writes the codes of 32 values times inverse.
func putLevels(dst []byte, x *[32]float32, inverse float32) {
	var codes [32]byte
	for i, v := range x {
		codes[i] = nearestLevel(float32(inverse * v))
	}
	putNibbles(dst, &codes)
}

func encodeIQ4XS(dst []byte, src, columns []float32) {
	for at := 0; at < len(src); at += superLen {
		blockIQ4XS(dst[at/superLen*136:][:136], src[at:at+superLen], rowPart(columns, at, superLen))
	}
}

// blockIQ4XS writes a f16 scale, two bits of each group's scale, then four, then the codes.
func blockIQ4XS(dst []byte, src, columns []float32) {
	meanSquare := float32(sumSquares(src) * (2. / superLen))
	var scales [8]float32
	most := float32(0)
	for g := range scales {
		var w [32]float32
		x := (*[32]float32)(src[32*g:])
		levelWeights(&w, x, rowPart(columns, 32*g, 32), meanSquare)
		scales[g] = fitLevels(x, &w)
		if abs(scales[g]) > abs(most) {
			most = scales[g]
		}
	}
	d := -most / 32
	putHalf(dst, d)
	id, high := inverse(d), uint16(0)
	clear(dst[4:8])
	for g, s := range scales {
		l := code(float32(id*s), 32)
		putLevels(dst[8+16*g:], (*[32]float32)(src[32*g:]), inverse(float32(d*float32(l))))
		l += 32
		dst[4+g/2] |= byte(l&15) << (4 * (g % 2))
		high |= uint16(l>>4) << (2 * g)
	}
	binary.LittleEndian.PutUint16(dst[2:], high)
}

package vector

import "math"

// MinAbsMax is the smallest absmax that is quantised; below it 127/absmax
// could overflow, and the group is zero.
const MinAbsMax = 0x1p-100

// RoundInt8 sets q to x·inv rounded half to even and returns −Σq.
func RoundInt8(q []int8, x []float32, inv float32) (negSum int32) {
	const magic = 0x1.8p23 // adding it leaves the rounded integer in the low bits
	for i, v := range x {
		c := int8(math.Float32bits(float32(v*inv) + magic)) // the conversion forbids a fused multiply-add
		q[i] = c
		negSum -= int32(c)
	}
	return negSum
}

package vector

// SumWithin returns the sum of the elements of x above lo and up to hi, and
// their number. NaNs are passed over. The sum runs in sixteen
// interleaved partial sums and has the same bits on every instruction set.
func SumWithin(x []float32, lo, hi float32) (sum float32, n int) {
	var part [16]float32
	i, n := sumWithinFast(&part, x, lo, hi)
	for ; i < len(x); i++ {
		if v := x[i]; v > lo && v <= hi {
			part[i&15] += v
			n++
		}
	}
	for j := range 8 {
		part[j] += part[j+8]
	}
	return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7])), n
}

package jsonwrite

import "math"

// ByteList returns bytes as JSON lists them, which would be base64 otherwise.
func ByteList(piece []byte) []int {
	list := make([]int, len(piece))
	for i, b := range piece {
		list[i] = int(b)
	}
	return list
}

// Finite returns a log-probability that JSON can write: OpenAI's -9999 stands for
// "impossible".
func Finite(logprob float32) float64 {
	const impossible = -9999
	if v := float64(logprob); v > impossible && !math.IsInf(v, 1) {
		return v
	}
	return impossible
}

// Number returns a score as JSON can write it, with the digits that a float32 has.
func Number(v float32) float64 {
	if f := float64(v); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return Rounded(f)
	}
	return 0
}

// Rounded returns v with six digits after the point.
func Rounded(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// Optional returns null for no text.
func Optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

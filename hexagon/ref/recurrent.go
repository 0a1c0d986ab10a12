package ref

// MulRows sets rows to products of numbers.
func MulRows(dst, a, b Rows, n, width int) {
	for i := range n {
		y, q := dst.row(i, width), b.row(i, width)
		for k, v := range a.row(i, width) {
			y[k] = v * q[k]
		}
	}
}

// Conv convolves the columns of rows with weights [taps][width], of which the last is a row's own.
// state [taps-1][width] has the rows before the first one, and gets those before what follows.
func Conv(dst, src Rows, weights, state []float32, n, width, taps int) {
	behind := taps - 1
	row := func(i int) []float32 {
		if i < 0 {
			return state[(behind+i)*width:][:width]
		}
		return src.row(i, width)
	}
	for i := range n {
		y := dst.row(i, width)
		for tap := range taps {
			w := weights[tap*width:][:width]
			for k, v := range row(i - behind + tap) {
				if p := float32(w[k] * v); tap == 0 {
					y[k] = p
				} else {
					y[k] += p
				}
			}
		}
	}
	for i := range behind {
		copy(state[i*width:][:width], row(n-behind+i))
	}
}

package ref

import "math"

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
// state [taps-1][width] has the rows before the first one, and gets those before what follows. With silu
// results are SiLUs.
func Conv(dst, src Rows, weights, state []float32, n, width, taps int, silu bool) {
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
		for k, v := range y {
			if silu {
				y[k] = v * sigmoid(v)
			}
		}
	}
	for i := range behind {
		copy(state[i*width:][:width], row(n-behind+i))
	}
}

// logSeries has the coefficients of ln((1+u)/(1-u))/(2u) in u², the highest power first.
var logSeries = [...]float32{1. / 13, 1. / 11, 1. / 9, 1. / 7, 1. / 5, 1. / 3, 1}

// softplus is ln(1+e^x): max(x, 0) and ln(1+e) of e = e^-|x|, where u = e/(2+e).
func softplus(x float32) float32 {
	e := float32(0.5 * expMinus(x))
	u := float32(e * inverse(e+1))
	square, p := float32(u*u), logSeries[0]
	for _, c := range logSeries[1:] {
		p = float32(p*square) + c
	}
	if math.Signbit(float64(x)) {
		x = 0
	}
	return x + float32(float32(u+u)*p)
}

// Gates sets rows to e^-|a·softplus(s·x + d)|, weights being s, d and a of the columns.
func Gates(dst, src Rows, weights []float32, n, width int) {
	s, d, a := weights[:width], weights[width:2*width], weights[2*width:]
	for i := range n {
		y := dst.row(i, width)
		for k, x := range src.row(i, width) {
			y[k] = expMinus(float32(a[k] * softplus(float32(s[k]*x)+d[k])))
		}
	}
}

// Delta holds the sizes of an OpDelta: Keys heads of queries and keys, each for Share heads of values; and the
// columns of gates where decays and betas of these begin.
type Delta struct {
	Keys, Share, Width int
	Grouped            bool
	Decay, Beta        int
}

// Rows takes heads [first, end) of n rows through their states, from one to another: nil is zeros. Both may be one.
func (d *Delta) Rows(dst, x, gates Rows, from, to []float32, n, first, end int) {
	heads, width := d.Keys*d.Share, d.Width
	for head := first; head < end; head++ {
		key := head % d.Keys
		if d.Grouped {
			key = head / d.Share
		}
		for panel := head * width / lanes; panel < (head+1)*width/lanes; panel++ {
			state := to[panel*width*lanes:][:width*lanes]
			if from == nil {
				clear(state)
			} else {
				copy(state, from[panel*width*lanes:])
			}
			for i := range n {
				row := x.row(i, (2*d.Keys+heads)*width)
				of := gates.row(i, max(d.Decay, d.Beta)+heads)
				d.row((*[lanes]float32)(dst.row(i, heads*width)[panel*lanes:]), row[key*width:][:width], row[(d.Keys+key)*width:][:width],
					(*[lanes]float32)(row[2*d.Keys*width+panel*lanes:]), of[d.Decay+head], of[d.Beta+head], state)
			}
		}
	}
}

// row takes the columns of a panel, state [len(k)][lanes], through a row.
func (d *Delta) row(y *[lanes]float32, q, k []float32, v *[lanes]float32, decay, beta float32, state []float32) {
	var told, correct, sum [lanes]float32
	for i, k := range k {
		for c, s := range state[i*lanes:][:lanes] {
			told[c] += float32(k * s)
		}
	}
	for c := range correct {
		correct[c] = float32(v[c]-float32(told[c]*decay)) * beta
	}
	for i, k := range k {
		s := (*[lanes]float32)(state[i*lanes:])
		for c := range s {
			s[c] = float32(s[c]*decay) + float32(k*correct[c])
			sum[c] += float32(q[i] * s[c])
		}
	}
	*y = sum
}

package tiles

// Rows is the number of rows in a line of codes in bit planes.
const Rows = lineBytes

// LookUp adds the products of 32 columns to t. lines begins with the 4 lines of the
// highest of bits planes; tables belong to four pairs of quads, 64 numbers apart,
// as hexagon/device describes them. The 64 even bytes' rows come first in t. Where
// LooksUp is false, LookUpPairs is faster for many rows.
func LookUp(t *[Rows]int32, lines []byte, tables []int16, bits int) {
	_, _ = lines[(bits-1)*planeBytes+4*lineBytes-1], tables[3*64+31]
	if !lookUpFast(t, lines, tables, bits) {
		var p [4]Pair
		MakePairs(&p, tables)
		LookUpPairs(t, lines, &p, bits)
	}
}

// Pair is the tables of a pair of quads, and their sums for each byte of a line.
type Pair [256]int32

// MakePairs makes the four pairs' sums of LookUp's tables.
func MakePairs(p *[4]Pair, tables []int16) {
	for i := range p {
		t := tables[64*i:][:32]
		for hi := range 16 {
			row, b := (*[16]int32)(p[i][hi*16:]), int32(t[2*hi+1])
			for lo := range row {
				row[lo] = int32(t[2*lo]) + b
			}
		}
	}
}

// LookUpPairs looks up as LookUp does, eight columns at once.
func LookUpPairs(t *[Rows]int32, lines []byte, p *[4]Pair, bits int) {
	type four = [4 * lineBytes]byte
	t0, t1, t2, t3 := &p[0], &p[1], &p[2], &p[3]
	const l1, l2, l3 = lineBytes, 2 * lineBytes, 3 * lineBytes
	switch bits {
	case 1:
		p := (*four)(lines)
		for b := range Rows {
			t[b>>1|b&1<<6] += t0[p[b]] + t1[p[b+l1]] + t2[p[b+l2]] + t3[p[b+l3]]
		}
	case 2:
		p, q := (*four)(lines), (*four)(lines[planeBytes:])
		for b := range Rows {
			high := t0[p[b]] + t1[p[b+l1]] + t2[p[b+l2]] + t3[p[b+l3]]
			t[b>>1|b&1<<6] += 2*high + t0[q[b]] + t1[q[b+l1]] + t2[q[b+l2]] + t3[q[b+l3]]
		}
	case 4:
		p, q, r, s := (*four)(lines), (*four)(lines[planeBytes:]), (*four)(lines[2*planeBytes:]), (*four)(lines[3*planeBytes:])
		for b := range Rows {
			sum := t0[p[b]] + t1[p[b+l1]] + t2[p[b+l2]] + t3[p[b+l3]]
			sum = 2*sum + t0[q[b]] + t1[q[b+l1]] + t2[q[b+l2]] + t3[q[b+l3]]
			sum = 2*sum + t0[r[b]] + t1[r[b+l1]] + t2[r[b+l2]] + t3[r[b+l3]]
			t[b>>1|b&1<<6] += 2*sum + t0[s[b]] + t1[s[b+l1]] + t2[s[b+l2]] + t3[s[b+l3]]
		}
	}
}

// AddScaled adds ((a·t - b)·scale + 2¹⁴) >> 15 to y, the product in 64 bits.
func AddScaled(y, t *[Rows]int32, scales *[Rows]int16, a, b int32) {
	if addScaledFast(y, t, scales, a, b) {
		return
	}
	for i := range y {
		y[i] += int32((int64(a*t[i]-b)*int64(scales[i]) + 1<<14) >> 15)
	}
}

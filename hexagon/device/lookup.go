package device

import (
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
)

// precompute is ref.Precompute, with a sum for each entry.
func precompute(tables []int16, sums []int32, x []int16) {
	for half := range len(x) / layout.Tile {
		x := (*[layout.Tile]int16)(x[half*layout.Tile:])
		var sum int32
		for _, v := range x {
			sum += int32(v)
		}
		sums[half] = sum
		of256 := tables[half/8*1024:][:1024]
		for quad := range 8 {
			t := of256[layout.TableIndex(half%8, quad, 0):][:31]
			a, b, c, d := x[2*quad], x[16+2*quad], x[2*quad+1], x[17+2*quad]
			for n, v := range [4]int16{0, a, b, a + b} {
				t[2*n], t[2*n+8], t[2*n+16], t[2*n+24] = v, v+c, v+d, v+c+d
			}
		}
	}
}

// pairTables hold for each pair of quads, and each byte of a line, the sum of the two
// entries that its nibbles select: eight columns a lookup.
type pairTables []([256]int32)

// build makes the tables of a half.
func (p pairTables) build(tables []int16, half int) {
	for pair := range 4 {
		out := &p[half*4+pair]
		t := tables[half/8*1024+layout.TableIndex(half%8, 2*pair, 0):][:32]
		for hi := range 16 {
			row, b := (*[16]int32)(out[hi*16:]), int32(t[2*hi+1])
			for lo := range row {
				row[lo] = int32(t[2*lo]) + b
			}
		}
	}
}

// gemv is an OpGEMV.
type gemv struct {
	ref.Matrix
	y      []int32
	tables []int16
	sums   []int32
	pairs  pairTables
	a, b   int32
}

// rowOfByte and scaleOfByte are the row and the scale of a line's bytes.
var rowOfByte, scaleOfByte = func() (r, s [layout.Strip]uint8) {
	for b := range r {
		row := layout.RowOfByte(b)
		r[b], s[b] = uint8(row), uint8(layout.ScaleIndex(row))
	}
	return
}()

// strip computes 128 rows.
func (g *gemv) strip(strip int) {
	size := layout.BlockBytes(g.Bits)
	codes := g.Codes[strip*(g.K/layout.Block)*size:]
	var y [layout.Strip]int32
	for group := range g.K / g.Group {
		var t [layout.Strip]int32 // by bytes
		var x int32
		for half := group * g.Group / layout.Tile; half < (group+1)*g.Group/layout.Tile; half++ {
			lines := codes[half/2*size+half%2*4*layout.LineBytes:]
			lookUp(&t, lines, (*[4][256]int32)(g.pairs[half*4:]), g.Bits)
			x += g.sums[half]
		}
		if g.Scales == nil {
			for b := range t {
				y[b] = g.a*t[b] - g.b*x
			}
			continue
		}
		at := (strip*(g.K/g.Group) + group) * layout.Strip
		scales := (*[layout.Strip]int16)(g.Scales[at:])
		for b := range t {
			y[b] += int32((int64(g.a*t[b]-g.b*x)*int64(scales[scaleOfByte[b]&127]) + 1<<14) >> 15)
		}
		if g.Offsets != nil {
			offsets := (*[layout.Strip]int16)(g.Offsets[at:])
			for b := range y {
				y[b] += int32((int64(x<<3)*int64(offsets[scaleOfByte[b]&127]) + 1<<14) >> 15)
			}
		}
	}
	out := (*[layout.Strip]int32)(g.y[strip*layout.Strip:])
	for b, v := range y {
		out[rowOfByte[b]&127] = v
	}
}

// lookUp adds the products of 32 columns to t. lines begins with the half's of the
// highest plane; the next plane's are 8 lines further.
func lookUp(t *[layout.Strip]int32, lines []byte, tables *[4][256]int32, bits int) {
	type four = [4 * layout.LineBytes]byte
	const plane = 8 * layout.LineBytes
	t0, t1, t2, t3 := &tables[0], &tables[1], &tables[2], &tables[3]
	const l1, l2, l3 = layout.LineBytes, 2 * layout.LineBytes, 3 * layout.LineBytes
	switch bits {
	case 1:
		p := (*four)(lines)
		for b := range t {
			t[b] += t0[p[b]] + t1[p[b+l1]] + t2[p[b+l2]] + t3[p[b+l3]]
		}
	case 2:
		p, q := (*four)(lines), (*four)(lines[plane:])
		for b := range t {
			high := t0[p[b]] + t1[p[b+l1]] + t2[p[b+l2]] + t3[p[b+l3]]
			t[b] += 2*high + t0[q[b]] + t1[q[b+l1]] + t2[q[b+l2]] + t3[q[b+l3]]
		}
	default:
		p, q, r, s := (*four)(lines), (*four)(lines[plane:]), (*four)(lines[2*plane:]), (*four)(lines[3*plane:])
		for b := range t {
			sum := t0[p[b]] + t1[p[b+l1]] + t2[p[b+l2]] + t3[p[b+l3]]
			sum = 2*sum + t0[q[b]] + t1[q[b+l1]] + t2[q[b+l2]] + t3[q[b+l3]]
			sum = 2*sum + t0[r[b]] + t1[r[b+l1]] + t2[r[b+l2]] + t3[r[b+l3]]
			t[b] += 2*sum + t0[s[b]] + t1[s[b+l1]] + t2[s[b+l2]] + t3[s[b+l3]]
		}
	}
}

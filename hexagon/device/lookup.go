package device

import (
	"slices"

	"github.com/lutra-lm/lutra/hexagon/hmx/tiles"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
)

// precompute computes ref.Precompute, with a sum for each entry.
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

// gemv is an OpGEMV of a row of activations.
type gemv struct {
	ref.Matrix
	y      []int32
	tables []int16
	sums   []int32
	pairs  [][4]tiles.Pair // nil: lookups have instructions
	x      []int32         // activations, of codes in bytes
	values [2][256]int32   // what the low and the high half of a byte of codes stand for
	a, b   int32
}

// tables returns the tables of row i of n, and its sums.
func (g *Go) tables(at, i uint32, k int, bytes bool) (tables []int16, sums []int32) {
	at += i * uint32(TableStride(k, bytes))
	n := TableBytes(k, bytes)
	return view[int16](g, at, n/2), view[int32](g, at+uint32(n), k/32)
}

// gemv runs an OpGEMV: a strip is computed for all rows of activations at once.
func (g *Go) gemv(p *Packet) {
	a := &p.Args
	n, m, k := int(a[3]), int(a[6]), int(a[7])
	g.gemvs = slices.Grow(g.gemvs[:0], n)[:n]
	of := gemv{Matrix: g.matrix(p, a[1], a[4], a[5], m, k, a[8], a[9]), a: int32(a[10]), b: int32(a[11])}
	halves := k / layout.Tile
	for i := range g.gemvs {
		row := &g.gemvs[i]
		*row = of
		row.y = view[int32](g, a[0]+uint32(4*m*i), m)
		row.tables, row.sums = g.tables(a[2], uint32(i), k, of.InBytes)
		if of.InBytes {
			row.a, row.b = 1, layout.ByteZero
			row.split()
		} else if !tiles.LooksUp() {
			if len(g.pairs) < n*halves {
				g.pairs = make([][4]tiles.Pair, n*halves)
			}
			row.pairs = g.pairs[i*halves:][:halves]
			g.parallel(k/layout.TableCols, func(part int) {
				for half := 8 * part; half < 8*part+8; half++ {
					tiles.MakePairs(&row.pairs[half], row.of(half))
				}
			})
		}
	}
	g.parallel(m/layout.Strip, func(strip int) {
		for i := range g.gemvs {
			g.gemvs[i].strip(strip)
		}
	})
	clear(g.gemvs)
}

// of returns the tables of a half.
func (g *gemv) of(half int) []int16 {
	return g.tables[half/8*1024+layout.TableIndex(half%8, 0, 0):]
}

// rowOfByte and scaleOfByte are the row and the scale of a line's bytes.
var rowOfByte, scaleOfByte = func() (r, s [layout.Strip]uint8) {
	for b := range r {
		row := layout.RowOfByte(b)
		r[b], s[b] = uint8(row), uint8(layout.ScaleIndex(row))
	}
	return
}()

// split prepares products of codes in bytes.
func (g *gemv) split() {
	g.x = make([]int32, g.K)
	for k := range g.x {
		g.x[k] = ref.Activation(g.tables, k)
	}
	for q := range 256 {
		g.values[0][q] = int32(q)
		if g.Values != nil {
			g.values[0][q], g.values[1][q] = int32(g.Values[q&15]), int32(g.Values[q>>4])
		}
	}
}

// addBytes adds the products of 32 columns of codes in bytes to t, which is in the order of
// scales.
func (g *gemv) addBytes(t *[layout.Strip]int32, codes []byte, x []int32) {
	low, high := &g.values[0], &g.values[1]
	step := 32 / g.Bits // columns of four lines
	for k := 0; k < layout.Tile; k += step {
		for i := range 4 {
			line := (*[layout.LineBytes]byte)(codes)
			codes = codes[layout.LineBytes:]
			x := x[k:][:step]
			for j := range layout.Strip / 4 {
				c := (*[4]byte)(line[4*j:])
				sum := low[c[0]]*x[0] + low[c[1]]*x[1] + low[c[2]]*x[2] + low[c[3]]*x[3]
				if step == 8 {
					sum += high[c[0]]*x[4] + high[c[1]]*x[5] + high[c[2]]*x[6] + high[c[3]]*x[7]
				}
				t[i>>1<<6|j<<1|i&1] += sum
			}
		}
	}
}

// strip computes 128 rows.
func (g *gemv) strip(strip int) {
	size := layout.BlockBytes(g.Bits)
	codes := g.Codes[strip*(g.K/layout.Block)*size:]
	var y [layout.Strip]int32 // in the order of scales, as lookups have it, too
	for group := range g.K / g.Group {
		var t [layout.Strip]int32
		var x int32
		for half := group * g.Group / layout.Tile; half < (group+1)*g.Group/layout.Tile; half++ {
			lines := codes[half/2*size+half%2*4*layout.LineBytes:]
			if g.InBytes {
				g.addBytes(&t, codes[half*size/2:][:size/2], g.x[half*layout.Tile:][:layout.Tile])
			} else if g.pairs != nil {
				tiles.LookUpPairs(&t, lines, &g.pairs[half], g.Bits)
			} else {
				tiles.LookUp(&t, lines, g.of(half), g.Bits)
			}
			x += g.sums[half]
		}
		if g.Scales == nil {
			for i := range t {
				y[i] = g.a*t[i] - g.b*x
			}
			continue
		}
		at := (strip*(g.K/g.Group) + group) * layout.Strip
		tiles.AddScaled(&y, &t, (*[layout.Strip]int16)(g.Scales[at:]), g.a, g.b*x)
		if g.Offsets != nil {
			tiles.AddScaled(&y, &t, (*[layout.Strip]int16)(g.Offsets[at:]), 0, -(x << 3))
		}
	}
	out := (*[layout.Strip]int32)(g.y[strip*layout.Strip:])
	for b, i := range scaleOfByte {
		out[rowOfByte[b]&127] = y[i&127]
	}
}

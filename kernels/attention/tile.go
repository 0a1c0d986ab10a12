package attention

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// Tile is keys or values that become float32 once for the many queries of a tile. Its products are the chains of
// additions of ScoresF16, AccumF16, ScoresQ8 and AccumQ8, so that a query's result does not depend on which of both
// it took. The zero value is ready for use, by one worker at a time.
type Tile struct {
	// Panels of as many columns as a core sums at once, the last one's rounded up to whole vectors: [panels][rows][panel].
	// Rows are dimensions of keys, or values.
	panels  []float32
	scale   []float32 // of a key, or of a value
	weights []float32 // [queries][rows], times the scales of the values
	rows    int
	columns int
	scaled  bool
}

// Tiled tells whether a tile is the faster way for g queries of d elements.
func Tiled(g, d int) bool { return haveTiles() && g >= tiledFrom() && d%KeyGroup == 0 }

// TileQueries returns about how many queries of a KV head should read the same keys together.
func TileQueries() int {
	if haveTiles() {
		return 96 // whole sixes of 1, 2, 3, 4, 6 and 8 heads
	}
	return 32
}

// KeysF16 makes a tile of the first n keys of d elements of the groups at, rounded up to whole groups; see ScoresF16.
func (t *Tile) KeysF16(k []uint16, at []int32, n, d int) {
	at = t.keys(len(k), at, n, d, false)
	for j, first := range at {
		to, ld := t.column(j * KeyGroup)
		widenHalves(t.panels[to:], ld, k[int(first)*d:], KeyGroup, d, KeyGroup)
	}
}

// KeysQ8 makes a tile of the first n keys of d elements of the groups at, rounded up to whole groups; see ScoresQ8.
func (t *Tile) KeysQ8(k []int8, scale []float32, at []int32, n, d int) {
	at = t.keys(len(k), at, n, d, true)
	for j, first := range at {
		to, ld := t.column(j * KeyGroup)
		widenBytes(t.panels[to:], ld, k[int(first)*d:], KeyGroup, d, KeyGroup)
		copy(t.scale[j*KeyGroup:], scale[first:][:KeyGroup])
	}
}

// keys makes room for n keys of d elements, and returns their groups.
func (t *Tile) keys(elements int, at []int32, n, d int, scaled bool) []int32 {
	at = at[:(n+KeyGroup-1)/KeyGroup]
	checkGroups(elements, at, KeyGroup, d)
	t.shape(d, len(at)*KeyGroup, scaled)
	return at
}

// ValuesF16 makes a tile of the first n values of d elements of the groups at; see AccumF16.
func (t *Tile) ValuesF16(v []uint16, at []int32, n, d int) {
	t.shape(n, d, false)
	at = checkValues(len(v), at, n, d)
	t.eachPart(at, func(to, ld, first, column, rows, columns int) {
		widenHalves(t.panels[to:], ld, v[first*d+column:], d, rows, columns)
	})
}

// ValuesQ8 makes a tile of the first n values of d elements of the groups at; see AccumQ8.
func (t *Tile) ValuesQ8(v []int8, scale []float32, at []int32, n, d int) {
	t.shape(n, d, true)
	at = checkValues(len(v), at, n, d)
	t.eachPart(at, func(to, ld, first, column, rows, columns int) {
		widenBytes(t.panels[to:], ld, v[first*d+column:], d, rows, columns)
	})
	for j, first := range at {
		rows := min(KeyGroup, n-j*KeyGroup)
		copy(t.scale[j*KeyGroup:][:rows], scale[first:])
	}
}

// Scores sets dst[i*ld+j] to the product of query q[i] and key j, for g queries.
func (t *Tile) Scores(dst []float32, ld int, q []float32, g int) {
	t.products(dst, ld, q[:g*t.rows], t.rows, g, false)
}

// Accum adds the values, of weights p[i*ld+j], to acc[g][d].
func (t *Tile) Accum(acc, p []float32, ld, g int) {
	if t.scaled {
		if len(t.weights) < g*t.rows {
			t.weights = make([]float32, g*t.rows)
		}
		if _ = p[(g-1)*ld+t.rows-1]; !t.weighFast(p, ld, g) {
			for i := range g {
				vector.Mul(t.weights[i*t.rows:(i+1)*t.rows], p[i*ld:], t.scale)
			}
		}
		p, ld = t.weights, t.rows
	}
	t.products(acc[:g*t.columns], t.columns, p, ld, g, true)
}

// products sets dst[i] to a[i][rows] times the panels, or adds that.
func (t *Tile) products(dst []float32, ldd int, a []float32, lda, g int, add bool) {
	_, _ = dst[(g-1)*ldd+t.columns-1], a[(g-1)*lda+t.rows-1]
	for column := 0; column < t.columns; column += panel() {
		at, ld := t.column(column)
		p := product{a: a, lda: lda, b: t.panels[at:][:t.rows*ld], ldb: ld, rows: g, sums: t.rows, columns: min(ld, t.columns-column), add: add}
		if t.scaled && !add {
			p.scale = t.scale[column:][:ld]
		}
		p.run(dst[column:], ldd)
	}
}

// product is rows of queries or weights times a panel.
type product struct {
	a        []float32 // [rows][lda]
	b        []float32 // [sums][ldb]
	lda, ldb int
	rows     int
	sums     int
	columns  int // of the panel that there are
	add      bool
	scale    []float32 // of the columns; nil: none
}

// run sets dst[rows][columns], ldd apart, to the product, or adds it.
func (p *product) run(dst []float32, ldd int) {
	if p.fast(dst, ldd) {
		return
	}
	for i := range p.rows {
		to := dst[i*ldd:][:p.columns]
		if !p.add {
			clear(to)
		}
		for k, w := range p.a[i*p.lda:][:p.sums] {
			for c, x := range p.b[k*p.ldb:][:p.columns] {
				to[c] += w * x
			}
		}
		if p.scale != nil {
			vector.Mul(to, to, p.scale)
		}
	}
}

// shape makes room for rows × columns, and for scales.
func (t *Tile) shape(rows, columns int, scaled bool) {
	t.rows, t.columns, t.scaled = rows, columns, scaled
	if n := rows * cpu.RoundUp(columns, vectorFloats()); len(t.panels) < n {
		t.panels = cpu.Aligned[float32](n)
	}
	if n := max(rows, cpu.RoundUp(columns, vectorFloats())); len(t.scale) < n {
		t.scale = make([]float32, n)
	}
}

// column returns where a column begins, and the distance of its rows.
func (t *Tile) column(c int) (at, ld int) {
	first := c / panel() * panel()
	return first*t.rows + c - first, min(panel(), cpu.RoundUp(t.columns, vectorFloats())-first)
}

// eachPart calls f for every group of values and panel: rows × columns of value first from column on go to place to,
// rows ld apart.
func (t *Tile) eachPart(at []int32, f func(to, ld, first, column, rows, columns int)) {
	for column := 0; column < t.columns; column += panel() {
		to, ld := t.column(column)
		for j, first := range at {
			f(to+j*KeyGroup*ld, ld, int(first), column, min(KeyGroup, t.rows-j*KeyGroup), min(ld, t.columns-column))
		}
	}
}

// widenHalves sets dst[i*ldd+j] to src[i*lds+j] for i < rows, j < columns, a multiple of 8.
func widenHalves(dst []float32, ldd int, src []uint16, lds, rows, columns int) {
	_, _ = dst[(rows-1)*ldd+columns-1], src[(rows-1)*lds+columns-1]
	if widenHalvesFast(dst, ldd, src, lds, rows, columns) {
		return
	}
	for i := range rows {
		for j, h := range src[i*lds:][:columns] {
			dst[i*ldd+j] = vector.FromF16(h)
		}
	}
}

// widenBytes does as widenHalves.
func widenBytes(dst []float32, ldd int, src []int8, lds, rows, columns int) {
	_, _ = dst[(rows-1)*ldd+columns-1], src[(rows-1)*lds+columns-1]
	if widenBytesFast(dst, ldd, src, lds, rows, columns) {
		return
	}
	for i := range rows {
		for j, b := range src[i*lds:][:columns] {
			dst[i*ldd+j] = float32(b)
		}
	}
}

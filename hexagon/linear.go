package hexagon

import (
	"encoding/binary"
	"math"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// linear is a matrix on the device.
type linear struct {
	products *products // multiplies rows of the host by it
	*layout.Weights
	groups                        *layout.SuperGroups // in place of Weights' codes and scales; nil: those
	halves                        *layout.Tiles       // in place of both; nil: those
	most                          float64             // magnitude of a weight, without R
	lookups                       int                 // rows that are multiplied so at most
	bytes                         bool                // more rows by tiles of bytes, to the same bits
	strips, cols, workers         int                 // of the tiles of lookups; which have some at once
	codes, scales, offsets, table uint32              // in the shared memory
	values                        uint32              // bytes of them for OpGEMV, of codes that are no numbers
}

// size reserves what the matrix takes on the device, and chooses its path.
func (l *linear) size(p *plan, opt *Options) {
	if t := l.inTiles(); t != nil {
		l.codes, l.table, l.most = p.reserve(len(*t)), p.reserve(2*16), mostRounded
		if l.halves != nil {
			l.most = float64(l.halves.Most)
		}
		return
	}
	l.table, l.values = p.reserve(2<<l.Bits), p.reserve(len(l.Values))
	l.codes = p.reserve(len(l.Codes))
	l.scales, l.offsets = p.reserve(2*len(l.Scales)), p.reserve(2*len(l.Offsets))
	for _, v := range l.Table() {
		l.most = max(l.most, math.Abs(float64(layout.F32(v))))
	}
	if l.Offsets != nil {
		l.most += mostOffset
	}
	if l.lookups = opt.lookups(l.Weights); l.lookups > 0 {
		l.strips, l.cols, l.workers = tiles(l.Weights)
	}
	if l.bytes = opt.Path == PathInt8 && p.mixture == nil && l.fitsBytes(opt.Path.levels()); l.bytes {
		l.lookups = opt.few(l.Weights)
	}
}

// mapped returns the size of a matrix's largest part, all of which lies in one mapping.
func mapped(l *linear) int {
	if t := l.inTiles(); t != nil {
		return len(*t)
	}
	return max(len(l.Codes), 2*len(l.Scales))
}

// inTiles returns the weights that lie in the order of tiles: they are multiplied by tiles
// alone. Nil: they lie in strips.
func (l *linear) inTiles() *[]byte {
	switch {
	case l.groups != nil:
		return &l.groups.Data
	case l.halves != nil:
		return &l.halves.Data
	}
	return nil
}

// mostOffset bounds a group's offset: 2¹⁵ times 2⁻¹².
const mostOffset = 8

// place copies the matrix to the device, and keeps that copy alone.
func (l *linear) place(m []byte) {
	table := []uint16(nil)
	if t := l.inTiles(); t != nil {
		if *t = m[l.codes:][:copy(m[l.codes:], *t)]; l.groups != nil {
			table = l.groups.Values[:]
		}
	} else {
		copy(m[l.values:], l.ByteValues())
		l.Codes, table = m[l.codes:][:copy(m[l.codes:], l.Codes)], l.Table()
		l.Scales, l.Offsets = placeInts(m[l.scales:], l.Scales), placeInts(m[l.offsets:], l.Offsets)
	}
	for i, v := range table {
		putHalf(m, l.table, i, v)
	}
}

// weightsOf sets dst[Cols] to row m, as the device has it.
func (l *linear) weightsOf(dst []float32, m int) {
	switch {
	case l.groups != nil:
		l.groups.Dequantize(dst, m)
	case l.halves != nil:
		l.halves.Dequantize(dst, m)
	default:
		l.Dequantize(dst, m)
		return
	}
	vector.ScaleInto(dst, l.R[m])
}

func placeInts(to []byte, from []int16) []int16 {
	if len(from) == 0 {
		return from
	}
	placed := device.View[int16](to, 0, len(from))
	copy(placed, from)
	return placed
}

func half(mem []byte, at uint32, i int) uint16 { return binary.LittleEndian.Uint16(mem[int(at)+2*i:]) }

func putHalf(mem []byte, at uint32, i int, v uint16) {
	binary.LittleEndian.PutUint16(mem[int(at)+2*i:], v)
}

// Mul sets y[n][Rows] to x·Wᵀ, or to zeros once the device has a fault.
func (l *linear) Mul(y []float32, x *kernels.Acts) {
	if x.N() == 0 {
		return
	}
	l.products.s.mu.Lock()
	defer l.products.s.mu.Unlock()
	l.products.multiply(&product{linear: l, n: x.N(), acts: x, y: y}, x.N() <= l.lookups)
}

// fitting returns how many strips from strip first on have results, of n rows of size
// bytes, that fit a run.
func (l *linear) fitting(first, n, size int) int {
	most := resultBytes / (n * size * layout.Strip)
	return min(l.M/layout.Strip-first, max(1, most), device.MaxDim/layout.Strip)
}

// summed returns how many strips from strip first on have sums, of n rows, that fit TCM
// beside the rows' tables: they are multiplied by one OpGEMV.
func (l *linear) summed(first, n int) int {
	room := (tcmEnd - scratch - n*l.tableBytes() - l.spillBytes(0, 0)) &^ (device.Page - 1)
	return min(l.M/layout.Strip-first, device.MaxDim/layout.Strip, room/(4*n*layout.Strip))
}

// at returns where a strip of the matrix begins.
func (l *linear) at(strip int) (codes, scales, offsets uint32) {
	codes = l.codes + uint32(strip*l.K/layout.Block*layout.BlockBytes(l.Bits))
	if l.Group < l.K {
		scales = l.scales + uint32(strip*l.K/l.Group*layout.Strip*2)
	}
	if l.Offsets != nil {
		offsets = l.offsets + uint32(strip*l.K/l.Group*layout.Strip*2)
	}
	return codes, scales, offsets
}

// lookupRows is the most rows whose tables are in TCM at once.
const lookupRows = 32

// tableBytes returns the size of the tables and sums of a row, and tableRows the number of rows whose tables are in
// TCM at once, beside the scratch of OpGEMV: at least a column of tiles.
func (l *linear) tableBytes() int { return device.TableStride(l.K, l.InBytes()) }
func (l *linear) tableRows() int {
	n := lookupRows
	for n > 1 && n*l.tableBytes()+l.spillBytes(n, l.strips) > tcmEnd-scratch {
		n--
	}
	return n
}

// spillBytes returns the scratch of an OpGEMV of n rows with strips, which lies behind tables.
func (l *linear) spillBytes(n, strips int) int {
	return device.GEMVScratch(n, strips*layout.Strip, l.K, l.Bits, l.Group, l.Offsets != nil, l.strips, l.cols, l.workers)
}

// mulLookup multiplies on the vector unit.
func (ps *products) mulLookup(p *product) error {
	most := p.tableRows()
	path := PathLookup
	if p.InBytes() {
		path = pathBytes
	}
	for lo := 0; lo < p.n; lo += most {
		n := min(most, p.n-lo)
		made, size := false, uint32(n*p.tableBytes())
		if now := (resident{p.acts, p.sets(), path, lo, n}); p.acts == nil || ps.resident != now {
			made, ps.resident = true, now
			ps.precompute(p, lo, n, ps.plan.x.at)
			ps.q.add(device.OpCopy, ps.plan.lookupTables.at, scratch, size)
		}
		for first := 0; first < p.M/layout.Strip; made = false {
			if !made {
				ps.q.add(device.OpCopy, scratch, ps.plan.lookupTables.at, size)
			}
			strips := min(p.fitting(first, n, 4), p.summed(first, n))
			p.lookUp(ps.q, first, strips, n, ps.plan.y.at)
			if err := ps.s.run(); err != nil {
				return err
			}
			ps.gatherSums(p, first, strips, lo, n, ps.plan.y.at)
			first += strips
		}
	}
	return nil
}

// lookUp queues the products of n rows, whose tables are in TCM, with strips
// from strip first on, at most those that summed says. Results lie at y: [n][strips·128]int32.
func (l *linear) lookUp(q *request, first, strips, n int, y uint32) {
	codes, scales, offsets := l.at(first)
	rows, b, spill := strips*layout.Strip, uint32(l.B), q.spill(l.spillBytes(n, strips), scratch+n*l.tableBytes())
	if l.Values != nil {
		b = l.values
	}
	q.add(device.OpGEMV, y, codes, scratch, uint32(n), scales, offsets, uint32(rows), uint32(l.K), uint32(l.Bits), uint32(l.Group),
		uint32(l.A), b, spill, device.GEMVTiles(l.strips, l.workers), uint32(l.cols))
}

// spilled is where the scratch of the last product by lookups lies in TCM.
type spilled struct{ begin, end int }

// spill places the scratch of a product, of size bytes, after the end of tables: at the end of TCM, or below the scratch
// of the product before it. There the first tiles of this one come beside that product's end (dispatch/flow.c).
func (q *request) spill(size, tables int) uint32 {
	at := tcmEnd - size
	if last := &q.spilled; at < last.end && last.begin-size >= tables {
		at = last.begin - size
	}
	q.spilled.begin, q.spilled.end = at, at+size
	return uint32(at)
}

// gatherSums scales the results at y of rows [lo, lo+n).
func (ps *products) gatherSums(p *product, first, strips, lo, n int, y uint32) {
	begin, rows := first*layout.Strip, strips*layout.Strip
	ps.q.count(&ps.q.work.Read, 4*n*rows)
	for i := range n {
		_, scale := ps.codes.activations(p.row(lo + i))
		from, to := ps.q.mem[int(y)+4*i*rows:], p.out(lo + i)[begin:min(p.Rows, begin+rows)]
		for m := range to {
			to[m] = float32(int32(binary.LittleEndian.Uint32(from[4*m:]))) * (scale * p.R[begin+m])
		}
	}
}

// precompute queues the lookup tables of rows [lo, lo+n), zeros beyond the last one,
// which are laid out at x.
func (ps *products) precompute(p *product, lo, n int, x uint32) {
	ps.q.count(&ps.q.work.Written, 2*n*p.K)
	for i := range n {
		at, row, inverse := x+uint32(2*i*p.K), []float32(nil), float32(0)
		if lo+i < p.n {
			row = p.row(lo + i)
			inverse, _ = ps.codes.activations(row)
		}
		for j := range p.K {
			v := int32(0)
			if j < len(row) {
				v = ps.codes.integer(row[j], inverse)
			}
			putHalf(ps.q.mem, at, j, uint16(v))
		}
	}
	p.precompute(ps.q, n, x)
}

// precompute queues the making of tables of n rows of integers at x, [n][K]int16.
func (l *linear) precompute(q *request, n int, x uint32) {
	q.add(device.OpPrecompute, scratch, uint32(n), x, uint32(l.K), form(l.InBytes()))
}

// form returns the argument of packets that says whether codes stand in bytes.
func form(bytes bool) uint32 {
	if bytes {
		return 1
	}
	return 0
}

// activationCodes makes the integers of products by lookups of numbers.
type activationCodes struct {
	path   Path
	levels float32 // the largest
}

// activations returns what makes a row's numbers integers of at most levels, and what these
// are multiples of.
func (c activationCodes) activations(row []float32) (inverse, scale float32) {
	most := largest(row)
	switch {
	case c.path == PathInt8 && most < leastMost:
		return 0, 0
	case c.path == PathInt8: // as acts.Codes has it
		return c.levels / most, most / c.levels
	case most > 0:
		scale = max(most/c.levels, math.SmallestNonzeroFloat32*(1<<23))
		return 1 / scale, scale
	}
	return 1, 1
}

// integer quantises a number of a row; inverse is 1 divided by the scale of the activations.
func (c activationCodes) integer(f, inverse float32) int32 {
	if f != f {
		return 0
	}
	return int32(math.RoundToEven(float64(max(-c.levels, min(f*inverse, c.levels)))))
}

// leastMost is the magnitude of which acts.Codes can make 127; rows of less are zeros.
const leastMost = 0x1p-120

// largest returns the largest finite magnitude in a row.
func largest(row []float32) (most float32) {
	for _, f := range row {
		if f < 0 {
			f = -f
		}
		if f > most && f <= math.MaxFloat32 {
			most = f
		}
	}
	return most
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

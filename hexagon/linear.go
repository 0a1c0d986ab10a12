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
	b *Backend
	*layout.Weights
	groups                        *layout.SuperGroups // in place of Weights' codes and scales; nil: those
	most                          float64             // magnitude of a weight, without R
	lookups                       int                 // rows that are multiplied so at most
	codes, scales, offsets, table uint32              // in the shared memory
}

// size reserves what the matrix takes on the device, and chooses its path.
func (l *linear) size(b *bounds) {
	if l.table = l.b.reserve(2 << l.Bits); l.groups != nil {
		l.codes, l.most = l.b.reserve(len(l.groups.Data)), mostRounded
		return
	}
	l.codes = l.b.reserve(len(l.Codes))
	l.scales, l.offsets = l.b.reserve(2*len(l.Scales)), l.b.reserve(2*len(l.Offsets))
	for _, v := range l.Table() {
		l.most = max(l.most, math.Abs(float64(layout.F32(v))))
	}
	if l.Offsets != nil {
		l.most += mostOffset
	}
	l.lookups = b.lookups(l.Weights)
}

// mostOffset bounds a group's offset: 2¹⁵ times 2⁻¹².
const mostOffset = 8

// place copies the matrix to the device, and keeps that copy alone.
func (l *linear) place() {
	m, table := l.b.mem, []uint16(nil)
	if g := l.groups; g != nil {
		g.Data, table = m[l.codes:][:copy(m[l.codes:], g.Data)], g.Values[:]
	} else {
		l.Codes, table = m[l.codes:][:copy(m[l.codes:], l.Codes)], l.Table()
		l.Scales, l.Offsets = placeInts(m[l.scales:], l.Scales), placeInts(m[l.offsets:], l.Offsets)
	}
	for i, v := range table {
		putHalf(m, l.table, i, v)
	}
}

// weightsOf sets dst[Cols] to row m, as the device has it.
func (l *linear) weightsOf(dst []float32, m int) {
	if l.groups == nil {
		l.Dequantize(dst, m)
		return
	}
	l.groups.Dequantize(dst, m)
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
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	var err error
	if n := x.N(); n <= l.lookups {
		l.b.work.Lookups += int64(n)
		err = l.mulLookup(y, x)
	} else {
		l.b.work.Tiled += int64(n)
		l.b.work.Lanes += int64(roundUp(n, layout.Tile))
		err = l.mulTiles(y, x)
	}
	if err == nil {
		err = l.probe(y, x)
	}
	if err != nil {
		clear(y[:x.N()*l.Rows])
	}
}

// probe computes one of the products here as well, another one each time. A device
// that answers nonsense is found out before anybody reads it.
func (l *linear) probe(y []float32, x *kernels.Acts) error {
	b := l.b
	b.probes++
	n, m := int(b.probes%uint64(x.N())), int(b.probes*0x9e3779b97f4a7c15>>32%uint64(l.Rows))
	if cap(b.weights) < l.Cols {
		b.weights = make([]float32, b.mostK)
	}
	w, row := b.weights[:l.Cols], x.Row(n)
	l.weightsOf(w, m)
	var want, size, sum, most float64
	for k, f := range row {
		p := float64(f) * float64(w[k])
		want, size, sum = want+p, size+math.Abs(p), sum+math.Abs(float64(w[k]))
		most = max(most, math.Abs(float64(f)))
	}
	groups := float64(l.K / l.Group)
	within := size/256 + most*(sum/4096+groups*math.Abs(float64(l.R[m]))/device.MaxActivation)
	if got := float64(y[n*l.Rows+m]); !(math.Abs(got-want) <= within) && want-want == 0 {
		return b.fail("it computed %v where %v ± %v is right, output %d of a matrix of %dx%d", got, want, within, m, l.Rows, l.Cols)
	}
	return nil
}

// strips is how many strips from strip first on have results, of n rows of size
// bytes, that fit a run.
func (l *linear) strips(first, n, size int) int {
	most := int(l.b.y.size) / (n * size * layout.Strip)
	return min(l.M/layout.Strip-first, max(1, most), device.MaxDim/layout.Strip)
}

// at is where a strip of the matrix begins.
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

// mulLookup multiplies on the vector unit.
func (l *linear) mulLookup(y []float32, x *kernels.Acts) error {
	b := l.b
	each := 8*l.K + roundUp(l.K/8, device.Align)
	most := min(lookupRows, (tcmEnd-scratch)/each)
	for lo, pass := 0, 0; lo < x.N(); lo, pass = lo+most, pass+1 {
		n := min(most, x.N()-lo)
		b.precompute(x, lo, n, l.K, pass)
		for first := 0; first < l.M/layout.Strip; {
			strips := l.strips(first, n, 4)
			rows := strips * layout.Strip
			codes, scales, offsets := l.at(first)
			for i := range n {
				tables := uint32(scratch + i*each)
				b.add(device.OpGEMV, b.y.at+uint32(4*i*rows), codes, tables, tables+uint32(8*l.K), scales, offsets,
					uint32(rows), uint32(l.K), uint32(l.Bits), uint32(l.Group), uint32(l.A), uint32(l.B))
			}
			if err := b.run(); err != nil {
				return err
			}
			begin := first * layout.Strip
			for i := range n {
				scale := activationScale(x.Row(lo + i))
				from := b.mem[int(b.y.at)+4*i*rows:]
				to := y[(lo+i)*l.Rows+begin : (lo+i)*l.Rows+min(l.Rows, begin+rows)]
				for m := range to {
					to[m] = float32(int32(binary.LittleEndian.Uint32(from[4*m:]))) * l.R[begin+m] * scale
				}
			}
			first += strips
		}
	}
	return nil
}

// precompute makes the lookup tables of n rows of x from row lo on, unless they are
// in TCM from the product before.
func (b *Backend) precompute(x *kernels.Acts, lo, n, k, pass int) {
	now := resident{x, x.Sets(), PathLookup, pass}
	if b.resident == now {
		return
	}
	b.resident = now
	each := 8*k + roundUp(k/8, device.Align)
	for i := range n {
		row, at := x.Row(lo+i), b.x.at+uint32(2*i*k)
		inverse := 1 / activationScale(row)
		for j := range k {
			v := float32(0)
			if j < len(row) && row[j] == row[j] {
				v = max(-device.MaxActivation, min(row[j]*inverse, device.MaxActivation))
			}
			putHalf(b.mem, at, j, uint16(int16(math.RoundToEven(float64(v)))))
		}
		tables := uint32(scratch + i*each)
		b.add(device.OpPrecompute, tables, tables+uint32(8*k), at, uint32(k))
	}
}

// activationScale is what a row's int16 are multiples of.
func activationScale(row []float32) float32 {
	if most := largest(row); most > 0 {
		return max(most/device.MaxActivation, math.SmallestNonzeroFloat32*(1<<23))
	}
	return 1
}

// largest is the largest finite magnitude in a row.
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

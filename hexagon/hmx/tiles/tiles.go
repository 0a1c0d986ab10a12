// Package tiles multiplies tiles of 32×32 fp16 numbers whose rows stand in pairs:
// element (r, c) is number (r/2)·64 + 2c + r%2. Sums are float32 and go through k in
// order, so that all instruction sets compute the same bits.
package tiles

//go:generate go -C ../../../kernels/_gen run . -family tiles -pkg tiles -out ../../hexagon/hmx/tiles/asm_amd64.s -stubs ../../hexagon/hmx/tiles/asm_amd64.go

// Side is the number of a tile's rows and of its columns, Size the number of its values.
const (
	Side = 32
	Size = Side * Side
)

// Sums are the 32×32 sums of a tile, row after row.
type Sums [Size]float32

// Multiply adds to s the products of runs of tiles, for the first columns of wgt, all
// or half. act are tiles that Widen has converted, wgt as many that WidenRows has. Fp16 products are exact in float32, so
// that it does not matter whether a machine fuses them with the sums.
func (s *Sums) Multiply(act, wgt []float32, columns int) {
	if len(act) != len(wgt) || len(act)%Size != 0 || columns != Side && columns != Side/2 {
		panic("tiles: runs of different lengths, or columns that are neither all nor half")
	}
	if len(act) > 0 && !s.multiplyFast(act, wgt, columns) {
		s.multiplyGeneric(act, wgt, columns)
	}
}

// HalfEmpty reports whether the upper half of a tile's columns is zero, of any sign.
func HalfEmpty(tile *[Size]uint16) bool {
	for pair := 0; pair < Size; pair += 2 * Side {
		var any uint16
		for _, h := range (*[Side]uint16)(tile[pair+Side:]) {
			any |= h
		}
		if any&0x7fff != 0 {
			return false
		}
	}
	return true
}

// Widen converts tiles of fp16 to float32, in order.
func Widen(dst []float32, src []uint16) {
	src = src[:len(dst)]
	if len(dst)%64 != 0 || len(dst) == 0 || !widenFast(dst, src) {
		widenGeneric(dst, src)
	}
}

// WidenRows converts tiles of fp16 to float32, each to its rows one after the other.
func WidenRows(dst []float32, src []uint16) {
	src = src[:len(dst)]
	if len(dst)%(2*Side) != 0 {
		panic("tiles: half a pair of rows")
	}
	if len(dst) > 0 && !widenRowsFast(dst, src) {
		widenRowsGeneric(dst, src)
	}
}

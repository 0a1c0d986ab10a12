//go:build amd64 && !purego

package grouped

import (
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
)

// quadTile adds to y[tokens][32] the products of some groups of two bands with quad records, and
// prefetches as many bytes from next on, which need not be memory. It works in words[tokens][quadWords].
// _gen/grouped/quads.go states how.
type quadTile func(y *float32, ld int, codes, scales *byte, stride int, recs *byte, ldr, tokens, groups int, next uintptr, words *byte)

// quadWords is the size of a token's sums of the groups of a unit, as int16.
const quadWords = 4 * 2 * bands.Rows * 2

// add adds groups [gLo, gHi) of bands s and s+1.
func (tile quadTile) add(q *product, scratch *bands.Scratch, y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	codes, _ := bandOf(q.w, s)
	here := uintptr(unsafe.Pointer(unsafe.SliceData(codes)))
	f := q.f
	tile.multiply(q, scratch, y, ld, s, x, t, tEnd, gLo, gHi, here+uintptr(2*q.BandBytes()+2*gLo*(f.codeBytes+f.unitBytes/f.unit)))
}

// multiply does so, and prefetches as many bytes from next on.
func (tile quadTile) multiply(q *product, scratch *bands.Scratch, y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int, next uintptr) {
	f, ldr, n := q.f, x.Groups(acts.Unlimited).QuadStride(), tEnd-t
	codes, scales := bandOf(q.w, s)
	_, last := bandOf(q.w, s+1)
	codes, scales = codes[gLo*f.codeBytes:gHi*f.codeBytes], scales[gLo/f.unit*f.unitBytes:]
	recs, words := x.Groups(acts.Unlimited).Quads(t)[gLo*ldr:], scratch.Panel[:n*quadWords]
	_, _, _ = last[gHi/f.unit*f.unitBytes-1], y[(n-1)*ld+2*bands.Rows-1], recs[(gHi-gLo-1)*ldr+n*acts.QuadBytes-1]
	tile(&y[0], ld, &codes[0], &scales[0], q.BandBytes(), &recs[0], ldr, n, gHi-gLo, next, &words[0])
}

package device

import (
	"encoding/binary"

	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
)

// dequant is an OpDequant.
type dequant struct {
	ref.Matrix
	tiles    []uint16
	v        []uint16
	strip    int
	first, n int // blocks
}

// block makes the tiles of block first+i.
func (d *dequant) block(i int) {
	block := d.first + i
	codes := d.Codes[(d.strip*(d.K/layout.Block)+block)*layout.BlockBytes(d.Bits):][:layout.BlockBytes(d.Bits)]
	// values are what a row's codes mean, of each group that the block has part of.
	var values [layout.Strip][16]uint16
	for half := range 2 {
		if k := block*layout.Block + half*layout.Tile; half == 0 || d.Group == layout.Tile {
			d.values(&values, k/d.Group)
		}
		for row := 0; row < layout.Strip; row += 2 {
			tile := d.tiles[(row/layout.Tile*2*d.n+2*i+half)*tile+row%layout.Tile*layout.Tile:]
			unpackPair((*[2 * layout.Tile]uint16)(tile), codes[half*4*layout.LineBytes:], row, d.Bits, &values[row], &values[row+1])
		}
	}
}

// values computes the values of a strip's codes in a group.
func (d *dequant) values(values *[layout.Strip][16]uint16, group int) {
	n := len(d.v)
	if d.Scales == nil {
		for row := range values {
			copy(values[row][:], d.v)
		}
		return
	}
	var v [16]float32
	for q, h := range d.v {
		v[q] = layout.F32(h)
	}
	at := (d.strip*(d.K/d.Group) + group) * layout.Strip
	var wide [16]float32
	for row := range values {
		s := layout.F32(layout.F16(float32(d.Scales[at+layout.ScaleIndex(row)]) * 0x1p-15))
		for q := range n {
			wide[q] = v[q] * s
		}
		layout.FromF32(values[row][:n], wide[:n])
		if d.Offsets != nil {
			o := layout.F32(layout.F16(float32(d.Offsets[at+layout.ScaleIndex(row)]) * 0x1p-12))
			for q, h := range values[row][:n] {
				wide[q] = layout.F32(h) + o
			}
			layout.FromF32(values[row][:n], wide[:n])
		}
	}
}

// spread has bit i of a byte in byte i.
var spread = func() (t [256]uint64) {
	for b := range t {
		for i := range 8 {
			t[b] |= uint64(b>>i&1) << (8 * i)
		}
	}
	return
}()

// unpackPair writes 32 columns of two rows as tiles have them.
func unpackPair(out *[2 * layout.Tile]uint16, lines []byte, row, bits int, even, odd *[16]uint16) {
	for pair := range 4 {
		var e, o uint64 // a code a byte
		at := pair*layout.LineBytes + layout.ByteOfRow(row)
		next := layout.ByteOfRow(row+1) - layout.ByteOfRow(row)
		for range bits {
			e, o = e<<1|spread[lines[at]], o<<1|spread[lines[at+next]]
			at += 8 * layout.LineBytes
		}
		// Codes are those of columns 4·pair, 16 + 4·pair, 4·pair + 1, ...
		lo, hi := (*[8]uint16)(out[8*pair:]), (*[8]uint16)(out[layout.Tile+8*pair:])
		for i := range 4 {
			lo[2*i], lo[2*i+1] = even[e&15], odd[o&15]
			hi[2*i], hi[2*i+1] = even[e>>8&15], odd[o>>8&15]
			e, o = e>>16, o>>16
		}
	}
}

// vlut16 makes the numbers of one super-group.
func vlut16(dst []uint16, group []byte, v []uint16) {
	codes := group[16:layout.SuperGroupBytes]
	var values [8][16]uint16
	var wide, of [16]float32
	for q := range of {
		of[q] = layout.F32(v[q])
	}
	for g := range values {
		s := layout.F32(binary.LittleEndian.Uint16(group[2*g:]))
		for q, f := range of {
			wide[q] = f * s
		}
		layout.FromF32(values[g][:], wide[:])
	}
	for i, c := range codes {
		e := i/2 + i&1*64
		dst[e] = values[e/32][c&15]
		dst[e+128] = values[e/32+4][c>>4]
	}
}

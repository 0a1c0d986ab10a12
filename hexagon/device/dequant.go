package device

import (
	"encoding/binary"

	"github.com/lutra-lm/lutra/hexagon/hmx"
	"github.com/lutra-lm/lutra/hexagon/hmx/tiles"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
)

// dequant is an OpDequant.
type dequant struct {
	ref.Matrix
	tiles    []uint16
	v        []uint16
	strip    int
	first, n int // blocks of a strip
}

// block makes the tiles of block first+i%n of strip strip+i/n.
func (d dequant) block(i int) {
	d.tiles, d.strip, i = d.tiles[i/d.n*8*d.n*tile:], d.strip+i/d.n, i%d.n
	block := d.first + i
	codes := d.Codes[(d.strip*(d.K/layout.Block)+block)*layout.BlockBytes(d.Bits):][:layout.BlockBytes(d.Bits)]
	if d.InBytes {
		d.bytes(i, codes)
		return
	}
	// values holds the values of a row's codes, for each group that the block has part of.
	var values [layout.Strip][tiles.Codes]uint16
	for half := range 2 {
		if k := block*layout.Block + half*layout.Tile; half == 0 || d.Group == layout.Tile {
			d.values(&values, k/d.Group)
		}
		for row := 0; row < layout.Strip; row += layout.Tile {
			out := d.tiles[(row/layout.Tile*2*d.n+2*i+half)*tile:]
			tiles.Unpack((*[tile]uint16)(out), codes[half*4*layout.LineBytes+row:], (*[layout.Tile][tiles.Codes]uint16)(values[row:]), d.Bits)
		}
	}
}

// bytes makes the tiles of a block of codes in bytes.
func (d *dequant) bytes(i int, codes []byte) {
	v := byteValues()
	for q, h := range d.v {
		v[q] = layout.F32(h)
	}
	var scales, offsets [layout.Strip]float32
	for half := range 2 {
		group := ((d.first+i)*layout.Block + half*layout.Tile) / d.Group
		at := (d.strip*(d.K/d.Group) + group) * layout.Strip
		halves(&scales, d.Scales[at:], 0x1p-15)
		if d.Offsets != nil {
			halves(&offsets, d.Offsets[at:], 0x1p-12)
		}
		for row := 0; row < layout.Strip; row += layout.Tile {
			var f [tile]float32
			for r := range layout.Tile {
				s := scales[row+r]
				for c := range layout.Tile {
					f[layout.TileIndex(r, c)] = v[layout.ByteCode(codes, row+r, half*layout.Tile+c, d.Bits)] * s
				}
			}
			out := d.tiles[(row/layout.Tile*2*d.n+2*i+half)*tile:][:tile]
			layout.FromF32(out, f[:])
			if d.Offsets == nil {
				continue
			}
			tiles.Widen(f[:], out)
			for r := range layout.Tile {
				for c := range layout.Tile {
					f[layout.TileIndex(r, c)] += offsets[row+r]
				}
			}
			layout.FromF32(out, f[:])
		}
	}
}

// byteValues returns the values of codes of 8 bits.
func byteValues() (v [256]float32) {
	for q := range v {
		v[q] = float32(q - layout.ByteZero)
	}
	return v
}

// values computes the values of a strip's codes in a group.
func (d *dequant) values(values *[layout.Strip][tiles.Codes]uint16, group int) {
	if d.Scales == nil {
		for row := range values {
			copy(values[row][:], d.v)
		}
		return
	}
	var v [tiles.Codes]float32
	for q, h := range d.v {
		v[q] = layout.F32(h)
	}
	at := (d.strip*(d.K/d.Group) + group) * layout.Strip
	var scales, offsets [layout.Strip]float32
	halves(&scales, d.Scales[at:], 0x1p-15)
	if d.Offsets == nil {
		tiles.ScaleValues(values[:], &v, scales[:], nil)
		return
	}
	halves(&offsets, d.Offsets[at:], 0x1p-12)
	tiles.ScaleValues(values[:], &v, scales[:], offsets[:])
}

// halves reads a group's scales or offsets, rounded to fp16, by row.
func halves(dst *[layout.Strip]float32, src []int16, unit float32) {
	var f [layout.Strip]float32
	for i, n := range src[:layout.Strip] {
		f[i] = float32(n) * unit
	}
	var h [layout.Strip]uint16
	layout.FromF32(h[:], f[:])
	tiles.Widen(f[:], h[:])
	for b, row := range rowOfByte {
		dst[row&127] = f[scaleOfByte[b]&127]
	}
}

// fourBits has bits 0, 2, 4 and 6 of a byte in a byte each.
var fourBits = func() (table [256]uint32) {
	for b := range uint32(256) {
		table[b] = b&1 | b>>2&1<<8 | b>>4&1<<16 | b>>6&1<<24
	}
	return table
}()

// byteTiles makes the tiles of block i of the n of an OpByteTiles.
func byteTiles(to, codes []byte, i, n, bits int) {
	block := codes[i*layout.BlockBytes(bits):][:layout.BlockBytes(bits)]
	for half := range 2 {
		for b := range layout.Strip {
			row := layout.RowOfByte(b)
			out := to[(row/hmx.ByteRows*2*n+2*i+half)*layout.TileBytes+row%hmx.ByteRows*layout.Tile:][:layout.Tile]
			for pair := range 4 { // of quads: columns 4·pair to 4·pair+3, and 16 further
				var low, high uint32
				for plane := range bits {
					line := block[((plane*2+half)*4+pair)*layout.LineBytes+b]
					low, high = low<<1|fourBits[line], high<<1|fourBits[line>>1]
				}
				binary.LittleEndian.PutUint32(out[4*pair:], low)
				binary.LittleEndian.PutUint32(out[16+4*pair:], high)
			}
		}
	}
}

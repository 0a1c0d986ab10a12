package huggingface

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/models/safetensors"
)

// grid is a stored array of two dimensions, outputs and inputs (or groups of inputs).
type grid struct {
	t       *safetensors.Tensor
	outputs bool    // rows are outputs; else columns are
	packed  int     // the dimension of which eight codes of four bits make an I32; or unpacked
	order   *[8]int // where in it each of the eight is
}

const unpacked = -1

// words returns how many elements are stored of outs outputs of n.
func (g *grid) words(outs, n int) int {
	if g.outputs == (g.packed == 0) {
		return (outs + 7) / 8 * n
	}
	return outs * ((n + 7) / 8)
}

// rectangle reads elements of each bytes, of outputs [lo, hi) if so many of n are stored, row after row as they
// are stored.
func (g *grid) rectangle(lo, hi, n, each int) ([]byte, error) {
	if g.outputs { // whole rows
		raw := make([]byte, (hi-lo)*n*each)
		return raw, g.t.Source.Read(raw, g.t.Offset+int64(lo*n*each))
	}
	width, whole := (hi-lo)*each, storedCols(g.t)*each
	raw := make([]byte, n*width)
	if width == whole {
		return raw, g.t.Source.Read(raw, g.t.Offset)
	}
	var failed atomic.Pointer[error]
	parallel.Ranges(n, func(from, to int) {
		for r := from; r < to && failed.Load() == nil; r++ {
			if err := g.t.Source.Read(raw[r*width:(r+1)*width], g.t.Offset+int64(r*whole+lo*each)); err != nil {
				failed.Store(&err)
			}
		}
	})
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	return raw, nil
}

// nibbles sets dst[hi-lo][n] to the codes of outputs [lo, hi), a byte each.
func (g *grid) nibbles(dst []byte, lo, hi, n int) error {
	across := g.outputs == (g.packed == 0) // a word has codes of eight outputs
	first, last, depth := lo, hi, n
	if across {
		first, last = lo/8, (hi+7)/8
	} else {
		depth = n / 8
	}
	raw, err := g.rectangle(first, last, depth, 4)
	if err != nil {
		return err
	}
	width := last - first
	word := func(o, i int) uint64 { // output, or eight of them, and input, or eight of them
		if g.outputs {
			return spread(binary.LittleEndian.Uint32(raw[4*((o-first)*depth+i):]))
		}
		return spread(binary.LittleEndian.Uint32(raw[4*(i*width+o-first):]))
	}
	if !across {
		parallel.Ranges(hi-lo, func(from, to int) {
			for i := range depth {
				for o := from; o < to; o++ {
					binary.LittleEndian.PutUint64(dst[o*n+8*i:], word(lo+o, i))
				}
			}
		})
		return nil
	}
	parallel.Ranges(width, func(from, to int) {
		for o := first + from; o < first+to; o++ {
			for i := 0; i < n; i += 8 {
				var codes [8]uint64 // of eight outputs each, the last of which may be none
				for j := range min(8, n-i) {
					codes[j] = word(o, i+j)
				}
				transpose(&codes)
				for k := range 8 {
					if row := 8*o + k; row >= lo && row < hi {
						putBytes(dst[(row-lo)*n+i:(row-lo+1)*n], codes[g.order[k]])
					}
				}
			}
		}
	})
	return nil
}

// putBytes writes the lowest bytes of x, as many as there is room for up to eight.
func putBytes(dst []byte, x uint64) {
	if len(dst) >= 8 {
		binary.LittleEndian.PutUint64(dst, x)
		return
	}
	for i := range dst {
		dst[i] = byte(x >> (8 * i))
	}
}

// spread gives each four bits a byte.
func spread(w uint32) uint64 {
	x := uint64(w)
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	return (x | x<<4) & 0x0f0f0f0f0f0f0f0f
}

// transpose exchanges byte i of number j with byte j of number i.
func transpose(x *[8]uint64) {
	for _, step := range [3]struct {
		apart int
		mask  uint64
	}{{4, 0x00000000ffffffff}, {2, 0x0000ffff0000ffff}, {1, 0x00ff00ff00ff00ff}} {
		shift := 8 * step.apart
		for i := range x {
			if i&step.apart == 0 {
				a, b := x[i], x[i+step.apart]
				x[i], x[i+step.apart] = a&step.mask|b&step.mask<<shift, a>>shift&step.mask|b&^step.mask
			}
		}
	}
}

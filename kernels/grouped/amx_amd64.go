//go:build amd64 && !purego

package grouped

import (
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// amxPanel unpacks two bands, and multiplies what is unpacked by tiles of AMX (_gen/grouped/amx.go).
type amxPanel struct {
	write gfniWriter
	group int // bytes
	tile  amxTile
	sizes *amxTileSizes
}

type (
	// amxTile adds to y the products of n runs, and prefetches some lines a group.
	amxTile func(runs *byte, n, ld, lda int, sizes, sums *byte, lines int)
	// amxRun is the product of some groups of a band with some tokens. What the addresses are of, the caller keeps.
	amxRun struct {
		acts, panel, y uintptr
		tokens, groups int
		fetch          uintptr // from here on
	}
)

const (
	amxTokens = 16 // of a run, at most
	amxStep   = 4  // that tokens of tiles are a multiple of
	amxLeast  = 2  // groups of a run
	amxFrom   = 5  // tokens from which AMX multiplies
	amxSums   = 4096
	amxRuns   = 2*bands.MostTileTokens/amxTokens + 1 // two bands', and what follows them
)

// amxOf returns the panels of a packing; nil where there are none.
func amxOf(p matrix.Packing) *amxPanel {
	switch p {
	case matrix.Q4, matrix.Q8, matrix.FP4:
		return &amxPanel{amxWriters[p], 1280, amxTiles["Bytes"], &amxSizes[0]}
	case matrix.Q4M, matrix.Q41:
		return &amxPanel{gfniWriters[p], 1408, amxTiles["Least"], &amxSizes[0]}
	case matrix.Q6:
		return &amxPanel{amxWriters[p], 1408, amxTiles["Q6"], &amxSizes[1]}
	}
	return nil
}

// amxTileSizes are sizes of tiles for 4, 8, 12 and 16 tokens.
type amxTileSizes [amxTokens / amxStep]cpu.TileSizes

// amxSizes has sizes for groups, and for halves of groups.
var amxSizes = func() (all [2]amxTileSizes) {
	for half := range all {
		for i := range all[half] {
			tokens, cols, s := (i+1)*amxStep, acts.GroupCols>>half, &all[half][i]
			s.Set(0, tokens, 4*bands.Rows)
			s.Set(1, tokens, cols)
			s.Set(2, cols/4, 4*bands.Rows)
			s.Set(3, tokens, 4*bands.Rows)
		}
	}
	return all
}()

// forTiles returns the panels for AMX if they multiply n tokens; else nil.
func (t *tileSet) forTiles(n int) *amxPanel {
	if t.amx == nil || n < amxFrom || t.methods[widthOf(n)] != AMX {
		return nil
	}
	return t.amx
}

// add adds groups [gLo, gHi) of bands [s, s+n) of q, two at most.
func (a *amxPanel) add(q *kernel, scratch *bands.Scratch, y []float32, ld, s, n int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	f, lda, all := q.f, x.GroupStride(), tEnd-t
	codes, scales := bandOf(q.w, s)
	_, last := bandOf(q.w, s+n-1)
	_ = last[gHi/f.unit*f.unitBytes-1]
	tiles := (all + amxTokens - 1) / amxTokens
	tokens := cpu.RoundUp((all+tiles-1)/tiles, amxStep)
	recs := x.Groups(f.limit)[t*lda : (t+tiles*tokens-1)*lda+gHi*acts.RecordBytes] // of tokens that are not there too
	_ = y[(all-1)*ld+n*bands.Rows-1]
	sums := scratch.Tables[:amxSums]
	runs := (*[amxRuns]amxRun)(unsafe.Pointer(&scratch.Tables[amxSums]))
	// The same codes of the bands n further on, a share in each group of each run.
	next := uintptr(unsafe.Pointer(&codes[0])) + uintptr(n*q.BandBytes())
	lines := (f.codeBytes/64 + tiles - 1) / tiles
	step := panelStep(gHi-gLo, f.unit)
	for lo := gLo; lo < gHi; lo += step {
		groups := min(step, gHi-lo)
		panel := scratch.Panel[:groups*a.group]
		a.write(&panel[0], &codes[lo*f.codeBytes], &scales[lo/f.unit*f.unitBytes], (n-1)*q.BandBytes(), groups)
		count := 0
		for i := range tiles {
			rec, part := i*tokens*lda+lo*acts.RecordBytes, lo*f.codeBytes+i*lines*64*groups
			for b := range n {
				runs[count] = amxRun{
					acts: uintptr(unsafe.Pointer(&recs[rec])), panel: uintptr(unsafe.Pointer(&panel[b*4*bands.Rows])),
					y:      uintptr(unsafe.Pointer(&y[i*tokens*ld+b*bands.Rows])),
					tokens: min(tokens, all-i*tokens), groups: groups, fetch: next + uintptr(b*q.BandBytes()+part),
				}
				count++
			}
		}
		runs[count] = runs[0]
		a.tile(&scratch.Tables[amxSums], count, ld, lda, &a.sizes[tokens/amxStep-1][0], &sums[0], lines)
	}
}

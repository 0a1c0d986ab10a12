//go:build amd64 && !purego

package kernels

// groupedTile adds to y[tokens][16·bands] the products of some groups.
type groupedTile func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int)

// groupedTiles are the kernels of one packing and instruction set, the i-th
// of a slice for i+1 tokens.
type groupedTiles struct {
	four   groupedTile   // four bands, one token
	direct []groupedTile // one band; read the packing's codes
	bytes  []groupedTile // read codes widened to bytes; nil where that does not pay
	widen  func(dst, src *byte, groups int)
}

var groupedAVX2 = map[Packing]groupedTiles{
	Q4:  {four: groupedQ4AVX2x4x1, direct: []groupedTile{groupedQ4AVX2x1x1, groupedQ4AVX2x1x2, groupedQ4AVX2x1x3, groupedQ4AVX2x1x4}},
	Q4M: {four: groupedQ4MAVX2x4x1, direct: []groupedTile{groupedQ4MAVX2x1x1, groupedQ4MAVX2x1x2, groupedQ4MAVX2x1x3, groupedQ4MAVX2x1x4}},
	Q6:  {groupedQ6AVX2x4x1, []groupedTile{groupedQ6AVX2x1x1, groupedQ6AVX2x1x2, groupedQ6AVX2x1x3, groupedQ6AVX2x1x4}, []groupedTile{groupedQ6BytesAVX2x1x1, groupedQ6BytesAVX2x1x2, groupedQ6BytesAVX2x1x3, groupedQ6BytesAVX2x1x4}, unpackQ6AVX2},
	Q8:  {four: groupedQ8AVX2x4x1, direct: []groupedTile{groupedQ8AVX2x1x1, groupedQ8AVX2x1x2, groupedQ8AVX2x1x3, groupedQ8AVX2x1x4}},
}

var groupedAVX512 = map[Packing]groupedTiles{
	Q4:  {four: groupedQ4AVX512x4x1, direct: []groupedTile{groupedQ4AVX512x1x1, groupedQ4AVX512x1x2, groupedQ4AVX512x1x3, groupedQ4AVX512x1x4, groupedQ4AVX512x1x5, groupedQ4AVX512x1x6, groupedQ4AVX512x1x7, groupedQ4AVX512x1x8}},
	Q4M: {four: groupedQ4MAVX512x4x1, direct: []groupedTile{groupedQ4MAVX512x1x1, groupedQ4MAVX512x1x2, groupedQ4MAVX512x1x3, groupedQ4MAVX512x1x4, groupedQ4MAVX512x1x5, groupedQ4MAVX512x1x6, groupedQ4MAVX512x1x7, groupedQ4MAVX512x1x8}},
	Q6:  {four: groupedQ6AVX512x4x1, direct: []groupedTile{groupedQ6AVX512x1x1, groupedQ6AVX512x1x2, groupedQ6AVX512x1x3, groupedQ6AVX512x1x4, groupedQ6AVX512x1x5, groupedQ6AVX512x1x6, groupedQ6AVX512x1x7, groupedQ6AVX512x1x8}},
	Q8:  {four: groupedQ8AVX512x4x1, direct: []groupedTile{groupedQ8AVX512x1x1, groupedQ8AVX512x1x2, groupedQ8AVX512x1x3, groupedQ8AVX512x1x4, groupedQ8AVX512x1x5, groupedQ8AVX512x1x6, groupedQ8AVX512x1x7, groupedQ8AVX512x1x8}},
}

func groupedTilesFor(i ISA, p Packing) groupedTiles {
	switch i {
	case AVX2:
		return groupedAVX2[p]
	case AVX512:
		return groupedAVX512[p]
	}
	return groupedTiles{}
}

func (q *groupedKernel) add(scratch *bandScratch, y []float32, ld, s, n int, x *Acts, t, tEnd, kLo, kHi int) {
	gLo, gHi := kLo/groupCols, kHi/groupCols
	if q.tiles.four != nil && tEnd-t == 1 && n == 4 {
		q.addFour(y, s, x, t, gLo, gHi)
		return
	}
	for i := range n {
		q.addBand(scratch, y[i*bandRows:], ld, s+i, x, t, tEnd, gLo, gHi)
	}
}

// addFour adds groups [gLo, gHi) of four bands and one token.
func (q *groupedKernel) addFour(y []float32, s int, x *Acts, t, gLo, gHi int) {
	f := groupedFormats[q.w.Packing]
	codes, scales := q.w.groupedBand(s)
	_, last := q.w.groupedBand(s + 3)
	codes, scales = codes[gLo*f.codeBytes:gHi*f.codeBytes], scales[gLo/f.unit*f.unitBytes:]
	_, _ = last[gHi/f.unit*f.unitBytes-1], y[4*bandRows-1]
	acts := x.grouped.rec[(t*x.groupedRecords()+gLo)*actRecord:][:(gHi-gLo)*actRecord]
	q.tiles.four(&y[0], 0, &codes[0], &scales[0], q.w.bandBytes(), &acts[0], 0, gHi-gLo)
}

// widenTokens is the number of tokens from which codes are widened first.
const widenTokens = 8

func (q *groupedKernel) addBand(scratch *bandScratch, y []float32, ld, s int, x *Acts, t, tEnd, gLo, gHi int) {
	if q.tiles.direct == nil {
		q.addGeneric(y, ld, s, x, t, tEnd, gLo, gHi)
		return
	}
	f := groupedFormats[q.w.Packing]
	codes, scales := q.w.groupedBand(s)
	if tEnd-t < widenTokens || q.tiles.bytes == nil {
		codes = codes[gLo*f.codeBytes : gHi*f.codeBytes]
		q.addTiles(q.tiles.direct, y, ld, codes, scales, x, t, tEnd, gLo, gHi)
		return
	}
	for g := gLo; g < gHi; g += widenedGroups {
		n := min(widenedGroups, gHi-g)
		src, dst := codes[g*f.codeBytes:(g+n)*f.codeBytes], scratch.widened[:n*8*planeBytes]
		q.tiles.widen(&dst[0], &src[0], n)
		q.addTiles(q.tiles.bytes, y, ld, dst, scales, x, t, tEnd, g, g+n)
	}
}

// addTiles adds groups [gLo, gHi), whose codes start at codes, tile by tile.
func (q *groupedKernel) addTiles(tiles []groupedTile, y []float32, ld int, codes, scales []byte, x *Acts, t, tEnd, gLo, gHi int) {
	f := groupedFormats[q.w.Packing]
	scales = scales[gLo/f.unit*f.unitBytes : gHi/f.unit*f.unitBytes]
	lda := x.groupedRecords() * actRecord
	for t < tEnd {
		n := tileWidth(tEnd-t, len(tiles))
		acts := x.grouped.rec[t*lda+gLo*actRecord:]
		_, _ = y[(n-1)*ld+bandRows-1], acts[(n-1)*lda+(gHi-gLo)*actRecord-1]
		tiles[n-1](&y[0], ld, &codes[0], &scales[0], 0, &acts[0], lda, gHi-gLo)
		if t += n; t < tEnd {
			y = y[n*ld:]
		}
	}
}

// quantizeGroupsFast does the whole groups of x and returns how many.
func quantizeGroupsFast(rec []byte, x []float32) int {
	groups := len(x) / groupCols
	if active == Generic || groups == 0 {
		return 0
	}
	_ = rec[groups*actRecord-1]
	quantizeGroupsAVX2(&rec[0], &x[0], groups)
	return groups
}

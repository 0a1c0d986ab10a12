//go:build amd64 && !purego

package grouped

import "github.com/lutra-lm/lutra/kernels/matrix"

// avxvnniTiles are tiles of VPDPBUSD of 256 bits. They unfold codes for as
// many tokens as a panel would repay, so there are no panels.
var avxvnniTiles = map[matrix.Packing]tileSet{
	matrix.Q4: {one: groupedQ4AVXVNNIx2x1, bands: 2, direct: []tileFunc{groupedQ4AVXVNNIx1x1, groupedQ4AVXVNNIx1x2, groupedQ4AVXVNNIx1x3, groupedQ4AVXVNNIx1x4,
		groupedQ4AVXVNNIx1x5, groupedQ4AVXVNNIx1x6, groupedQ4AVXVNNIx1x7, groupedQ4AVXVNNIx1x8}},
	matrix.Q4M: {one: groupedQ4MAVXVNNIx2x1, bands: 2, direct: []tileFunc{groupedQ4MAVXVNNIx1x1, groupedQ4MAVXVNNIx1x2, groupedQ4MAVXVNNIx1x3, groupedQ4MAVXVNNIx1x4,
		groupedQ4MAVXVNNIx1x5, groupedQ4MAVXVNNIx1x6, groupedQ4MAVXVNNIx1x7, groupedQ4MAVXVNNIx1x8}},
	matrix.Q41: {one: groupedQ41AVXVNNIx2x1, bands: 2, direct: []tileFunc{groupedQ41AVXVNNIx1x1, groupedQ41AVXVNNIx1x2, groupedQ41AVXVNNIx1x3, groupedQ41AVXVNNIx1x4,
		groupedQ41AVXVNNIx1x5, groupedQ41AVXVNNIx1x6, groupedQ41AVXVNNIx1x7, groupedQ41AVXVNNIx1x8}},
	matrix.Q6: {one: groupedQ6AVXVNNIx2x1, bands: 2, direct: []tileFunc{groupedQ6AVXVNNIx1x1, groupedQ6AVXVNNIx1x2, groupedQ6AVXVNNIx1x3, groupedQ6AVXVNNIx1x4,
		groupedQ6AVXVNNIx1x5, groupedQ6AVXVNNIx1x6, groupedQ6AVXVNNIx1x7, groupedQ6AVXVNNIx1x8}},
	matrix.Q8: {one: groupedQ8AVXVNNIx2x1, bands: 2, direct: []tileFunc{groupedQ8AVXVNNIx1x1, groupedQ8AVXVNNIx1x2, groupedQ8AVXVNNIx1x3, groupedQ8AVXVNNIx1x4,
		groupedQ8AVXVNNIx1x5, groupedQ8AVXVNNIx1x6}},
	matrix.FP4: {one: groupedFP4AVXVNNIx2x1, bands: 2, direct: []tileFunc{groupedFP4AVXVNNIx1x1, groupedFP4AVXVNNIx1x2, groupedFP4AVXVNNIx1x3, groupedFP4AVXVNNIx1x4,
		groupedFP4AVXVNNIx1x5, groupedFP4AVXVNNIx1x6, groupedFP4AVXVNNIx1x7, groupedFP4AVXVNNIx1x8}},
}

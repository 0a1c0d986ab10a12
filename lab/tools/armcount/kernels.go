package main

import "fmt"

// row is a routine whose loop is counted.
type row struct {
	label, symbol string
	trips         []int  // of its inner loops
	macs          int    // of a turn of its outer loop; 0: counted
	loop          int    // which loop; 0: the longest
	unfold        string // what writes the panels that it reads
	weights       int    // that a turn of unfold writes, once for tokens
	tokens        int
}

// tile is a routine that unfolds what it multiplies.
func tile(label, symbol string, trips ...int) row {
	return row{label: label, symbol: symbol, trips: trips}
}

// overPanels is a routine over panels that are written once for so many tokens.
func overPanels(label string, tokens int, symbol, unfold string, weights int, trips ...int) row {
	return row{label: fmt.Sprintf("%s, %d tokens", label, tokens), symbol: symbol, trips: trips, unfold: unfold, weights: weights, tokens: tokens}
}

// lookups is a routine of which a turn makes so many multiply-adds.
func lookups(label, symbol string, macs int) row {
	return row{label: label, symbol: symbol, macs: macs}
}

// table is rows beside their bounds, for cores that have the instructions.
type table struct {
	title  string
	cores  []string
	bounds []bound
}

// cores are all, as -mcpu names them; withI8MM those that have SMMLA.
var (
	cores    = []string{"neoverse-n1", "cortex-a76", "apple-m1", "neoverse-v1", "neoverse-v2", "cortex-x4"}
	withI8MM = []string{"neoverse-n2", "neoverse-v1", "neoverse-v2", "cortex-x4", "apple-m2"}
)

var tables = []table{
	{"SDOT", cores, []bound{
		{"SDOT alone", sdot, 8, nil, []row{
			tile("I2, 1 token", "sdotI2x1"),
			tile("I2, 4 tokens", "sdotI2x4"),
			tile("I1, 1 token", "sdotI1x1"),
			tile("I1, 4 tokens", "sdotI1x4"),
			overPanels("I2", 16, "sdotTile4", "quadsI2", 16*16),
			overPanels("I2", 64, "sdotTile4", "quadsI2", 16*16),
			overPanels("I1", 16, "sdotTile4", "quadsI1", 16*20),
			overPanels("I1", 64, "sdotTile4", "quadsI1", 16*20),
			lookups("I1 lookups, 8 tokens", "lutAddNEON", 8*8*5),
			lookups("I1 lookups, 16 tokens", "lutAdd2NEON", 8*16*5),
			lookups("I2 lookups, 8 tokens", "lutAddNEON", 8*8*4),
			lookups("I2 lookups, 16 tokens", "lutAdd2NEON", 8*16*4),
		}, ""},
		{"and steps of a scale a unit", sdot, 8, unitSteps, []row{
			tile("Q1G128, 1 token", "groupedQ1G128NEONx1", 4),
			tile("Q1G128, 4 tokens", "groupedQ1G128NEONx4", 4),
			tile("Q2G128, 1 token", "groupedQ2G128NEONx1", 4),
			tile("Q2G128, 4 tokens", "groupedQ2G128NEONx4", 4),
		}, ""},
		{"and steps of a scale a group", sdot, 8, groupSteps, []row{
			tile("Q4, 1 token", "groupedQ4NEONx1"),
			tile("Q4, 2 tokens", "groupedQ4NEONx2"),
			tile("Q8, 1 token", "groupedQ8NEONx1"),
			tile("Q8, 2 tokens", "groupedQ8NEONx2"),
			tile("FP4, 2 tokens", "groupedFP4NEONx2"),
		}, ""},
		{"and steps of Q4M", sdot, 8, q4mSteps, []row{
			tile("Q4M, 1 token", "groupedQ4MNEONx1", 8),
			tile("Q4M, 2 tokens", "groupedQ4MNEONx2", 8),
		}, ""},
		{"and steps of Q6", sdot, 8, q6Steps, []row{
			tile("Q6, 1 token", "groupedQ6NEONx1", 8),
			tile("Q6, 2 tokens", "groupedQ6NEONx2", 8),
		}, ""},
	}},
	{"SMMLA", withI8MM, []bound{
		{"SMMLA alone", smmla, 4, nil, []row{
			{label: "I2, 4 tokens", symbol: "i8mmI2x4", loop: 1},
			overPanels("I2", 8, "i8mmTile8", "panelI2", 256),
			overPanels("I2", 16, "i8mmTile8", "panelI2", 256),
			overPanels("I2", 64, "i8mmTile8", "panelI2", 256),
			{label: "I1, 4 tokens", symbol: "i8mmI1x4", loop: 1},
			overPanels("I1", 8, "i8mmTile8", "panelI1", 320),
			overPanels("I1", 16, "i8mmTile8", "panelI1", 320),
			overPanels("I1", 64, "i8mmTile8", "panelI1", 320),
		}, ""},
		{"and steps of a scale a unit", smmla, 4, unitSteps, []row{
			overPanels("Q1G128", 4, "i8mmUnit4", "panelBits", 512, 4),
			overPanels("Q1G128", 16, "i8mmUnit4", "panelBits", 512, 4),
			overPanels("Q1G128", 64, "i8mmUnit4", "panelBits", 512, 4),
			overPanels("Q2G128", 4, "i8mmUnit4", "panelPairs", 512, 4),
			overPanels("Q2G128", 16, "i8mmUnit4", "panelPairs", 512, 4),
			overPanels("Q2G128", 64, "i8mmUnit4", "panelPairs", 512, 4),
			overPanels("Q2G64", 64, "i8mmUnit4", "panelPairs", 512, 2),
		}, ""},
		{"and steps of a scale a group", smmla, 4, groupSteps, []row{
			overPanels("Q4, FP4", 4, "i8mmScale4", "panelNibbles", 512),
			overPanels("Q4, FP4", 16, "i8mmScale4", "panelNibbles", 512),
			overPanels("Q4, FP4", 64, "i8mmScale4", "panelNibbles", 512),
			overPanels("Q8", 16, "i8mmScale4", "panelBytes", 512),
			overPanels("Q8", 64, "i8mmScale4", "panelBytes", 512),
		}, ""},
		{"and steps of Q4M", smmla, 4, q4mSteps, []row{
			overPanels("Q4M", 4, "i8mmQ4Mx4", "panelNibbles", 512),
			overPanels("Q4M", 16, "i8mmQ4Mx4", "panelNibbles", 512),
			overPanels("Q4M", 64, "i8mmQ4Mx4", "panelNibbles", 512),
		}, ""},
		{"and steps of Q6", smmla, 4, q6Steps, []row{
			overPanels("Q6", 4, "i8mmQ6x4", "panelSixBits", 512, 8),
			overPanels("Q6", 16, "i8mmQ6x4", "panelSixBits", 512, 8),
			overPanels("Q6", 64, "i8mmQ6x4", "panelSixBits", 512, 8),
		}, ""},
	}},
	{"Floats", cores, []bound{
		{"FMLA alone", fmla, 8, nil, []row{
			tile("F32, 4 tokens", "denseF32NEONx4"),
			tile("F16, 4 tokens", "denseF16NEONx4"),
			tile("BF16, 4 tokens", "denseBF16NEONx4"),
		}, ""},
		{"FMLA alone", fmla, 8, nil, []row{
			tile("scores of F16 keys, 4 queries", "scoresF16x4"),
			tile("scores of Q8 keys, 4 queries", "scoresQ8x4"),
			tile("sums of F16 values, 2 queries", "accumF16x2"),
			tile("sums of Q8 values, 2 queries", "accumQ8x2"),
		}, "attention"},
	}},
}

// Steps of a sum: a start, a conversion (by what adds 1.5·2²³ and takes it off again where
// the sum fits, which costs less than SCVTF on Arm's cores), scales.
var (
	unitSteps  = []string{"mov\tv%.16b, v20.16b", "fsub\tv%.4s, v%.4s, v20.4s", "fmla\tv@.4s, v%.4s, v22.4s"}
	groupSteps = []string{"mov\tv%.16b, v20.16b", "fsub\tv%.4s, v%.4s, v20.4s", "fmul\tv%.4s, v%.4s, v22.4s", "fmla\tv@.4s, v%.4s, v22.4s"}
	q4mSteps   = []string{"movi\tv%.4s, #0", "mov\tv@.16b, v20.16b", "mla\tv@.4s, v%.4s, v22.4s", "fsub\tv@.4s, v@.4s, v20.4s", "fmul\tv@.4s, v@.4s, v22.4s", "fmls\tv@.4s, v23.4s, v24.4s", "fmla\tv%.4s, v@.4s, v22.4s"}
	q6Steps    = []string{"movi\tv%.4s, #0", "movi\tv%.4s, #0", "mul\tv%.4s, v%.4s, v22.4s", "mla\tv%.4s, v23.4s, v22.4s", "scvtf\tv%.4s, v%.4s", "fmla\tv@.4s, v%.4s, v22.4s"}
)

package main

// row is a routine whose loop is counted.
type row struct {
	label, symbol string
	trips         []int  // of its inner loops
	macs          int    // of a turn of its outer loop; 0: counted
	loop          int    // which loop; 0: the longest
	unfold        string // writes a panel
	turns         int    // of the outer loop for each turn of unfold
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
			{"I2, 1 token", "sdotI2x1", nil, 0, 0, "", 0},
			{"I2, 4 tokens", "sdotI2x4", nil, 0, 0, "", 0},
			{"I1, 1 token", "sdotI1x1", nil, 0, 0, "", 0},
			{"I1, 4 tokens", "sdotI1x4", nil, 0, 0, "", 0},
			{"I1 lookups, 8 tokens", "lutAddNEON", nil, 8 * 8 * 5, 0, "", 0},
			{"I2 lookups, 8 tokens", "lutAddNEON", nil, 8 * 8 * 4, 0, "", 0},
		}},
		{"and steps of a scale a unit", sdot, 8, unitSteps, []row{
			{"Q1G128, 1 token", "groupedQ1G128NEONx1", []int{4}, 0, 0, "", 0},
			{"Q1G128, 4 tokens", "groupedQ1G128NEONx4", []int{4}, 0, 0, "", 0},
			{"Q2G128, 1 token", "groupedQ2G128NEONx1", []int{4}, 0, 0, "", 0},
			{"Q2G128, 4 tokens", "groupedQ2G128NEONx4", []int{4}, 0, 0, "", 0},
		}},
		{"and steps of a scale a group", sdot, 8, groupSteps, []row{
			{"Q4, 1 token", "groupedQ4NEONx1", nil, 0, 0, "", 0},
			{"Q4, 2 tokens", "groupedQ4NEONx2", nil, 0, 0, "", 0},
			{"Q8, 1 token", "groupedQ8NEONx1", nil, 0, 0, "", 0},
			{"Q8, 2 tokens", "groupedQ8NEONx2", nil, 0, 0, "", 0},
			{"FP4, 2 tokens", "groupedFP4NEONx2", nil, 0, 0, "", 0},
		}},
		{"and steps of Q4M", sdot, 8, q4mSteps, []row{
			{"Q4M, 1 token", "groupedQ4MNEONx1", []int{8}, 0, 0, "", 0},
			{"Q4M, 2 tokens", "groupedQ4MNEONx2", []int{8}, 0, 0, "", 0},
		}},
		{"and steps of Q6", sdot, 4, q6Steps, []row{
			{"Q6, 1 token", "groupedQ6NEONx1", []int{8}, 0, 0, "", 0},
			{"Q6, 2 tokens", "groupedQ6NEONx2", []int{8}, 0, 0, "", 0},
		}},
	}},
	{"SMMLA", withI8MM, []bound{
		{"SMMLA alone", smmla, 4, nil, []row{
			{"I2, 4 tokens", "i8mmTile4", nil, 0, 0, "panelI2", 4},
			{"I2, 16 tokens", "i8mmTile8", nil, 0, 0, "panelI2", 2 * 4},
			{"I2, 64 tokens", "i8mmTile8", nil, 0, 0, "panelI2", 8 * 4},
			{"I1, 4 tokens", "i8mmTile4", nil, 0, 0, "panelI1", 5},
			{"I1, 16 tokens", "i8mmTile8", nil, 0, 0, "panelI1", 2 * 5},
			{"I1, 64 tokens", "i8mmTile8", nil, 0, 0, "panelI1", 8 * 5},
		}},
		{"and steps of a scale a unit", smmla, 4, unitSteps, []row{
			{"Q1G128, 4 tokens", "groupedQ1G128I8MMx4", []int{4}, 0, 0, "", 0},
			{"Q2G128, 4 tokens", "groupedQ2G128I8MMx4", []int{4}, 0, 0, "", 0},
		}},
	}},
}

// Steps of a sum: a start, a conversion (by what adds 1.5·2²³ and takes it off again where
// the sum fits, which costs less than SCVTF on Arm's cores), scales.
var (
	unitSteps  = []string{"mov\tv%.16b, v20.16b", "fsub\tv%.4s, v%.4s, v20.4s", "fmla\tv@.4s, v%.4s, v22.4s"}
	groupSteps = []string{"mov\tv%.16b, v20.16b", "fsub\tv%.4s, v%.4s, v20.4s", "fmul\tv%.4s, v%.4s, v22.4s", "fmla\tv@.4s, v%.4s, v22.4s"}
	q4mSteps   = []string{"mov\tv%.16b, v20.16b", "mul\tv%.4s, v%.4s, v22.4s", "scvtf\tv%.4s, v%.4s", "fmul\tv%.4s, v%.4s, v22.4s", "fmls\tv%.4s, v23.4s, v24.4s", "fmla\tv@.4s, v%.4s, v22.4s"}
	q6Steps    = []string{"mul\tv%.4s, v%.4s, v22.4s"}
)

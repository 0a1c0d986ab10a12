package planning

import "math"

// Tiers returns the capacities that experts of a layer may have (NPUMoE §4.1).
//
//	C_base = k·B/E      an expert's rows of a chunk, if all experts had as many
//	n_max  = r·C_base   those of the most popular expert
//
// The tiers are n_max, C_base and what lies between them by equal factors, each rounded
// up to a multiple of rows, and the largest first: at r = 4 they are 4, 2 and 1 times
// C_base. Equal ones are one. The paper leaves k out; it is 1 where chunk counts choices
// in place of tokens. No capacity is more than a chunk, nor any less than rows.
func Tiers(chunk, chosen, experts int, ratio float64, rows int) (base, busiest int, tiers []int) {
	mean := float64(chunk) * float64(chosen) / float64(experts)
	most := min(max(1, ratio)*mean, float64(chunk))
	base, busiest = ceil(mean), ceil(most)
	for _, n := range []float64{most, math.Sqrt(most * mean), mean} {
		if c := up(ceil(n), rows); len(tiers) == 0 || c < tiers[len(tiers)-1] {
			tiers = append(tiers, c)
		}
	}
	return base, busiest, tiers
}

// ceil rounds up, but not what rounding errors have put above a whole number.
func ceil(x float64) int { return int(math.Ceil(x - 1e-9)) }

// tierOf returns the least tier that has room for rows, or the largest.
func tierOf(tiers []int, rows float64) int {
	for i := len(tiers) - 1; i > 0; i-- {
		if float64(tiers[i]) >= rows-1e-9 {
			return tiers[i]
		}
	}
	return tiers[0]
}

func up(n, unit int) int { return (n + unit - 1) / unit * unit }

package emit

import "slices"

// Widths returns the numbers of tokens from least to most that tiles have, and more ones. Other numbers take two
// tiles: a routine for each was needed by no column of docs/data/kernels-routines.csv.
func Widths(least, most int, more ...int) []int {
	widths := append([]int{1, 2, 3, 4, 6, 8, 12}, more...)
	slices.Sort(widths)
	return slices.DeleteFunc(widths, func(n int) bool { return n < least || n > most })
}
